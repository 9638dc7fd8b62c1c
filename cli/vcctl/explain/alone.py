"""What the gate hides: whether a group that is not admitted would find room if nothing else ran.

The gate compares sums, and refuses before any node is looked at. That no card is as large as a pod asks,
people would learn only once the sums fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from volcano_py.cli.vcctl.doctor.alone import EVICTING, room_refusal
from volcano_py.cli.vcctl.snapshot import Listed, Snapshot, fed, row_waits
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.model.jobs import Job

LEFT_OUT: Final = EVICTING | {"enqueue"}


def behind_the_gate(seen: Snapshot, job: Job) -> Refusal | None:
    """Why *job*, which waits at the gate, would not start alone in the cluster; None if it would."""
    if not job.tasks or not row_waits(seen.engine, job):
        return None
    config = seen.source.config
    config = replace(config, actions=tuple(each for each in config.actions if each not in LEFT_OUT))
    engine = fed(replace(seen.source, config=config), _without_others(seen, job))
    refusal = room_refusal(engine, engine.cycle(seen.now), job)
    if refusal is None:
        return None
    return replace(
        refusal, message=f"once admitted, alone in the cluster, it would not start: {refusal.message}"
    )


def _without_others(seen: Snapshot, job: Job) -> Iterator[Listed]:
    """The objects of *seen* without pods and PodGroups that are not of *job*."""
    keys = seen.engine.state.tasks.keys
    own = {("PodGroup", job.key), *(("Pod", keys[task]) for task in job.tasks)}
    for one in seen.objects:
        if one.kind not in ("Pod", "PodGroup") or (one.kind, one.key) in own:
            yield one
