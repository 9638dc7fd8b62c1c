"""What a claimant may not take from others it can only borrow where it is idle.

Sums do not tell (decisions.md 7, 30): cores that a victim leaves on a card are no idle ones, though the
victim went for its memory, and no more is the CPU that a gang leaves on a node where nothing else of it is
claimed. Whoever took both would be over its entitlement by what it took, and the victims' queue would come
back for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from volcano_py.scheduler.framework.contract import requests_of
from volcano_py.scheduler.model.cards import CardHold
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.resources import Mask

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session


def card_columns(session: Session, klass: TaskClass) -> dict[int, str]:
    """What queues are charged for the cards of *klass*: column -> ``memory``, ``cores`` or ``slots``."""
    if klass.cards is None:
        return {}
    names, measures = session.state.vocabulary.names, session.state.card_source.measures
    asked = np.flatnonzero(klass.charge).tolist()
    return {column: measures[names[column]] for column in asked if names[column] in measures}


class Borrowed:
    """What one claimant borrows beside what it takes."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._only_idle: dict[int, Mask] = {}

    def note(self, klass: TaskClass, may_take: Mask) -> None:
        """Pods of *klass* take no more from others than *may_take* (R,) allows."""
        only = (klass.charge > 0) & ~may_take
        known = self._only_idle.get(klass.row)
        self._only_idle[klass.row] = only if known is None else known | only

    def is_idle(self, placed: Iterable[int], gone: Iterable[int]) -> bool:
        """Whether what *placed* may only borrow would be there, where they stand, with *gone* back."""
        table, classes = self._session.state.tasks, self._session.state.classes
        bound = [task for task in placed if self._only_idle.get(int(table.klass[task]), _NOTHING).any()]
        if not bound:
            return True
        left = list(gone)
        return all(
            self._on_node(task, klass, left) and self._on_cards(task, klass, left)
            for task in bound
            for klass in (classes[int(table.klass[task])],)
        )

    def _on_node(self, task: int, klass: TaskClass, gone: list[int]) -> bool:
        nodes, table = self._session.state.nodes, self._session.state.tasks
        row = int(table.node[task])
        only = self._only_idle[klass.row] & (klass.request > 0)
        there = np.array([one for one in gone if int(table.node[one]) == row], np.int32)
        free = nodes.allocatable[row] - nodes.used[row] + nodes.releasing[row] - nodes.pipelined[row]
        back = requests_of(self._session.state, there).sum(axis=0)
        return bool((free >= back)[only].all())

    def _on_cards(self, task: int, klass: TaskClass, gone: list[int]) -> bool:
        table = self._session.state.tasks
        columns, choice = card_columns(self._session, klass), table.slices.get(task)
        if choice is None:
            return True
        only, row = self._only_idle[klass.row], int(table.node[task])
        measures = {measure for column, measure in columns.items() if only[column]}
        left = self._left_by(row, gone) if measures else {}
        return all(
            sum(_amount(one, measure) for one in left.get(hold.card, ()))
            <= self._free(row, hold.card, measure)
            for measure in measures
            for hold in choice.holds
        )

    def _free(self, row: int, card: int, measure: str) -> int:
        """What the card has left once everybody who is leaving is gone."""
        cards = self._session.state.cards
        whole, used, leaving, promised = (
            int(getattr(cards, name)[row, card])
            for name in (measure, f"used_{measure}", f"leaving_{measure}", f"promised_{measure}")
        )
        return whole - used + leaving - promised

    def _left_by(self, row: int, gone: list[int]) -> dict[int, list[CardHold]]:
        """Card of node *row* -> what *gone* hold of it."""
        tasks = self._session.state.tasks
        left: dict[int, list[CardHold]] = {}
        for task in gone:
            choice = tasks.slices.get(task)
            if choice is not None and int(tasks.node[task]) == row:
                for hold in choice.holds:
                    left.setdefault(hold.card, []).append(hold)
        return left


_NOTHING = np.zeros(0, np.bool_)


def _amount(hold: CardHold, measure: str) -> int:
    return {"memory": hold.memory_mib, "cores": hold.cores, "slots": hold.slots}[measure]
