"""Filters by storage in use: claims for one pod, attach limits, zones of volumes.

Source of the rules: kube-scheduler's VolumeRestrictions, NodeVolumeLimits (CSI) and VolumeZone filters.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.plugins.predicates.claims import class_claims, has_claims
from volcano_py.scheduler.framework.points import Check, Scope
from volcano_py.scheduler.model.kept import kept
from volcano_py.scheduler.model.kube.selectors import Requirement
from volcano_py.scheduler.model.node_match import rows_passing
from volcano_py.scheduler.model.resources import UNLIMITED
from volcano_py.scheduler.model.storage import ONE_POD, ZONE_LABELS

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.view import NodeView
    from volcano_py.scheduler.model.classes import TaskClass
    from volcano_py.scheduler.model.cluster import ClusterState
    from volcano_py.scheduler.model.resources import Ints, Mask

_ZONES: Final = "volumes.zones"
_LIMITS: Final = "limits"
_TODAY: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Old zone labels of volumes and the label that nodes carry now."""


class VolumeFilters:
    """The checks of this module over *state*."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.volumes = state.volumes
        self._kept: dict[str, object] = {}
        self.restrictions = Check(
            "VolumeRestrictions",
            Scope.CLUSTER,
            self._not_in_use,
            lambda klass: bool(klass.constraints.claims.named),
            lambda klass, view: (
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
                "already in-use by another pod"
            ),
            resolvable=True,
        )
        self.limits = Check(
            "NodeVolumeLimits",
            Scope.CLUSTER,
            self._attachable,
            has_claims,
            lambda klass, view: "node(s) exceed max volume count",
            resolvable=True,
        )
        self.zones = Check(
            "VolumeZone",
            Scope.CLUSTER,
            lambda klass, view: self._in_zone(klass)[view.rows],
            has_claims,
            lambda klass, view: "node(s) had no available volume zone",
        )

    def _not_in_use(self, klass: TaskClass, view: NodeView) -> Mask:
        capacity = len(self.state.nodes.version)
        for claim in class_claims(self.volumes, klass).claims:
            if ONE_POD in claim.modes:
                tally = self.volumes.uses(claim.key)
                if tally is not None and tally.taken(capacity, future=view.future).any():
                    return np.zeros(len(view.rows), np.bool_)
        return np.ones(len(view.rows), np.bool_)

    def _attachable(self, klass: TaskClass, view: NodeView) -> Mask:
        """Room for the volumes now, and beside those of who is promised a place."""
        mask = self._attachable_at(klass, view, future=view.future)
        if not view.future and self.state.nodes.pipelined.any():
            mask &= self._attachable_at(klass, view, future=True)
        return mask

    def _attachable_at(self, klass: TaskClass, view: NodeView, *, future: bool) -> Mask:
        """Volumes already attached to a node cost nothing there."""
        mask = np.ones(len(view.rows), np.bool_)
        claims = class_claims(self.volumes, klass)
        own = set(claims.own)
        found = [(claim, self.volumes.attachment(claim)) for claim in claims.claims]
        shared = {volume for claim, volume in found if volume is not None and claim not in own}
        new = Counter(volume[0] for claim, volume in found if volume is not None and claim in own)
        for driver in {volume[0] for _, volume in found if volume is not None}:
            more = np.full(len(self.state.nodes.version), new[driver], np.int64)
            for volume in shared:
                if volume[0] == driver:
                    more += self.volumes.attached_at(volume, future=future) == 0
            there = self.volumes.attached(driver, future=future)
            over = there + more > self._limit(driver)
            mask &= ~(over & (more > 0))[view.rows]
        return mask

    def _limit(self, driver: str) -> Ints:
        """(capacity,) volumes of *driver* that each node row takes."""
        nodes = self.state.nodes
        version = (self.volumes.objects_version, nodes.static_epoch, len(nodes.version))

        def compute() -> Ints:
            limits = np.full(len(nodes.version), UNLIMITED, np.int64)
            for name, found in self.volumes.csi_nodes.items():
                row = nodes.index.get(name)
                for each in found.spec.drivers:
                    if row is not None and each.name == driver and each.allocatable is not None:
                        limits[row] = UNLIMITED if each.allocatable.count is None else each.allocatable.count
            return limits

        limits: dict[str, object] = kept(self._kept, _LIMITS, version, dict)
        return kept(limits, driver, None, compute)

    def _in_zone(self, klass: TaskClass) -> Mask:
        """(capacity,) rows with one of the zones of every bound volume, or without any zone label."""
        nodes = self.state.nodes
        version = (self.volumes.objects_version, nodes.static_epoch, len(nodes.version))

        def compute() -> Mask:
            zoneless = np.ones(len(nodes.version), np.bool_)
            for key in ZONE_LABELS:
                zoneless &= rows_passing(nodes, Requirement(key, "DoesNotExist"))
            mask = np.ones(len(nodes.version), np.bool_)
            for record in class_claims(self.volumes, klass).bound:
                for key, values in record.zones:
                    mask &= self._zone(key, tuple(sorted(values)))
            return mask | zoneless

        return kept(klass.memo, _ZONES, version, compute)

    def _zone(self, key: str, values: tuple[str, ...]) -> Mask:
        nodes = self.state.nodes
        mask = rows_passing(nodes, Requirement(key, "In", values))
        if key in _TODAY:
            unlabelled = rows_passing(nodes, Requirement(key, "DoesNotExist"))
            mask |= unlabelled & rows_passing(nodes, Requirement(_TODAY[key], "In", values))
        return mask
