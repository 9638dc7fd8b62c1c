"""The rules of sharing, hung on extension points: one limit test, one meaning of "over".

A share plugin (``proportion``, ``capacity``) works out what queues are owed; everything that follows
from it is the same for both and stands here: room under limits at every ancestor, the gate, order of
queues, who may take from whom. The arithmetic is in ``quota``, the choice of victims in ``eviction``.

A victim is judged by itself, against what its queue holds at the moment: whoever takes several asks
again after each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.scheduler.framework.claim import Claim
from volcano_py.scheduler.framework.excess import over_limit
from volcano_py.scheduler.framework.gate import is_firm
from volcano_py.scheduler.framework.points import Key, Vote
from volcano_py.scheduler.framework.queue_claims import amounts_aside
from volcano_py.scheduler.framework.quota import fitting
from volcano_py.scheduler.framework.refusal import NO_LIMIT, Excess, Refusal, Room
from volcano_py.scheduler.framework.shares import QueueShares
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.queues import Queue
from volcano_py.scheduler.model.resources import UNLIMITED, Ints, Mask, Rows32, Scores, pad
from volcano_py.scheduler.model.tasks import NOWHERE

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session

UNDESERVED: Final = 1e6
"""How much more an amount weighs, in the order of queues, for one that deserves nothing of it."""
KEPT: Final = "its queue holds no more than it is owed, or does not lend"


@dataclass(frozen=True, slots=True, eq=False)
class Owed:
    """What a share plugin worked out for one cycle.

    Attributes:
        shares: for everybody.
        firm_limit: (Q, R) limit of work that may not be interrupted: lent guarantees are not in it.
        guarantee: (Q, R) held, an inner queue's with its children's.
        reclaim_level: how many levels above its leaf a claim may be measured at.
    """

    shares: QueueShares
    firm_limit: Ints
    guarantee: Ints
    reclaim_level: int = 0


class QueueRules:
    """The rules of one cycle."""

    def __init__(self, session: Session, plugin: str, owed: Owed) -> None:
        self.plugin, self.owed, self.books = plugin, owed, session.gate
        self.shares = owed.shares
        self._state = session.state
        self._aside, self._aside_firm = amounts_aside(session.state)
        deserved = self.shares.deserved
        total = np.maximum(session.state.total(), 1)
        unit = np.where(deserved > 0, deserved, total / UNDESERVED)
        self._per_deserved: Scores = np.where(deserved < UNLIMITED, 1 / unit, 0.0)
        self._shares: dict[int, tuple[int, float]] = {}
        self._bounded = bool((self.shares.limit < UNLIMITED).any())
        self._least = _own_minimums(session.state, owed.guarantee)
        self._guaranteed: Mask = np.any(self._least > 0, axis=1)

    def hang(self, session: Session) -> None:
        """Register everything and publish the shares."""
        points, name = session.points, self.plugin
        session.shares = self.shares
        self.books.attach(session)
        points.allocatable.add(name, self.room)
        points.preemptive.add(name, self.may_take)
        points.queue_order.add(name, self.order_key)
        points.victim_queue_order.add(name, self.nearest_first)
        points.reclaimable.add(name, self.gives_up)
        points.protects.add(name, self.keeps)
        points.job_enqueueable.add(name, self.lets_in)

    # -- amounts --------------------------------------------------------------------------------

    def holds(self, row: int) -> Ints:
        """(R,) what queue *row* will hold once terminating pods are gone, on nodes that are shared out."""
        held = self._state.queues.staying(row)
        if self._aside is not None:
            held = held - self._aside[row]
        return held

    def _firm(self, row: int) -> Ints:
        firm: Ints = self._state.queues.firm[row]
        if self._aside_firm is not None:
            firm = firm - self._aside_firm[row]
        return firm

    # -- room -----------------------------------------------------------------------------------

    def room(self, queue: Queue, klass: TaskClass, firm: bool, future: bool) -> Room:
        """How many more pods of *klass* fit under the limits of *queue* and all its ancestors.

        A bind counts terminating pods, a reservation (*future*) what will remain. *firm* pods also
        have to fit into the entitlement, unless they may borrow.
        """
        path = list(queue.path)
        limit = self.owed.firm_limit if firm and self.shares.firm_borrow else self.shares.limit
        room = NO_LIMIT
        if self._bounded or limit is not self.shares.limit:
            queues = self._state.queues
            used = queues.allocated[path] + queues.pipelined[path]
            if future:
                used = used - queues.releasing[path]
            if self._aside is not None:
                room = self._under(path, klass, queues.capability, used, "QueueLimit")
                used = used - self._aside[path]
            room = _tighter(room, self._under(path, klass, limit, used, "QueueLimit"))
        if firm and not self.shares.firm_borrow:
            held = np.stack([self._firm(row) for row in path])
            own = self._under(path, klass, self.shares.entitlement, held, "QueueEntitlement")
            room = _tighter(room, own)
        return room

    def _under(self, path: list[int], klass: TaskClass, limit: Ints, used: Ints, reason: str) -> Room:
        columns = np.flatnonzero(klass.charge)
        if len(columns) == 0:
            return NO_LIMIT
        charge = klass.charge[columns]
        count, place, column = fitting(limit[path][:, columns], used[:, columns], charge)
        if count >= klass.tasks:
            return Room(count)  # more than there are pods of the class: nobody will need the reason
        at = int(columns[column])
        asked, row = int(klass.charge[at]), path[place]
        before = int(used[place, at]) + count * asked
        return Room(count, partial(self._over, reason, row, at, asked, before, int(limit[row, at])))

    def _over(self, reason: str, row: int, column: int, asked: int, used: int, limit: int) -> Refusal:
        """The refusal of *asked* base units of one resource where *used* of *limit* are taken."""
        bound = _BOUNDS[reason]
        if reason == "QueueLimit" and limit != int(self._state.queues.capability[row, column]):
            bound = "what guarantees of other queues and the cluster leave it,"
        excess = Excess(row, column, asked, used, limit, bound, firm=reason == "QueueEntitlement")
        return over_limit(self._state, reason, excess)

    # -- order ----------------------------------------------------------------------------------

    def order_key(self, queue: Queue) -> Key:
        """Who asks below its min first, then priority, then the smaller share, from the top of the tree."""
        path = queue.path
        below = any(self._guaranteed[row] and self._asks_below_min(row) for row in path)
        return (not below, -queue.priority, *(self.share(row) for row in reversed(path)))

    def share(self, row: int) -> float:
        """The largest part of what it deserves that queue *row* holds.

        Whoever holds what it deserves nothing of comes after all others, by its part of the cluster.
        """
        epoch = self._state.queues.epoch
        known = self._shares.get(row)
        if known is None or known[0] != epoch:
            known = self._shares[row] = (epoch, float((self.holds(row) * self._per_deserved[row]).max()))
        return known[1]

    def nearest_first(self, claim: Claim, queue: Queue) -> Key:
        """Queues that share more ancestors with the claimant's give first."""
        return -len(set(claim.queue.path) & set(queue.path))

    def _asks_below_min(self, row: int) -> bool:
        wants = self._state.queues.pending[row] != 0
        return bool((wants & (self.holds(row) < self._least[row])).any())

    # -- taking from others ---------------------------------------------------------------------

    def may_take(self, queue: Queue, need: Ints, firm: bool) -> Refusal | None:
        """Why *queue* may not take *need* (R,) from others: it would pass its entitlement.

        Asked of what is really taken; what is idle may be borrowed besides. *firm* makes no
        difference: what counts is what the queue holds altogether.
        """
        del firm
        columns = np.flatnonzero(need > 0)
        first: Refusal | None = None
        for row in queue.path[: self.owed.reclaim_level + 1]:
            held, entitlement = self.holds(row), self.shares.entitlement[row]
            over = held[columns] + need[columns] - entitlement[columns]
            if (over <= 0).all():
                return None
            if first is None:
                at = int(columns[int(over.argmax())])
                first = self._over("Reclaim", row, at, int(need[at]), int(held[at]), int(entitlement[at]))
        return first

    def gives_up(self, claim: Claim, victims: Rows32) -> Mask:
        """(V,) whose queue holds more than it is owed of something *claim* may take."""
        given = np.zeros(len(victims), np.bool_)
        tasks = self._state.tasks
        of_queue = self._state.jobs.each(tasks.job[victims], lambda job: job.queue, NOWHERE)
        for row in np.unique(of_queue).tolist():
            if row != NOWHERE and row != claim.queue.row:
                where = np.flatnonzero(of_queue == row)
                given[where] = self._given_by(self._state.queues[row], claim, victims[where])
        return given

    def keeps(self, claim: Claim, victims: Rows32) -> tuple[Mask, str]:
        """(V,) True where protected from reclaim (inside a queue shares protect nobody), and why."""
        if claim.action != "reclaim":
            return np.zeros(len(victims), np.bool_), ""
        return ~self.gives_up(claim, victims), KEPT

    def _given_by(self, queue: Queue, claim: Claim, victims: Rows32) -> Mask:
        """(V,) which of *victims*, all of *queue*, it gives up to *claim*."""
        if not queue.reclaimable or queue.spec_problem:
            return np.zeros(len(victims), np.bool_)
        theirs = [row for row in queue.path if row not in claim.queue.path]
        mine = [row for row in claim.queue.path if row not in queue.path]
        if not theirs or not mine:
            return np.zeros(len(victims), np.bool_)
        useful: Mask = (
            self._over_at_all(theirs) & self._within(mine, claim.klass.charge) & (claim.klass.charge > 0)
        )
        if not useful.any():
            return np.zeros(len(victims), np.bool_)
        charges = self._state.accounts.charges_of(victims)
        spare = np.min([self._above_min(row) for row in theirs], axis=0)
        given: Mask = np.any(charges[:, useful] > 0, axis=1)
        unbroken: Mask = np.all((charges <= spare) | (charges == 0), axis=1)
        return given & unbroken

    def _over_at_all(self, rows: list[int]) -> Mask:
        """(R,) every queue of *rows* holds more than its entitlement."""
        over = [self.holds(row) > self.shares.entitlement[row] for row in rows]
        result: Mask = np.logical_and.reduce(over)
        return result

    def _within(self, rows: list[int], charge: Ints) -> Mask:
        """(R,) with *charge* more, queues from some allowed level up to the top of *rows* stay within."""
        stays = [self.holds(row) + charge <= self.shares.entitlement[row] for row in rows]
        levels = range(min(self.owed.reclaim_level, len(rows) - 1) + 1)
        reaches = [np.logical_and.reduce(stays[level:]) for level in levels]
        result: Mask = np.logical_or.reduce(reaches)
        return result

    def _above_min(self, row: int) -> Ints:
        """(R,) what queue *row* holds above its min; everything where it has none."""
        guarantee = self.owed.guarantee[row]
        return np.where(guarantee > 0, self.holds(row) - guarantee, UNLIMITED)

    # -- the gate -------------------------------------------------------------------------------

    def lets_in(self, job: Job) -> Vote | Refusal:
        """Whether the minimum of *job* fits under the limits, with what others at the gate will ask.

        Where an ancestor is full, a job inside the entitlement of the queue below it passes all the
        same: that room can be taken back.
        """
        if job.min_resources is None:
            return Vote.PERMIT
        self.books.refresh()
        asked = pad(job.min_resources, self._state.vocabulary.width)
        path = self._state.queues[job.queue].path
        firm = is_firm(self._state, job)
        borrow = self.shares.firm_borrow
        limit = self.owed.firm_limit if firm and borrow else self.shares.limit
        limit = np.minimum(limit, self._existing)
        for place, row in enumerate(path):
            short = self._short(row, asked, self._awaited(row), limit, "QueueLimit")
            if short is None and firm and not borrow:
                promised = self._firm(row) + self.books.coming_firm[row]
                short = self._short(row, asked, promised, self.shares.entitlement, "QueueEntitlement")
            if short is not None and (place == 0 or not self.entitled(path[place - 1], asked)):
                return short
        return Vote.PERMIT

    @cached_property
    def _existing(self) -> Ints:
        """(R,) all there is on nodes that are not cordoned; ``UNLIMITED`` where no node reports any."""
        nodes = self._state.nodes
        total = nodes.allocatable[nodes.live & ~nodes.unschedulable].sum(axis=0)
        return np.where(total > 0, total, UNLIMITED)

    def entitled(self, row: int, asked: Ints) -> bool:
        """Whether queue *row* would hold no more than it is entitled to with *asked* (R,) admitted."""
        return (
            self._short(row, asked, self._awaited(row), self.shares.entitlement, "QueueEntitlement") is None
        )

    def _awaited(self, row: int) -> Ints:
        """(R,) what queue *row* holds and will ask for, without what can be taken back."""
        awaited: Ints = self.holds(row) + self.books.coming[row] - self.books.elastic[row]
        return awaited

    def _short(self, row: int, asked: Ints, used: Ints, limit: Ints, reason: str) -> Refusal | None:
        over = np.where(asked > 0, used + asked - limit[row], 0)
        at = int(over.argmax())
        if over[at] <= 0:
            return None
        return self._over(reason, row, at, int(asked[at]), int(used[at]), int(limit[row, at]))


def _own_minimums(state: ClusterState, guarantee: Ints) -> Ints:
    """(Q, R) the minimum that each queue is served first for: its own, not the sum of its children's.

    A sum is met through the children that it came from; others below the same parent have no part in it.
    """
    return np.minimum(guarantee, state.queues.guarantee)


def _tighter(one: Room, other: Room) -> Room:
    return other if other.count < one.count else one


_BOUNDS: Final = {
    "QueueLimit": "its max of",
    "QueueEntitlement": "its entitlement (work that may not be interrupted can't borrow) of",
    "Reclaim": "its entitlement of",
}
