"""Topology spread constraints that refuse nodes (``DoNotSchedule``).

Source of the rules: kube-scheduler's PodTopologySpread filter. Pods on their way out do not count; which
nodes do is said in ``scheduler/model/domains``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from volcano_py.scheduler.framework.points import Check, Scope
from volcano_py.scheduler.model.domains import Domains, spread_domains

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.view import NodeView
    from volcano_py.scheduler.model.classes import TaskClass
    from volcano_py.scheduler.model.cluster import ClusterState
    from volcano_py.scheduler.model.resources import Mask


class SpreadFilter:
    """The check of this module over *state*."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.check = Check(
            "PodTopologySpread",
            Scope.CLUSTER,
            self._mask,
            lambda klass: any(rule.hard for rule in klass.constraints.spread),
            self._explain,
            resolvable=True,
        )

    def _domains(self, klass: TaskClass) -> list[Domains]:
        return spread_domains(self.state.nodes, self.state.coupling, klass, hard=True)

    def _mask(self, klass: TaskClass, view: NodeView) -> Mask:
        mask = np.ones(len(view.rows), np.bool_)
        for domains in self._domains(klass):
            mask &= self._within_skew(klass, domains, view)
        return mask

    def _within_skew(self, klass: TaskClass, domains: Domains, view: NodeView) -> Mask:
        """Putting one pod on the node keeps its domain at most ``maxSkew`` above the emptiest one."""
        term, rule = domains.spread.term, domains.spread.rule
        codes = domains.code[view.rows]
        labelled: Mask = codes > 0
        existing = int(np.count_nonzero(domains.exists))
        if existing == 0:
            return labelled
        counts = self.state.coupling.counts(term, future=view.future, ignore_terminating=True)
        sums = domains.sums(counts)
        least = int(sums[domains.exists].min()) if existing >= rule.min_domains else 0
        own = int(term.number in klass.signature.terms)
        result: Mask = labelled & (sums[codes] + own - least <= rule.max_skew)
        return result

    def _explain(self, klass: TaskClass, view: NodeView) -> str:
        text = "node(s) didn't match pod topology spread constraints"
        missing = np.zeros(len(view.rows), np.bool_)
        for domains in self._domains(klass):
            missing |= domains.code[view.rows] == 0
        return f"{text} (missing required label)" if missing.all() else text
