"""Any sequence of operations, taken back, leaves every account as it was."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.clusters import engine, group, node, pod
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.framework.decision import EvictionCause
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.rows import Rows
from volcano_py.scheduler.model.tasks import Status

CAUSE = EvictionCause("ml/claimant", "test")
CHANGE_COUNTERS = {"version"}


def cluster() -> Engine:
    nodes = [node(f"n{i}", cpu="8") for i in range(3)]
    groups = [group("g", 2), group("h", 1), group("r", 1, phase="Running")]
    waiting = [pod(f"{name}-{i}", name, cpu=str(1 + i % 2)) for name in "gh" for i in range(4)]
    running = [pod(f"r-{i}", "r", on=f"n{i % 3}") for i in range(5)]
    leaving = [pod("r-9", "r", on="n0", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})]
    return engine(*nodes, *groups, *waiting, *running, *leaving)


def books(made: Engine) -> dict[str, object]:
    """Every amount, count and set of the state, for comparing."""
    state = made.state
    tables: dict[str, Rows] = {
        "tasks": state.tasks,
        "nodes": state.nodes,
        "jobs": state.jobs,
        "queues": state.queues,
    }
    arrays = {
        f"{table}.{name}": getattr(rows, name).tobytes()
        for table, rows in tables.items()
        for name in rows.COLUMNS
        if name not in CHANGE_COUNTERS
    }
    jobs = {
        job.key: (sorted(job.pending), list(job.counts), job.gated, job.pending_best_effort, job.phase)
        for job in state.jobs.live()
    }
    return {**arrays, **jobs, "slices": dict(state.tasks.slices), "waiting": set(state.jobs.with_pending)}


def step(session: Session, statement: Statement, kind: int, pick: int, where: int) -> None:
    """One operation that is possible now, if any is."""
    tasks = session.state.tasks
    statuses = {
        0: (Status.PENDING,),
        1: (Status.PENDING,),
        2: (Status.RUNNING,),
        3: (Status.ALLOCATED, Status.PIPELINED),
    }
    fitting = [t for t in tasks.index.values() if tasks.status[t] in statuses[kind]]
    if not fitting:
        return
    task = fitting[pick % len(fitting)]
    rows, nodes = np.array([task], np.int32), np.array([where % 3], np.int32)
    if kind == 0:
        statement.allocate(rows, nodes)
    elif kind == 1:
        statement.pipeline(rows, nodes)
    elif kind == 2:
        statement.evict(task, CAUSE)
    else:
        statement.unplace(rows)


STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 2)), max_size=25)


@given(STEPS, STEPS)
def test_discard_restores_every_byte(
    first: list[tuple[int, int, int]], second: list[tuple[int, int, int]]
) -> None:
    made = cluster()
    session = made.open(0.0)
    before = books(made)
    statement = session.statement("test")
    for one in first:
        step(session, statement, *one)
    mark, half = statement.mark(), books(made)
    for one in second:
        step(session, statement, *one)
    statement.rollback(mark)
    assert books(made) == half
    statement.discard()
    assert books(made) == before
    assert not session.decisions


@given(STEPS)
def test_accounts_equal_a_recount(steps: list[tuple[int, int, int]]) -> None:
    made = cluster()
    session = made.open(0.0)
    statement = session.statement("test")
    for one in steps:
        step(session, statement, *one)
    state = made.state
    used = np.zeros_like(state.nodes.used)
    allocated = np.zeros_like(state.queues.allocated)
    for task in state.tasks.index.values():
        request = state.classes[int(state.tasks.klass[task])].request
        status, row = state.tasks.status[task], state.tasks.node[task]
        if status in (Status.ALLOCATED, Status.BINDING, Status.BOUND, Status.RUNNING, Status.RELEASING):
            used[row] += request
            allocated[state.jobs[int(state.tasks.job[task])].queue] += request
    assert (state.nodes.used == used).all()
    assert (state.queues.allocated == allocated).all()


def test_batch_of_one_class_is_one_operation() -> None:
    made = engine(node("n0", cpu="8"), group("g", 4), *[pod(f"g-{i}", "g") for i in range(4)])
    session = made.open(0.0)
    statement = session.statement("test")
    tasks = np.array(sorted(made.state.tasks.index.values()), np.int32)
    statement.allocate(tasks, np.zeros(4, np.int32))
    assert statement.mark() == 1
    assert made.state.nodes.used[0][0] == 4000
    decisions = statement.commit("because")
    assert [d.kind for d in decisions] == ["bind"] * 4
    assert {d.reason for d in decisions} == {"because"}
    assert made.state.jobs.named("ml/g").count(Status.BINDING) == 4  # type: ignore[union-attr]


def test_a_pod_that_runs_nowhere_is_booked_nowhere() -> None:
    for phase in ("Running", "Unknown"):
        made = engine(node("n0"), group("g", 1), pod("g-0", "g", status={"phase": phase}))
        assert not made.state.nodes.used.any(), phase
