"""Filling a job: placing the members it needs, whole or not at all.

Shared by allocate, backfill, preempt and reclaim, so that every action means the same by "starts".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from volcano_py.scheduler.framework.excess import of_the_gang
from volcano_py.scheduler.framework.points import first_refusal
from volcano_py.scheduler.framework.refusal import Refusal, Room
from volcano_py.scheduler.framework.session import Session, as_rows
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.queues import Queue

GATED = Refusal("SchedulingGated", "the pod has scheduling gates")
BIND_FAILED: Final = "BindFailed"


Kind = tuple[int, bool]
"""Class row, firm."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a kind found no place.

    Attributes:
        refusal: the reason.
        seats: how many members had places then.
        looks_around: other pods decide where the kind may go.
    """

    refusal: Refusal
    seats: int
    looks_around: bool


@dataclass(slots=True)
class Worksheet:
    """What is left to place of a job in this cycle.

    A class that found no place finds none later in the cycle, unless it looks at other pods (affinity,
    spread): then members that have found places since may have made one for it.

    Attributes:
        job: whose sheet it is.
        waiting: tasks not tried yet, in placement order.
        failed: kinds that found no place.
        again: tasks of failed kinds that look at other pods, in placement order.
        taken: members taken off the sheet last, and how many had places then.
    """

    job: Job
    waiting: deque[int]
    failed: dict[Kind, Failure] = field(default_factory=dict)
    again: list[int] = field(default_factory=list)
    taken: tuple[Sequence[int], int] = ((), 0)

    @property
    def seats(self) -> int:
        """Members that are placed or promised a place."""
        return self.job.ready() + self.job.waiting()

    def fail(self, session: Session, tasks: Sequence[int]) -> None:
        """*tasks*, of those last taken, found no place."""
        failed, (members, seats) = set(tasks), self.taken
        for task in members:
            if task not in failed:
                seats += 1
                continue
            kind = _kind(session, task)
            known = self.failed.get(kind)
            looks = _looks_around(session, kind) if known is None else known.looks_around
            self.failed[kind] = Failure(session.refusals[task], seats, looks)
            if looks:
                self.again.append(task)

    def take(self, session: Session, count: int) -> list[int]:
        """The next *count* tasks off the sheet; fewer if no more are worth trying."""
        members: list[int] = []
        self.taken = members, self.seats
        while len(members) < count and (task := self.next(session, len(members))) is not None:
            members.append(task)
        return members

    def next(self, session: Session, before: int = 0) -> int | None:
        """The next task worth trying after *before* others; those passed over get their kind's refusal."""
        while self.waiting or self._try_again(session):
            task = self.waiting.popleft()
            known = self.failed.get(_kind(session, task)) if self.failed else None
            if known is None:
                return task
            if known.looks_around:
                if before or known.seats < self.seats:
                    return task
                self.again.append(task)
            session.refuse((task,), known.refusal)
        return None

    def has_more(self, session: Session) -> bool:
        """Some task is worth trying, now or again."""
        return bool(self.waiting) or self._try_again(session)

    def _try_again(self, session: Session) -> bool:
        """Put tasks back whose kind failed when fewer members had places; whether there are any."""
        seats = self.seats
        back = [task for task in self.again if self.failed[_kind(session, task)].seats < seats]
        if back:
            self.again = [task for task in self.again if task not in back]
            self.waiting.extend(back)
            for task in back:
                session.refusals.pop(task, None)
        return bool(back)


def _kind(session: Session, task: int) -> Kind:
    tasks = session.state.tasks
    return int(tasks.klass[task]), not tasks.interruptible[task]


def _looks_around(session: Session, kind: Kind) -> bool:
    return session.placer.looks_around(session.state.classes[kind[0]])


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive tasks of one class that may be treated alike.

    Attributes:
        firm: they have to fit into the entitlement: they may not be interrupted, and nobody has gone for them
            yet. What was promised in an earlier cycle is theirs though the entitlement has shrunk since.
    """

    klass: TaskClass
    firm: bool
    tasks: list[int]


def worksheet(session: Session, job: Job) -> Worksheet:
    """The pending tasks of *job* that may be placed: those with requests first, then the others."""
    tasks = session.state.tasks
    ordered = session.ordered(session.open_gates(job.pending))
    if job.gated:
        shut = [t for t in job.pending if tasks.gated[t]]
        session.refuse(shut, GATED)
        for task, why in session.state.holds.reasons(shut):
            session.refuse([task], Refusal(BIND_FAILED, why))
    if job.pending_best_effort:
        ordered.sort(key=lambda task: bool(tasks.best_effort[task]))
    return Worksheet(job, deque(ordered))


def take_members(session: Session, job: Job, sheet: Worksheet) -> list[int]:
    """Off the sheet: what the gang lacks (role minimums first), or one more if it is whole.

    Pods without requests come last on the sheet; those a whole gang does not need are backfill's.
    """
    if sheet.waiting and session.state.tasks.best_effort[sheet.waiting[0]] and session.job_ready(job):
        sheet.waiting.clear()
    lacking = 1 if session.job_ready(job) else max(job.min_member - job.ready() - job.waiting(), 1)
    if job.roles_enforced and not session.job_ready(job):
        return _with_roles(session, job, sheet, lacking)
    return sheet.take(session, lacking)


def _with_roles(session: Session, job: Job, sheet: Worksheet, lacking: int) -> list[int]:
    """*lacking* tasks off the sheet, those of roles below their minimum before all others."""
    roles = session.state.tasks.roles
    short = {r: m - job.ready(r) - job.waiting(r) for r, m in job.min_task_member.items()}
    lacking = max(lacking, sum(n for n in short.values() if n > 0))
    waiting = sheet.take(session, len(sheet.waiting) + len(sheet.again))
    first: list[int] = []
    others: list[int] = []
    for task in waiting:
        needed = short.get(roles[task], 0) > 0
        if needed:
            short[roles[task]] -= 1
        (first if needed else others).append(task)
    extra = max(lacking - len(first), 0)
    sheet.waiting.extend(others[extra:])
    chosen = {*first, *others[:extra]}
    members = [task for task in waiting if task in chosen]
    sheet.taken = members, sheet.taken[1]
    return members


def runs(session: Session, tasks: Sequence[int]) -> Iterator[Run]:
    """*tasks* as runs of one class and firmness, order kept."""
    table, classes = session.state.tasks, session.state.classes
    run: Run | None = None
    for task in tasks:
        klass = int(table.klass[task])
        firm = not table.interruptible[task] and task not in table.nominated
        if run is not None and run.klass.row == klass and run.firm == firm:
            run.tasks.append(task)
            continue
        if run is not None:
            yield run
        run = Run(classes[klass], firm, [task])
    if run is not None:
        yield run


def place(session: Session, statement: Statement, job: Job, queue: Queue, tasks: Sequence[int]) -> list[int]:
    """Place *tasks* of *job* one after another: idle room first, else room being released.

    Tasks with a reservation from an earlier cycle try its node first.

    Returns:
        The tasks that found no place, each with its refusal noted.
    """
    left: list[int] = []
    for run in runs(session, tasks):
        refusal = first_refusal(session.points.pre_predicate, run.klass, job)
        if refusal is not None:
            session.refuse(run.tasks, refusal)
            left += run.tasks
            continue
        pending = _nominated_first(session, statement, queue, run)
        if pending:
            left += _place_run(session, statement, queue, run, pending, tasks)
    return left


def fill_gang(session: Session, statement: Statement, job: Job, queue: Queue) -> bool:
    """Place pending members of *job* until the gang is whole or will be; whether some were and it is."""
    sheet, placed = worksheet(session, job), 0
    while members := take_members(session, job, sheet):
        left = place(session, statement, job, queue, members)
        sheet.fail(session, left)
        placed += len(members) - len(left)
        if placed and (session.job_ready(job) or session.job_pipelined(job)):
            return True
    return False


def _place_run(
    session: Session, statement: Statement, queue: Queue, run: Run, pending: list[int], gang: Sequence[int]
) -> list[int]:
    """Place *pending* of *run*: idle room, then room being released; returns those left.

    A limit of the queue is said of all the members placed together (*gang*).
    """
    room = session.room(queue, run.klass, firm=run.firm)
    wanted = pending[: max(room.count, 0)]
    placed = session.placer.fill(statement, run.klass, as_rows(wanted)) if wanted else 0
    if placed == len(pending):
        return []
    by_queue = placed == len(wanted)
    refusal = of_the_gang(_limit(room), statement, gang) if by_queue else session.placer.refusal(run.klass)
    pending = pending[placed:]
    later = session.room(queue, run.klass, firm=run.firm, future=True)
    wanted = pending[: max(later.count, 0)]
    promised = 0
    if wanted:
        promised = session.placer.fill_future(statement, run.klass, as_rows(wanted), anywhere=by_queue)
    left = pending[promised:]
    session.refuse(left, refusal)
    return left


def _nominated_first(session: Session, statement: Statement, queue: Queue, run: Run) -> list[int]:
    """Place those of *run* with a reservation on its node; returns the others."""
    nominated = session.state.tasks.nominated
    if not nominated or nominated.keys().isdisjoint(run.tasks):
        return run.tasks
    others = []
    for task in run.tasks:
        row = nominated.get(task, -1)
        free = row >= 0 and session.room(queue, run.klass, firm=run.firm).count > 0
        if not (free and session.placer.place_on(statement, run.klass, task, row)):
            others.append(task)
    return others


def _limit(room: Room) -> Refusal:
    refusal = room.refusal
    if refusal is None:
        raise ValueError("a room with a limit carries the refusal that explains it")
    return refusal
