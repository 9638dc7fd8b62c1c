"""Required affinity and anti-affinity between pods, in both directions.

Source of the rules: kube-scheduler's InterPodAffinity filter. A pod counts for affinity only if it
matches every required affinity term of the class; while no such pod lies in any domain, the first of a
group that matches itself may start anywhere. Pods on their way out count until they are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from volcano_py.scheduler.framework.points import Check, Scope

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.view import NodeView
    from volcano_py.scheduler.model.classes import TaskClass
    from volcano_py.scheduler.model.cluster import ClusterState
    from volcano_py.scheduler.model.resources import Mask


class PodFilters:
    """The checks of this module over *state*."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.coupling = state.coupling
        self.existing = Check(
            "ExistingPodsAntiAffinity",
            Scope.CLUSTER,
            self._not_repelled,
            self._is_repelled_by_some,
            lambda klass, view: "node(s) didn't satisfy existing pods anti-affinity rules",
            resolvable=True,
        )
        self.affinity = Check(
            "InterPodAffinity",
            Scope.CLUSTER,
            self._near,
            lambda klass: bool(klass.constraints.inter_pod.affinity),
            lambda klass, view: "node(s) didn't match pod affinity rules",
        )
        self.anti_affinity = Check(
            "InterPodAntiAffinity",
            Scope.CLUSTER,
            self._away,
            lambda klass: bool(klass.constraints.inter_pod.anti_affinity),
            lambda klass, view: "node(s) didn't match pod anti-affinity rules",
            resolvable=True,
        )

    def _is_repelled_by_some(self, klass: TaskClass) -> bool:
        return any(term.repellers for term in self.coupling.speech(klass).selected_by)

    def _not_repelled(self, klass: TaskClass, view: NodeView) -> Mask:
        """No pod in the node's domains requires to be away from pods like these."""
        mask = np.ones(len(view.rows), np.bool_)
        capacity = len(self.state.nodes.version)
        for term in self.coupling.speech(klass).selected_by:
            for key, tally in term.repelled.items():
                if tally:
                    here = tally.taken(capacity, future=view.future)
                    mask &= self.coupling.over_domains(here, key)[view.rows] == 0
        return mask

    def _away(self, klass: TaskClass, view: NodeView) -> Mask:
        """None of the pods that the class must be away from lies in the node's domains."""
        mask = np.ones(len(view.rows), np.bool_)
        for placed in self.coupling.speech(klass).anti_affinity:
            there = placed.term.matched.taken(len(self.state.nodes.version), future=view.future)
            mask &= self.coupling.over_domains(there, placed.key)[view.rows] == 0
        return mask

    def _near(self, klass: TaskClass, view: NodeView) -> Mask:
        """For each term, a pod that matches all terms lies in the node's domain."""
        speech = self.coupling.speech(klass)
        together = speech.together
        mask = np.ones(len(view.rows), np.bool_)
        if together is None:
            return mask
        counts = self.coupling.counts(together, future=view.future)
        labelled = mask.copy()
        anywhere = False
        for placed in speech.affinity:
            codes, _ = self.state.nodes.label_codes(placed.key)
            labelled &= codes[view.rows] >= 0
            near = self.coupling.over_domains(counts, placed.key)
            mask &= near[view.rows] > 0
            anywhere = anywhere or bool(near.any())
        if not anywhere and together.number in klass.signature.terms:
            return labelled
        return mask
