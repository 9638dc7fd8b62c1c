"""Decisions: what a cycle wants done, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from volcano_py.scheduler.model.cards import Slice

if TYPE_CHECKING:
    from volcano_py.scheduler.model.cluster import ClusterState
    from volcano_py.scheduler.model.jobs import Job

Kind = Literal["bind", "pipeline", "evict"]


@dataclass(frozen=True, slots=True)
class EvictionCause:
    """Why a task is evicted.

    Attributes:
        for_job: claimant, "namespace/name" of its PodGroup.
        rule: the rule that allows it (``reclaim: queue a is 4 cpu over its entitlement``).
        lost: work lost, in core-seconds or card-seconds as text for people.
    """

    for_job: str
    rule: str
    lost: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing to do.

    Attributes:
        kind: bind, pipeline (keep room that is being released) or evict.
        pod: "namespace/name".
        node: where to, or where it runs.
        slices: cards handed out, in container order.
        action: the action that decided.
        for_whom: claimant of an eviction, "namespace/name".
        reason: one sentence.
        lost: work lost by an eviction.
    """

    kind: Kind
    pod: str
    node: str
    slices: tuple[Slice, ...] = ()
    action: str = ""
    for_whom: str = ""
    reason: str = ""
    lost: str = ""


def standing(job: Job) -> str:
    """Why members of *job* start now."""
    return f"fits; {job.ready()} of {job.min_member} members stand"


def bind(state: ClusterState, task: int, action: str, reason: str) -> Decision:
    """Start *task* on the node it stands on."""
    return _placement(state, task, "bind", action, reason)


def reservation(state: ClusterState, task: int, action: str, reason: str) -> Decision:
    """Keep the room being released on *task*'s node for it."""
    return _placement(state, task, "pipeline", action, reason)


def eviction(state: ClusterState, task: int, action: str, cause: EvictionCause) -> Decision:
    """Let *task* go."""
    node = state.nodes.names[state.tasks.node[task]]
    return Decision("evict", state.tasks.keys[task], node, (), action, cause.for_job, cause.rule, cause.lost)


def _placement(state: ClusterState, task: int, kind: Kind, action: str, reason: str) -> Decision:
    choice = state.tasks.slices.get(task)
    slices = () if choice is None else choice.slices
    node = state.nodes.names[state.tasks.node[task]]
    return Decision(kind, state.tasks.keys[task], node, slices, action, "", reason)
