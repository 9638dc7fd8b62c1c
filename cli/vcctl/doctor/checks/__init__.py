"""The checks, one a file; each is listed here with what it looks for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from volcano_py.cli.vcctl.doctor.checks import (
    clocks,
    crds,
    device_plugins,
    gangs,
    gpu_labels,
    missing_queues,
    objects,
    queue_resources,
    queue_tree,
    rbac,
    schedulers,
    whole_cards,
)
from volcano_py.cli.vcctl.doctor.finding import Check, Evidence, Finding

CHECKS: Final[dict[str, tuple[str, Check]]] = {
    "crds": ("CRDs that are missing or older than this program.", crds.check),
    "rbac": ("Rights that the components' service accounts lack.", rbac.check),
    "clocks": ("Clocks of the server and of nodes that are off.", clocks.check),
    "schedulers": ("Pods that wait for a scheduler nobody runs.", schedulers.check),
    "queue-tree": ("Queues whose parent is missing or that form a circle.", queue_tree.check),
    "queue-resources": ("Limits on resources that no node has.", queue_resources.check),
    "missing-queues": ("PodGroups that no queue serves, pods without their group.", missing_queues.check),
    "gangs": ("Gangs larger than the cluster or their queue can ever hold.", gangs.check),
    "device-plugins": ("Two device plugins that report one card.", device_plugins.check),
    "gpu-labels": ("GPU nodes that no device plugin selects.", gpu_labels.check),
    "whole-cards": ("Whole-card pods in the way of pods that ask for slices.", whole_cards.check),
    "objects": ("Objects that can't be read, or only with doubts.", objects.check),
}
"""Name -> (what it looks for, the check)."""


def findings(evidence: Evidence, names: Collection[str]) -> Iterator[Finding]:
    """What the checks called *names* find, in the order of the registry."""
    for name, (_, check) in CHECKS.items():
        if name in names:
            for found in check(evidence):
                yield Finding(found.severity, found.object, found.evidence, found.fix, name)
