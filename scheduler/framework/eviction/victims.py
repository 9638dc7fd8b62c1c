"""Who is offered for a claim: every task that may go, in units, cheapest first.

A unit goes or stays as one: a member that its gang can spare, or all of a gang that can spare nobody
more. What may not go is counted under the first reason, so that a claimant that gets nothing is told.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from volcano_py.scheduler.framework.claim import Claim
from volcano_py.scheduler.framework.contract import (
    CRITICAL,
    FIRM,
    MAY_GO,
    RECLAIM,
    SPARED,
    VICTIM_STATUSES,
    YOUNG,
    lost_work,
    verdicts,
)
from volcano_py.scheduler.framework.points import Point, victims_by_tier
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.resources import Ints, Mask, Rows32, Scores
from volcano_py.scheduler.model.tasks import NOWHERE, Status

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session

_REASONS: Final = {
    CRITICAL: "critical for the cluster",
    FIRM: "may not be interrupted",
    YOUNG: "younger than their minimum run time",
    SPARED: "could not be evicted a short while ago",
}
NOT_GIVEN_UP: Final = "kept by plugins {plugins}"
UNBREAKABLE: Final = "in gangs that would be broken"
Level = tuple[int, int]
"""Job priority, task priority; the lower goes first."""


@dataclass(eq=False, slots=True)
class Unit:
    """What goes or stays as one.

    Attributes:
        tasks: task rows.
        job, queue: rows.
        level: see ``Level``; of a whole gang the highest of its members.
        whole: all of a gang, rather than one member it can spare.
        lost: work lost, see ``contract.lost_work``.
        order: place among equals (by name).
        charge: (R,) what it costs its queue.
        spares: the spare members of the same gang; they go with the whole.
    """

    tasks: list[int]
    job: int
    queue: int
    level: Level
    whole: bool
    lost: float
    order: int
    charge: Ints
    spares: list[Unit] = field(default_factory=list)

    @property
    def key(self) -> tuple[Any, ...]:
        """What units of one queue sort by."""
        return (self.level, self.whole, self.lost, self.order)


class Standing:
    """Everybody who could be asked by one action, whoever claims: the tasks that stand on live nodes.

    Attributes:
        tasks: (V,) task rows, those that go first before others (queues aside).
        verdict: (V,) what the contract says.
        queue, job_priority, charge, lost: (V,), (V,), (V, R), (V,).
    """

    def __init__(self, session: Session, action: str) -> None:
        state = session.state
        table = state.tasks
        stands = np.isin(table.status, [int(s) for s in VICTIM_STATUSES[action]])
        stands &= (table.job != NOWHERE) & (table.klass != NOWHERE) & (table.node != NOWHERE)
        rows = np.flatnonzero(stands).astype(np.int32)
        rows = rows[state.nodes.live[table.node[rows]]]
        jobs = table.job[rows]
        queues = state.jobs.each(jobs, lambda job: job.queue, NOWHERE)
        priorities = state.jobs.each(jobs, lambda job: job.priority, 0)
        charges = state.accounts.charges_of(rows)
        lost = lost_work(session, rows, charges)
        order = np.lexsort((_name_ranks(session, rows), lost, table.priority[rows], priorities))
        self.tasks: Rows32 = rows[order]
        self.queue: Ints = queues[order]
        self.job_priority: Ints = priorities[order]
        self.charge: Ints = charges[order]
        self.lost: Scores = lost[order]
        self.verdict = verdicts(session, self.tasks)

    def in_scope(self, session: Session, claim: Claim, *, own_job: bool) -> Mask:
        """(V,) whom *claim* could address at all: its own queue, or across queues all others that lend."""
        table = session.state.tasks
        mine: Mask = self.queue == claim.queue.row
        statuses = [int(s) for s in VICTIM_STATUSES[claim.action]]
        still: Mask = np.isin(table.status[self.tasks], statuses)
        if claim.action == RECLAIM:
            lends = np.array([q is not None and q.reclaimable for q in session.state.queues.queues], np.bool_)
            others: Mask = still & ~mine & (self.queue != NOWHERE) & lends[self.queue]
            return others
        of_job: Mask = table.job[self.tasks] == claim.job.row
        scope = still & mine & (of_job if own_job else ~of_job)
        if claim.klass.best_effort:
            scope &= table.best_effort[self.tasks]
        return scope


def _name_ranks(session: Session, tasks: Rows32) -> Ints:
    """(T,) place of each task by the tie key of its name."""
    keys, tie = session.state.tasks.keys, session.state.tie_key
    names = [(tie(keys[task]), keys[task]) for task in tasks.tolist()]
    ranks = np.empty(len(names), np.int64)
    ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return ranks


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """Who may go for a claim.

    Attributes:
        units: in the order of ``Unit.key``.
        kept: why others may not, with their number.
    """

    units: list[Unit]
    kept: Counter[str]

    def refusal(self) -> str:
        """Why nobody, or not enough, may be evicted."""
        kept = ", ".join(f"{count} {reason}" for reason, count in self.kept.most_common())
        if not self.units:
            return f"no victim: {kept}" if kept else "no victim: nobody else runs there"
        enough = f"{sum(len(unit.tasks) for unit in self.units)} pods may go, which would not make room"
        return f"{enough} ({kept})" if kept else enough


def make_offer(session: Session, standing: Standing, claim: Claim, *, own_job: bool = False) -> Offer:
    """Ask the contract and the plugins who may go for *claim*; *own_job*: pods of the claimant itself."""
    scope = standing.in_scope(session, claim, own_job=own_job)
    kept: Counter[str] = Counter()
    for verdict, reason in _REASONS.items():
        count = int(np.count_nonzero(scope & (standing.verdict == verdict)))
        if count:
            kept[reason] += count
    where = np.flatnonzero(scope & (standing.verdict == MAY_GO))
    where = where[_agreed(session, claim, standing.tasks[where], kept)]
    return Offer(_units(session, standing, where, kept, own_job=own_job), kept)


def _agreed(session: Session, claim: Claim, tasks: Rows32, kept: Counter[str]) -> Mask:
    """(T,) whom no plugin protects and the votes give up."""
    agreed = np.ones(len(tasks), np.bool_)
    if len(tasks) == 0:
        return agreed
    for entry in session.points.protects:
        protected, reason = entry.call(claim, tasks)
        count = int(np.count_nonzero(agreed & protected))
        if count:
            kept[f"protected by {entry.plugin}: {reason}"] += count
        agreed &= ~protected
    point: Point[Any] = session.points.reclaimable if claim.action == RECLAIM else session.points.preemptable
    where = np.flatnonzero(agreed)
    given = victims_by_tier(point, claim, tasks[where])
    if not given.all():
        plugins = ", ".join(dict.fromkeys(entry.plugin for entry in point)) or "any plugin"
        kept[NOT_GIVEN_UP.format(plugins=plugins)] += int(np.count_nonzero(~given))
    agreed[where] = given
    return agreed


def still_agreed(session: Session, claim: Claim, units: list[Unit]) -> bool:
    """Whether nobody has changed their mind about *units* since they were offered."""
    tasks = np.array([task for unit in units for task in unit.tasks], np.int32)
    return bool(_agreed(session, claim, tasks, Counter()).all())


def leaves_whole(session: Session, unit: Unit, with_it: int) -> bool:
    """Whether the gang of *unit*, as it stands now, can spare it, or goes whole with it.

    Others may have been taken since the unit was made up, for another class or another claim.

    Args:
        session: for the books.
        unit: a member or a whole gang.
        with_it: how many tasks go with the unit, itself included.
    """
    job = session.state.jobs[unit.job]
    if _standing_members(job) == with_it:
        return True
    if unit.whole or job.ready() <= job.min_member:
        return False
    role = session.state.tasks.roles[unit.tasks[0]]
    least = job.min_task_member.get(role) if job.roles_enforced else None
    return least is None or job.ready(role) > least


def _units(
    session: Session, standing: Standing, where: Ints, kept: Counter[str], *, own_job: bool
) -> list[Unit]:
    """Units of the tasks at *where* in *standing*, without gangs that can be neither thinned nor taken."""
    tasks = session.state.tasks
    by_job: dict[int, list[Unit]] = {}
    rows = standing.tasks[where]
    columns = (
        rows.tolist(),
        tasks.job[rows].tolist(),
        standing.queue[where].tolist(),
        standing.job_priority[where].tolist(),
        tasks.priority[rows].tolist(),
        standing.lost[where].tolist(),
    )
    charges = standing.charge[where]
    for order, (task, job, queue, high, low, lost) in enumerate(zip(*columns, strict=True)):
        unit = Unit([task], job, queue, (high, low), False, lost, order, charges[order])
        by_job.setdefault(job, []).append(unit)
    units: list[Unit] = []
    for row, members in by_job.items():
        if own_job:
            units += members
            continue
        job = session.state.jobs[row]
        spares = _spared(session, job, members)
        units += spares
        rest = len(members) - len(spares)
        if rest and len(members) == _standing_members(job):
            units.append(_whole(members, spares))
        elif rest:
            kept[UNBREAKABLE] += rest
    units.sort(key=lambda unit: unit.key)
    return units


def _standing_members(job: Job) -> int:
    """Members that would be left running if nobody went."""
    return job.allocated() + job.count(Status.UNKNOWN)


def _spared(session: Session, job: Job, members: list[Unit]) -> list[Unit]:
    """The first of *members* (cheapest first) that can go while the gang stays at its minimums."""
    spare = job.ready() - job.min_member
    if spare <= 0:
        return []
    if not job.roles_enforced:
        return members[:spare]
    roles = session.state.tasks.roles
    left = {role: job.ready(role) - least for role, least in job.min_task_member.items()}
    spared: list[Unit] = []
    for unit in members:
        role = roles[unit.tasks[0]]
        if len(spared) < spare and left.get(role, 1) > 0:
            spared.append(unit)
            if role in left:
                left[role] -= 1
    return spared


def _whole(members: list[Unit], spares: list[Unit]) -> Unit:
    """The gang as one unit; its own tasks are those that are not spare, spares are told apart."""
    if len(members) == 1:
        members[0].whole = True
        return members[0]
    spared = {unit.tasks[0] for unit in spares}
    core = [unit for unit in members if unit.tasks[0] not in spared]
    first = members[0]
    return Unit(
        [unit.tasks[0] for unit in core],
        first.job,
        first.queue,
        max(unit.level for unit in members),
        True,
        sum(unit.lost for unit in core),
        min(unit.order for unit in members),
        np.sum([unit.charge for unit in core], axis=0),
        spares,
    )
