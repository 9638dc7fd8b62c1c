"""What a controller process is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass, field

from volcano_py.controllers.podgroup.build import Rules
from volcano_py.controllers.reconciler import Limits
from volcano_py.scheduler.probes import Address

__all__ = ["Election", "Options"]


@dataclass(frozen=True, slots=True)
class Election:
    """The Lease to campaign for; its namespace must exist."""

    namespace: str = "volcano-system"
    name: str = "volcano-py-controller"


@dataclass(frozen=True, slots=True)
class Options:
    """All of it.

    Attributes:
        kubeconfig: as for ``Api.connect``, like *context*.
        scheduler_names: whose pods get PodGroups.
        rules: how pods become PodGroups; their default queue is made where it is missing.
        election: None: no other controller may run.
        listening: None: nowhere.
        list_every_s: seconds between complete lists of a kind.
        limits: how hard the server is pressed.
    """

    kubeconfig: str | None = None
    context: str | None = None
    scheduler_names: tuple[str, ...] = ("volcano-py", "volcano")
    rules: Rules = field(default_factory=Rules)
    election: Election | None = Election()
    listening: Address | None = None
    list_every_s: float = 300.0
    limits: Limits = field(default_factory=Limits)
