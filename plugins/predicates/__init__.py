"""predicates: the nodes on which a pod may run at all, by kube-scheduler's filters.

Every filter is a ``Check`` with its own name and reason, so that a refusal says how many nodes each of
them ruled out. Whether the requested amounts (pods included) fit is judged by placement for every
configuration, not here.

Neighbours: ``nodes`` (labels, taints, ports), ``pods`` (affinity between pods), ``spread``, ``volumes`` and
``binding`` (storage); the counts behind them are the model's (``coupling``, ``ports``, ``volumes``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from volcano_py.crds.schedulerconfig import Arguments, ConfigError
from volcano_py.plugins.predicates.binding import VolumeBinding
from volcano_py.plugins.predicates.nodes import NO_DEVICE_CLAIMS, NodeFilters
from volcano_py.plugins.predicates.pods import PodFilters
from volcano_py.plugins.predicates.spread import SpreadFilter
from volcano_py.plugins.predicates.volumes import VolumeFilters
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.points import Check

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.refusal import Refusal
    from volcano_py.scheduler.framework.session import Session
    from volcano_py.scheduler.model.classes import TaskClass
    from volcano_py.scheduler.model.cluster import ClusterState
    from volcano_py.scheduler.model.jobs import Job

_FAMILIES: Final = (
    "NodeAffinity",
    "NodePorts",
    "TaintToleration",
    "PodAffinity",
    "NodeVolumeLimits",
    "VolumeZone",
    "PodTopologySpread",
    "VolumeBinding",
)


class PredicatesPlugin(Plugin):
    """Kube-scheduler's filters, each of which may be switched off except for cordoned nodes."""

    name = "predicates"
    ARGUMENTS: ClassVar = {
        **{f"predicate.{family}Enable": f"use the {family} filter; true" for family in _FAMILIES},
        "predicate.CacheEnable": "no effect: answers are always kept while they hold; false",
        "predicate.DynamicResourceAllocationEnable": "no effect, as in Volcano; false",
        "volumebinding.bindTimeoutSeconds": "no effect: nothing here waits for a binding; s, 600",
        "volumebinding.weight": "no effect: volume binding does not score; 1",
        "dynamicresources.filterTimeoutSeconds": "no effect; s, 10",
    }

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.enabled = {family: arguments.get_bool(f"predicate.{family}Enable", True) for family in _FAMILIES}
        self._check_unused(arguments)
        self._state: ClusterState | None = None
        self._checks: list[Check] = []

    def open(self, session: Session) -> None:
        """Hang the filters on *session*, cheapest and most telling first."""
        if self._state is not session.state:
            self._state = session.state
            self._checks = self._make(session.state)
        for check in self._checks:
            session.points.predicate.add(self.name, check)
        session.points.pre_predicate.add(self.name, self._pre_predicate)

    def volumes_taken(self) -> Mapping[str, str]:
        """See ``Plugin.volumes_taken``."""
        return {} if self._state is None else self._binding.taken()

    def _make(self, state: ClusterState) -> list[Check]:
        nodes, pods = NodeFilters(state), PodFilters(state)
        volumes, self._binding = VolumeFilters(state), VolumeBinding(state)
        families: list[tuple[str, list[Check]]] = [
            ("", [nodes.devices, nodes.unschedulable]),
            ("NodeAffinity", [nodes.affinity]),
            ("TaintToleration", [nodes.taints]),
            ("NodePorts", [nodes.ports]),
            ("", [volumes.restrictions]),
            ("NodeVolumeLimits", [volumes.limits]),
            ("VolumeBinding", [self._binding.check]),
            ("VolumeZone", [volumes.zones]),
            ("PodTopologySpread", [SpreadFilter(state).check]),
            ("PodAffinity", [pods.affinity, pods.anti_affinity, pods.existing]),
        ]
        return [check for family, checks in families if self.enabled.get(family, True) for check in checks]

    def _pre_predicate(self, klass: TaskClass, job: Job) -> Refusal | None:
        """What rules out every node, whatever the nodes."""
        if klass.constraints.device_claims:
            return NO_DEVICE_CLAIMS
        return self._binding.refusal(klass) if self.enabled["VolumeBinding"] else None

    def _check_unused(self, arguments: Arguments) -> None:
        """Arguments without an effect here must still make sense."""
        for key in ("predicate.CacheEnable", "predicate.DynamicResourceAllocationEnable"):
            arguments.get_bool(key, False)
        for key, default in (
            ("volumebinding.bindTimeoutSeconds", 600),
            ("volumebinding.weight", 1),
            ("dynamicresources.filterTimeoutSeconds", 10),
        ):
            if arguments.get_int(key, default) < 0:
                raise ConfigError(f"{arguments.owner}: argument {key!r} must not be negative")
