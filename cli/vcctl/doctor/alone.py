"""Would a gang start if it were alone in the cluster? Asked of the scheduler's own engine.

Sums of resources don't tell: cards are whole or have room for slices, pods choose nodes, zones and ports. A
gang that is refused with nobody else there waits for ever, as its nodes and its queue are now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from volcano_py.cli.vcctl.doctor.finding import Document, Evidence, annotations_of, name_of
from volcano_py.cli.vcctl.snapshot import as_listed, take_in
from volcano_py.cli.vcctl.tables import counted
from volcano_py.crds.annotations import GROUP
from volcano_py.scheduler.engine import CycleResult, Engine
from volcano_py.scheduler.framework.explain import shortened
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.model.jobs import Job

WANTS_ROOM: Final = frozenset(
    {"ClusterFull", "GangIncomplete", "NodesUnfit", "NotOffered", "QueueEntitlement", "QueueLimit"}
)
"""Refusals that say that there is not enough of something; others are about what somebody has to do first."""

LINES: Final = 3
"""What rules out most nodes; the rest is a count."""

EVICTING: Final = frozenset({"preempt", "reclaim"})


def room_refusal(engine: Engine, result: CycleResult, job: Job) -> Refusal | None:
    """Why *job* found no room in *result* of *engine*, which holds no other pods.

    Returns:
        None if it starts, or waits for something else.
    """
    twin = engine.state.jobs.named(job.key)
    whole = result.job_refusals.get(job.key)
    others = {one.reason for one in (*result.refusals.values(), whole) if one is not None} - WANTS_ROOM
    if others or twin is None or twin.ready() >= twin.min_member:
        return None
    if len(result.refusals) == 1 and job.min_member == 1:
        return next(iter(result.refusals.values()))  # a gang of one adds nothing to it
    return whole


def briefly(whole: Refusal, members: Sequence[Refusal]) -> str:
    """The sentence of *whole*, a gang's or that of its only pod, with the leading few of its reasons.

    Args:
        whole: why the gang waits.
        members: why each pod of it does.
    """
    counts = Counter(each.message for each in members)
    first = min(members, key=lambda each: (-counts[each.message], each.message), default=None)
    if first is None or first.message not in whole.message:
        return whole.message  # it is not about its pods
    before, _, _ = whole.message.partition(first.message)
    others, told = len(counts) - 1, shortened(first, LINES)
    if others:
        told = f"{told.rstrip('.')}; and {counted(others, 'other reason')}"
    return before + told


class EmptyCluster:
    """The cluster of *evidence* without its pods and PodGroups."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._engine: Engine | None = None
        self._members: dict[str, list[Document]] = {}

    def refusal(self, job: Job) -> Refusal | None:
        """Why the gang *job* finds no room there; None if it starts, or waits for something else."""
        engine = self._engine = self._engine or self._emptied()
        members = self._members.get(job.key, [])
        take_in(engine, map(as_listed, members))
        result = engine.cycle(self._evidence.now)
        refusal = room_refusal(engine, result, job)
        for each in reversed(members):
            engine.delete(str(each["kind"]), name_of(each))
        return refusal and replace(refusal, message=briefly(refusal, list(result.refusals.values())))

    def _emptied(self) -> Engine:
        for group in self._evidence.of("PodGroup"):
            self._members[name_of(group)] = [group]
        for pod in self._evidence.of("Pod"):
            namespace, _, _ = name_of(pod).partition("/")
            self._members.setdefault(f"{namespace}/{annotations_of(pod).get(GROUP, '')}", []).append(pod)
        config = self._evidence.engine.config
        # Nobody is there to be evicted, and need not be told so.
        engine = Engine(replace(config, actions=tuple(a for a in config.actions if a not in EVICTING)))
        for kind, documents in self._evidence.objects.items():
            if kind not in ("Pod", "PodGroup"):
                take_in(engine, map(as_listed, documents))
        return engine
