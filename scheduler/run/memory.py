"""What an engine remembers beyond the objects it was told of, and how a new engine is given it.

Objects say almost everything. What they do not say yet: binds and evictions that were decided and that the
cluster has not confirmed, room that is kept for gangs, and what was last said of each PodGroup. Whoever
makes an engine anew (a new configuration, a fault in a cycle, a replay from the middle of a journal) takes
this along, so that the new engine decides as the old one would have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from volcano_py.scheduler.framework.close import GroupStatus
from volcano_py.scheduler.model.cards import CardChoice
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.holds import Hold
from volcano_py.scheduler.model.tasks import NOWHERE, Status

_DECIDED = (Status.BINDING, Status.RELEASING)


@dataclass(frozen=True, slots=True)
class Undone:
    """What a broken cycle left behind.

    Attributes:
        decided: keys of pods it had decided on; nobody was told.
        leaving: keys of pods that earlier cycles had evicted.
    """

    decided: frozenset[str]
    leaving: frozenset[str]


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod that was decided on and whose own object does not tell of it yet.

    Attributes:
        key: "namespace/name"; ``uid``: which pod of that name.
        leaves: it was evicted; else it was bound.
        node: where it stands.
        cards: what it holds there.
    """

    key: str
    uid: str
    leaves: bool
    node: str
    cards: CardChoice | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A pod that could not be bound or evicted lately: a ``Hold`` with its UID."""

    uid: str
    evicted: bool
    hold: Hold


@dataclass(frozen=True, slots=True)
class Standing:
    """What the engine made of a PodGroup: see ``Job.phase``, ``Job.started`` and ``Job.said``."""

    key: str
    phase: str
    started: bool
    said: GroupStatus | None


@dataclass(frozen=True, slots=True)
class Memory:
    """See the module.

    Attributes:
        pinned: pod key -> volumes ordered for its claims, see ``Volumes.pin``.
        nominated: pod key -> node where room is kept for it.
    """

    placed: tuple[Placed, ...] = ()
    held: tuple[Held, ...] = ()
    pinned: tuple[tuple[str, dict[str, str]], ...] = ()
    nominated: tuple[tuple[str, str], ...] = ()
    groups: tuple[Standing, ...] = ()


def memory_of(state: ClusterState, *, broken_off: Undone | None = None) -> Memory:
    """What *state* remembers.

    Args:
        state: of an engine.
        broken_off: of a cycle that did not end, since nothing of it counts.
    """
    without = frozenset() if broken_off is None else broken_off.decided
    tasks, nodes = state.tasks, state.nodes
    status = tasks.status[: tasks.size]
    placed = []
    for task in np.flatnonzero(np.isin(status, _DECIDED)).tolist():
        pod, key = tasks.pods[task], tasks.keys[task]
        leaves = bool(status[task] == Status.RELEASING)
        if pod is None or key in without or (leaves and pod.metadata.deletion_timestamp is not None):
            continue
        if leaves and broken_off is not None and key not in broken_off.leaving:
            continue  # evicted by a statement that was never committed
        node = nodes.names[tasks.node[task]]
        placed.append(Placed(key, tasks.uids[task], leaves, node, tasks.slices.get(task)))
    nominated = [
        (tasks.keys[task], nodes.names[row])
        for task, row in tasks.nominated.items()
        if tasks.keys[task] not in without
    ]
    return Memory(
        tuple(placed),
        tuple(_helds(state)),
        tuple((pod, volumes) for pod, volumes in state.volumes.pins().items() if pod not in without),
        tuple(nominated),
        tuple(_standings(state)),
    )


def recall_holds(state: ClusterState, memory: Memory) -> None:
    """Give a *state* that knows nothing yet the holds of *memory*: pods are gated by them as they come."""
    for held in memory.held:
        holds = state.holds.evictions if held.evicted else state.holds.binds
        holds[held.uid] = replace(held.hold)


def remember(state: ClusterState, memory: Memory) -> None:
    """Give *memory* to a *state* that knows the objects; what no longer fits them is left out.

    Before the objects came, ``recall_holds`` has done its part.
    """
    for pod, volumes in memory.pinned:
        state.volumes.pin(pod, volumes)
    for placed in memory.placed:
        _place(state, placed)
    tasks = state.tasks
    for key, node in memory.nominated:
        task = tasks.index.get(key)
        if task is not None and tasks.status[task] == Status.PENDING:
            tasks.nominated[task] = state.nodes.row(node)
    for standing in memory.groups:
        job = state.jobs.named(standing.key)
        if job is not None and job.group is not None:
            state.set_phase(job, standing.phase)
            job.started, job.said = standing.started, standing.said


def _place(state: ClusterState, placed: Placed) -> None:
    tasks = state.tasks
    task = tasks.index.get(placed.key)
    if task is None or tasks.uids[task] != placed.uid:
        return
    if not placed.leaves:
        if tasks.status[task] == Status.PENDING:
            row = np.array([state.nodes.row(placed.node)], np.int32)
            state.accounts.move([task], Status.BINDING, row, [placed.cards])
    elif tasks.node[task] != NOWHERE and tasks.status[task] != Status.RELEASING:
        state.accounts.move([task], Status.RELEASING, tasks.node[task : task + 1].copy())


def _helds(state: ClusterState) -> list[Held]:
    return [
        Held(uid, evicted, replace(hold))
        for evicted, holds in ((False, state.holds.binds), (True, state.holds.evictions))
        for uid, hold in holds.items()
    ]


def _standings(state: ClusterState) -> list[Standing]:
    return [
        Standing(job.key, job.phase, job.started, job.said if isinstance(job.said, GroupStatus) else None)
        for job in state.jobs.live()
        if job.group is not None
    ]
