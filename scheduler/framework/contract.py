"""The interruption contract: who may be asked to go, from whom how much, and what it costs.

Protection here holds whatever plugins are configured: critical pods, pods that may not be
interrupted, and work younger than its minimum run time are never victims. How much a queue can be
made to give is bounded by what it is owed (decisions.md 7 to 9). Which of those that may go are chosen
is decided in ``eviction``; who may borrow is the share plugin's test of room (``queue_rules``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from volcano_py.crds.quantity import format_base
from volcano_py.scheduler.framework.claim import Claim
from volcano_py.scheduler.framework.points import first_refusal
from volcano_py.scheduler.framework.queue_claims import amounts_aside
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.resources import UNLIMITED, Ints, Mask, Rows32, Scores
from volcano_py.scheduler.model.tasks import Status
from volcano_py.scheduler.model.wording import figure, noun

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session

RECLAIM: Final = "reclaim"
PREEMPT: Final = "preempt"
VICTIM_STATUSES: Final = {PREEMPT: (Status.BOUND, Status.RUNNING), RECLAIM: (Status.RUNNING,)}
"""Statuses a victim may have, by action."""

MAY_GO, CRITICAL, FIRM, YOUNG, SPARED = range(5)
"""What the contract says of a task; of several reasons the first in this order."""
_NOT_SHOWN: Final = ("cpu", "memory", "pods", "ephemeral-storage")
Held = list[int]
"""Amounts of a queue or a pod over ``Bounds.columns``."""


def verdicts(session: Session, tasks: Rows32) -> NDArray[np.int8]:
    """(T,) ``MAY_GO`` or why not, whoever claims."""
    table = session.state.tasks
    verdict = np.full(len(tasks), MAY_GO, np.int8)
    if session.state.holds.evictions:
        verdict[np.isin(tasks, session.state.holds.spared())] = SPARED
    verdict[age(session, tasks) < table.min_run_s[tasks]] = YOUNG
    verdict[~table.interruptible[tasks]] = FIRM
    verdict[table.critical[tasks]] = CRITICAL
    return verdict


def age(session: Session, tasks: Rows32) -> Scores:
    """(T,) seconds that *tasks* have run; infinite where nobody knows since when."""
    began = _began(session, tasks)
    result: Scores = np.where(began > 0, np.maximum(session.now - began, 0.0), np.inf)
    return result


def at_risk_s(session: Session, tasks: Rows32) -> Scores:
    """(T,) seconds of work lost if *tasks* go: since the start, or since the last checkpoint."""
    since = np.maximum(_began(session, tasks), session.state.tasks.checkpoint[tasks])
    result: Scores = np.where(since > 0, np.maximum(session.now - since, 0.0), 0.0)
    return result


def _began(session: Session, tasks: Rows32) -> Scores:
    """(T,) epoch seconds since when *tasks* run, else since when they exist; 0 where nobody knows."""
    table = session.state.tasks
    return np.where(table.started[tasks] > 0, table.started[tasks], table.created[tasks])


def lost_work(session: Session, tasks: Rows32, charges: Ints) -> Scores:
    """(T,) work lost: the largest part of the cluster that each holds, times seconds at risk.

    Args:
        session: clock and cluster.
        tasks: (T,) task rows.
        charges: (T, R) what each costs its queue.
    """
    total = session.state.total()
    per_unit = np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0)
    result: Scores = (charges * per_unit).max(axis=1, initial=0.0) * at_risk_s(session, tasks)
    return result


def lost_text(session: Session, task: int) -> str:
    """Work lost with *task*, for people: time of its cards, else of its other devices, its cpu or memory."""
    state = session.state
    rows = np.array([task], np.int32)
    seconds = int(at_risk_s(session, rows)[0])
    span, unit = (seconds / 3600, "hours") if seconds >= 3600 else (seconds, "seconds")
    amounts = state.vocabulary.amounts(state.accounts.charge_of_task(task))
    cards = _cards_held(state, task, amounts)
    if cards:
        time = cards * span
        return f"{time:.0f} card-{unit}" if time >= 100 else f"{time:.3g} card-{unit}"
    others = sorted(name for name in amounts if name not in _NOT_SHOWN)
    shown = others or [name for name in ("cpu", "memory") if name in amounts][:1]
    if not shown:
        return f"{seconds} s of one pod"
    return ", ".join(f"{format_base(name, int(amounts[name] * span))} {name}-{unit}" for name in shown)


def _cards_held(state: ClusterState, task: int, amounts: dict[str, int]) -> float:
    """Cards that *task* holds, a slice as the larger of its parts of memory and cores; 0 if none.

    Args:
        state: the cluster.
        task: row.
        amounts: what its queue is charged (base units), for nodes that count cards without registering them.
    """
    choice, node = state.tasks.slices.get(task), int(state.tasks.node[task])
    if choice is None or not choice.holds:
        measures = state.card_source.measures
        counts = [amount / 1000 for name, amount in amounts.items() if measures.get(name) == "slots"]
        return max(counts, default=0.0)
    cards = state.cards
    return sum(
        max(
            hold.memory_mib / max(int(cards.memory[node, hold.card]), 1),
            hold.cores / max(int(cards.cores[node, hold.card]), 1),
        )
        for hold in choice.holds
    )


def requests_of(state: ClusterState, tasks: Rows32) -> Ints:
    """(T, R) what each of *tasks* holds of its node."""
    if len(tasks) == 0:
        return np.zeros((0, state.vocabulary.width), np.int64)
    classes, where = np.unique(state.tasks.klass[tasks], return_inverse=True)
    requests: Ints = np.stack([state.classes[row].request for row in classes.tolist()])[where]
    return requests


class Bounds:
    """How much *claim* may take from which queue, given what queues hold at the moment.

    Inside a queue nothing bounds it. Across queues a victim's queue, and each ancestor that it does not
    share with the claimant, must be over its entitlement in something claimed, and stays at or above
    its ``min``. Amounts of a caller are lists over ``columns``.

    Attributes:
        columns: (C,) the columns that matter: what is claimed, and what any queue has a min of.
        claimed: positions in ``columns`` of what the claimant may take from others.
    """

    def __init__(self, session: Session, claim: Claim, may_take: Mask) -> None:
        self._session, self._state, self._claim = session, session.state, claim
        queues = session.state.queues
        total = session.state.total()
        self._guarantee = np.minimum(queues.guarantee, np.where(total > 0, total, UNLIMITED))
        wanted = may_take & (claim.klass.charge > 0)
        self.columns: list[int] = np.flatnonzero(wanted | (queues.guarantee > 0).any(axis=0)).tolist()
        self.claimed = [i for i, column in enumerate(self.columns) if wanted[column]]
        self._own = set(claim.queue.path)
        self._aside, _ = amounts_aside(session.state)
        self._epoch = -1
        self._held: dict[int, Held] = {}
        self._entitled: dict[int, Held] = {}
        self._min: dict[int, Held] = {}

    @property
    def free(self) -> bool:
        """Nothing is bounded (claims inside a queue)."""
        return self._claim.action != RECLAIM

    def holds(self, row: int) -> Ints:
        """(R,) what queue *row* will hold of what is shared out, once terminating pods are gone."""
        held = self._state.queues.staying(row)
        return held if self._aside is None else held - self._aside[row]

    def foreign(self, queue: int) -> list[int]:
        """*queue* and its ancestors that the claimant does not share."""
        return [row for row in self._state.queues[queue].path if row not in self._own]

    def ratio(self, queue: int, taken: dict[int, Held]) -> float:
        """How far *queue* is over: the largest held / entitled over what is claimed (decisions.md 9)."""
        if self.free:
            return 0.0
        held, entitled = self._holding(queue), self._entitled[queue]
        gone = taken.get(queue)
        worst = 0.0
        for i in self.claimed:
            left = held[i] - (gone[i] if gone else 0)
            if left > 0 and entitled[i] < UNLIMITED:
                worst = max(worst, left / entitled[i] if entitled[i] > 0 else np.inf)
        return worst

    def allow(
        self, queue: int, charge: Held, taken: dict[int, Held], wanted: list[int], *, strict: bool
    ) -> bool:
        """Whether a victim of *queue* that holds *charge* may be taken after *taken*.

        Args:
            queue: the victim's queue.
            charge: what it holds.
            taken: queue -> what is taken already and not in the books yet.
            wanted: positions of what is still short; the queue must be over in one of these.
            strict: also require that the queue does not fall below its entitlement there.
        """
        if self.free:
            return True
        rows = self.foreign(queue)
        if not rows:
            return False
        over = False
        for i in wanted:
            if charge[i] > 0:
                spare = min(self._left(row, i, taken) - self._entitled[row][i] for row in rows)
                over = over or spare > 0
                if strict and 0 < spare < charge[i]:
                    return False
        return over and all(self._keeps_min(row, charge, taken) for row in rows)

    def give(self, queue: int, charge: Held, taken: dict[int, Held]) -> None:
        """Note in *taken* that *charge* is taken from *queue* and its ancestors."""
        if self.free:
            return
        for row in self.foreign(queue):
            gone = taken.setdefault(row, [0] * len(charge))
            for i, amount in enumerate(charge):
                gone[i] += amount

    def over_text(self, queue: int) -> str:
        """By how much *queue* is over, in the claimed resource where it is furthest over."""
        held, entitled = self._holding(queue), self._entitled[queue]
        best, text = -1.0, ""
        for i in self.claimed:
            if held[i] > entitled[i] and held[i] / max(entitled[i], 1) > best:
                best = held[i] / max(entitled[i], 1)
                name = self._state.vocabulary.names[self.columns[i]]
                three = (held[i], held[i] - entitled[i], entitled[i])
                holds, over, owed = (figure(self._state, name, amount) for amount in three)
                text = f"holds {holds} {noun(self._state, name)}, {over} over its entitlement of {owed}"
        return f"queue {self._state.queues[queue].name} {text}"

    def _keeps_min(self, row: int, charge: Held, taken: dict[int, Held]) -> bool:
        least = self._min[row]
        return all(
            not least[i] or not amount or self._left(row, i, taken) - amount >= least[i]
            for i, amount in enumerate(charge)
        )

    def _left(self, row: int, i: int, taken: dict[int, Held]) -> int:
        gone = taken.get(row)
        return self._holding(row)[i] - (gone[i] if gone else 0)

    def _holding(self, row: int) -> Held:
        """What *row* will hold once terminating pods are gone; read again when any queue changed."""
        queues = self._state.queues
        if self._epoch != queues.epoch:
            self._epoch = queues.epoch
            self._held.clear()
        known = self._held.get(row)
        if known is None:
            amounts = self.holds(row)
            known = self._held[row] = amounts[self.columns].tolist()
            if row not in self._entitled:
                shares = self._session.shares
                owed = np.full(len(amounts), UNLIMITED) if shares is None else shares.entitlement[row]
                self._entitled[row] = owed[self.columns].tolist()
                self._min[row] = self._guarantee[row][self.columns].tolist()
        return known


def may_take(session: Session, claim: Claim, need: Ints, *, firm: bool) -> Mask:
    """(R,) what the claimant may take from others when it needs *need* (R,) more altogether.

    Inside a queue everything; across queues the resources in which its queue stays within its
    entitlement (decisions.md 7). What it may not take it can still borrow where it is idle.
    """
    allowed = np.ones(len(need), np.bool_)
    if claim.action != RECLAIM:
        return allowed
    for column in np.flatnonzero(need > 0).tolist():
        alone = np.zeros_like(need)
        alone[column] = need[column]
        allowed[column] = first_refusal(session.points.preemptive, claim.queue, alone, firm) is None
    return allowed
