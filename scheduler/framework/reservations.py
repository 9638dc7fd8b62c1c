"""Room kept for gangs that wait for releasing pods, from one cycle to the next.

A reservation (a nominated node for each member) is made by allocate, preempt or reclaim. The next cycle
starts by promising that room again, so nobody else takes it; when the job's turn comes, its
reservation is released first and it is placed like any other, its own node preferred. A reservation
ends when the room no longer suffices or nothing is on its way out any more (decisions.md 17).

Promises are restored and kept by name, but who asks a card for no cores goes before all others: a card
whose cores are all given out takes nobody else, so beside theirs such a promise could be lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.scheduler.model.cards import CardChoice
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.resources import Rows32
from volcano_py.scheduler.model.tasks import NOWHERE, Status

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session
    from volcano_py.scheduler.framework.statement import Statement
    from volcano_py.scheduler.model.cluster import ClusterState

RESTORE: Final = "reserve"
"""What the statements that keep room are called, where an action's name stands otherwise."""
WAITS: Final = "waits for pods that are leaving"


class Reservations:
    """The reservations of one session, by job."""

    def __init__(self) -> None:
        self._statements: dict[int, Statement] = {}

    def jobs(self) -> set[int]:
        """Rows of jobs whose reservation stands."""
        return set(self._statements)

    def waves(self, session: Session, jobs: Iterable[Job]) -> list[list[Job]]:
        """*jobs* with promises, by name, in the waves in which these are kept."""
        tasks = session.state.tasks
        coreless = {int(tasks.job[task]) for task in tasks.nominated if _asks_no_cores(session.state, task)}
        named = sorted(jobs, key=lambda job: job.key)
        waves = (
            [job for job in named if job.row in coreless],
            [job for job in named if job.row not in coreless],
        )
        return [wave for wave in waves if wave]

    def restore_all(self, session: Session) -> None:
        """Promise again what earlier cycles promised; nominations that no longer hold are dropped."""
        tasks = session.state.tasks
        self._restore(session, [task for task in tasks.nominated if tasks.job[task] != NOWHERE])

    def restore(self, session: Session, job: Job) -> None:
        """Promise *job*'s nominated nodes again; nominations that no longer hold are dropped."""
        tasks = session.state.tasks
        self._restore(session, [task for task in tasks.nominated if tasks.job[task] == job.row])

    def release(self, job: Job) -> None:
        """*job*'s turn has come: its tasks are pending again and the room is free for them."""
        statement = self._statements.pop(job.row, None)
        if statement is not None:
            statement.discard()

    def keep(self, session: Session, held: list[Statement]) -> None:
        """End of the cycle: held gangs become reservations; spent reservations are dropped."""
        for statement in held:
            _reserve(session, statement)
        self._drop_spent(session)
        for job_row in sorted(self._statements):
            self._statements[job_row].discard()
        self._statements.clear()
        _unpromise(session)

    def _restore(self, session: Session, tasks: list[int]) -> None:
        """Promise *tasks* their nodes, in order; one may count on another that comes later."""
        state = session.state
        keys = state.tasks.keys
        waiting = sorted(
            tasks,
            key=lambda task: (
                not _asks_no_cores(state, task),
                state.jobs[int(state.tasks.job[task])].key,
                keys[task],
            ),
        )
        while waiting:
            left = [task for task in waiting if not self._restore_task(session, task)]
            if len(left) == len(waiting):
                break
            waiting = left
        for task in waiting:
            del state.tasks.nominated[task]

    def _restore_task(self, session: Session, task: int) -> bool:
        state, placer = session.state, session.placer
        row = state.tasks.nominated[task]
        if state.tasks.status[task] != Status.PENDING or not state.nodes.live[row]:
            return False
        klass = state.classes[int(state.tasks.klass[task])]
        where = np.array([row], np.int32)
        if not placer.fits_future(klass, where)[0]:
            return False
        job = int(state.tasks.job[task])
        statement = self._statements.get(job)
        if statement is None:
            statement = self._statements[job] = session.statement(RESTORE)
        statement.pipeline(np.array([task], np.int32), where, placer.cards(klass, row, future=True))
        return True

    def _drop_spent(self, session: Session) -> None:
        """A job keeps its reservations while anything on any of their nodes is on its way out."""
        state = session.state
        on_its_way: dict[int, bool] = {}
        for task, row in state.tasks.nominated.items():
            job = int(state.tasks.job[task])
            leaving = bool((state.nodes.releasing[row] > 0).any())
            on_its_way[job] = on_its_way.get(job, False) or leaving
        for task in list(state.tasks.nominated):
            if not on_its_way[int(state.tasks.job[task])]:
                del state.tasks.nominated[task]


def _asks_no_cores(state: ClusterState, task: int) -> bool:
    """A slice of a card's memory without any of its cores."""
    klass: TaskClass = state.classes[int(state.tasks.klass[task])]
    if klass.cards is None:
        return False
    measures = state.card_source.measures
    columns = [state.vocabulary.column(name) for name, what in measures.items() if what == "cores"]
    return not klass.charge[columns].any()


def _unpromise(session: Session) -> None:
    """Between cycles promised tasks are pending; their nominations say where the next one puts them."""
    table = session.state.tasks
    for task in np.flatnonzero(table.status[: table.size] == Status.PIPELINED).tolist():
        session.statement(RESTORE).unplace(np.array([task], np.int32))


def _reserve(session: Session, statement: Statement) -> None:
    """All that *statement* placed, on idle room or promised, becomes a promise on the same nodes."""
    state = session.state
    placed: list[tuple[Rows32, Rows32, list[CardChoice] | None]] = []
    for operation in statement.operations:
        for task in operation.before.tasks.tolist():
            if state.tasks.status[task] not in (Status.ALLOCATED, Status.PIPELINED):
                continue
            choice = state.tasks.slices.get(task)
            rows = state.tasks.node[task : task + 1].copy()
            placed.append((np.array([task], np.int32), rows, None if choice is None else [choice]))
    statement.discard()
    for tasks, rows, choices in placed:
        statement.pipeline(tasks, rows, choices)
    statement.commit(waits=WAITS)
