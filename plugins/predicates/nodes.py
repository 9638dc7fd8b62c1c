"""Filters by the node alone: cordon, node selector and affinity, taints, host ports.

Reasons are worded as kube-scheduler words them, since people search for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.scheduler.framework.points import Check, Scope
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.model.domains import wanted
from volcano_py.scheduler.model.kept import kept
from volcano_py.scheduler.model.kube.selectors import UNSCHEDULABLE_TAINT, Taint, untolerated
from volcano_py.scheduler.model.node_match import BLOCKING, taint_groups

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.view import NodeView
    from volcano_py.scheduler.model.classes import TaskClass
    from volcano_py.scheduler.model.cluster import ClusterState
    from volcano_py.scheduler.model.resources import Mask

NO_DEVICE_CLAIMS: Final = Refusal(
    "DeviceClaims", "the pod asks for devices by resource claims, which this scheduler does not allocate"
)
_TOLERATED: Final = "nodes.tolerated"


def _always(klass: TaskClass) -> bool:
    return True


class NodeFilters:
    """The checks of this module over *state*."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.unschedulable = Check(
            "NodeUnschedulable",
            Scope.STATIC,
            self._not_cordoned,
            _always,
            lambda klass, view: "node(s) were unschedulable",
        )
        self.affinity = Check(
            "NodeAffinity",
            Scope.STATIC,
            lambda klass, view: wanted(self.state.nodes, klass)[view.rows],
            lambda klass: (
                bool(klass.constraints.node_selector.requirements)
                or klass.constraints.node_affinity is not None
            ),
            lambda klass, view: "node(s) didn't match Pod's node affinity/selector",
        )
        self.taints = Check("TaintToleration", Scope.STATIC, self._tolerated, _always, self._which_taint)
        self.devices = Check(
            "DynamicResources",
            Scope.STATIC,
            lambda klass, view: np.zeros(len(view.rows), np.bool_),
            lambda klass: klass.constraints.device_claims,
            lambda klass, view: NO_DEVICE_CLAIMS.message,
        )
        self.ports = Check(
            "NodePorts",
            Scope.NODE,
            self._ports_free,
            lambda klass: bool(klass.constraints.host_ports),
            lambda klass, view: "node(s) didn't have free ports for the requested pod ports",
            resolvable=True,
        )

    def _not_cordoned(self, klass: TaskClass, view: NodeView) -> Mask:
        mask: Mask = ~self.state.nodes.unschedulable[view.rows]
        if untolerated((UNSCHEDULABLE_TAINT,), klass.constraints.tolerations, BLOCKING) is None:
            mask[:] = True
        return mask

    def _tolerated(self, klass: TaskClass, view: NodeView) -> Mask:
        nodes, wishes = self.state.nodes, klass.constraints.tolerations
        version = (nodes.static_epoch, len(nodes.version))
        mask = kept(klass.memo, _TOLERATED, version, lambda: taint_groups(nodes).tolerated(wishes, BLOCKING))
        return mask[view.rows]

    def _which_taint(self, klass: TaskClass, view: NodeView) -> str:
        """The taint is named where all nodes have the same one."""
        groups = taint_groups(self.state.nodes)
        found: set[Taint | None] = {
            untolerated(groups.taints[code], klass.constraints.tolerations, BLOCKING)
            for code in set(groups.code[view.rows].tolist())
        }
        taint = next(iter(found)) if len(found) == 1 else None
        return "node(s) had untolerated taint" + (f" {{{taint.key}: {taint.value}}}" if taint else "")

    def _ports_free(self, klass: TaskClass, view: NodeView) -> Mask:
        taken = self.state.ports.conflicts(klass.constraints.host_ports, future=view.future)
        mask: Mask = ~taken[view.rows]
        return mask
