"""Limits of queues on resources that no node has: they limit nothing, which is seldom what was meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from volcano_py.cli.vcctl.doctor.finding import Evidence, Finding
from volcano_py.crds.messages import did_you_mean
from volcano_py.scheduler.model.wording import offered

FIELDS: Final = (("capability",), ("max",), ("deserved",), ("min",), ("guarantee", "resource"))
ALWAYS: Final = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})


def check(evidence: Evidence) -> Iterator[Finding]:
    """One finding a queue and resource."""
    state = evidence.engine.state
    if not state.nodes.live.any():
        return
    known = offered(state)
    columns = {state.vocabulary.columns[name] for name in known if name in state.vocabulary.columns}
    for queue in evidence.of("Queue"):
        for path in FIELDS:
            for resource in _at(queue, path):
                if resource in ALWAYS or state.vocabulary.columns.get(resource) in columns:
                    continue
                yield Finding(
                    "warning",
                    f"Queue {queue['metadata']['name']}",
                    f"spec.{'.'.join(path)} names {resource}, which no node has",
                    f"correct the name{did_you_mean(resource, known)}, or find out why no node reports it",
                )


def _at(queue: dict[str, object], path: tuple[str, ...]) -> list[str]:
    here: object = queue.get("spec") or {}
    for step in path:
        here = here.get(step) if isinstance(here, dict) else None
    return sorted(here) if isinstance(here, dict) else []
