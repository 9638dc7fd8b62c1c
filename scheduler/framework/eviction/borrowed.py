"""Of a card, what a claimant may not take from others it can only borrow where it is idle.

Sums of a node do not tell (decisions.md 7, 30): cores that a victim leaves on a card are no idle ones, though
the victim went for its memory. Whoever took both would be over its entitlement by what it took, and the
victim's queue would come back for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from volcano_py.scheduler.model.cards import CardChoice, CardHold
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.resources import Mask

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session


class CardClaim:
    """What a claim for pods of *klass* asks of cards, and which of it may be taken.

    Attributes:
        columns: what queues are charged for cards.
        only_idle: the measures (``memory``, ``cores``, ``slots``) that may only be borrowed.
    """

    def __init__(self, session: Session, klass: TaskClass, may_take: Mask) -> None:
        self._state = session.state
        names = session.state.vocabulary.names
        measures = session.state.card_source.measures if klass.cards is not None else {}
        asked = np.flatnonzero(klass.charge).tolist()
        self.columns = {column for column in asked if names[column] in measures}
        self.only_idle = sorted({measures[names[c]] for c in self.columns if not may_take[c]})

    def is_borrowed_idle(self, row: int, choice: CardChoice, victims: Iterable[int]) -> bool:
        """Whether *choice* on node *row* fits beside *victims* in all that it may only borrow."""
        left = self._left_by(row, victims) if self.only_idle else {}
        for measure in self.only_idle:
            for hold in choice.holds:
                gone = sum(_amount(one, measure) for one in left.get(hold.card, ()))
                if _amount(hold, measure) + gone > self._free(row, hold.card, measure):
                    return False
        return True

    def _free(self, row: int, card: int, measure: str) -> int:
        """What the card has left once everybody who is leaving is gone."""
        cards = self._state.cards
        whole, used, leaving, promised = (
            int(getattr(cards, name)[row, card])
            for name in (measure, f"used_{measure}", f"leaving_{measure}", f"promised_{measure}")
        )
        return whole - used + leaving - promised

    def _left_by(self, row: int, victims: Iterable[int]) -> dict[int, list[CardHold]]:
        """Card of node *row* -> what *victims* hold of it."""
        tasks = self._state.tasks
        left: dict[int, list[CardHold]] = {}
        for task in victims:
            choice = tasks.slices.get(task)
            if choice is not None and int(tasks.node[task]) == row:
                for hold in choice.holds:
                    left.setdefault(hold.card, []).append(hold)
        return left


def _amount(hold: CardHold, measure: str) -> int:
    return {"memory": hold.memory_mib, "cores": hold.cores, "slots": hold.slots}[measure]
