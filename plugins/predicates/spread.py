"""Topology spread constraints that refuse nodes (``DoNotSchedule``).

Source of the rules: kube-scheduler's PodTopologySpread filter. Counted are the selected pods that are
not on their way out, on nodes that have every topology key of the class and that the constraint's
policies let count; a domain exists where such a node does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.plugins.predicates.nodes import wanted
from volcano_py.scheduler.framework.points import Check, Scope
from volcano_py.scheduler.model.kept import kept
from volcano_py.scheduler.model.node_match import BLOCKING, taint_groups

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.view import NodeView
    from volcano_py.scheduler.model.classes import TaskClass
    from volcano_py.scheduler.model.cluster import ClusterState
    from volcano_py.scheduler.model.resources import Mask, Rows32
    from volcano_py.scheduler.model.terms import Spread

_DOMAINS: Final = "spread.domains"


@dataclass(frozen=True, slots=True, eq=False)
class Domains:
    """The domains of one constraint.

    Attributes:
        spread: the constraint and its term.
        code: (capacity,) domain of each node row, 0 for none.
        counted: (capacity,) rows whose pods count, as 0 or 1.
        exists: (domains,) some counted row lies there; never for 0.
        enough: at least ``minDomains`` exist.
    """

    spread: Spread
    code: Rows32
    counted: Rows32
    exists: Mask
    enough: bool


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

    def _mask(self, klass: TaskClass, view: NodeView) -> Mask:
        mask = np.ones(len(view.rows), np.bool_)
        for domains in self._domains(klass):
            mask &= self._within_skew(klass, domains, view)
        return mask

    def _within_skew(self, klass: TaskClass, domains: Domains, view: NodeView) -> Mask:
        term, rule = domains.spread.term, domains.spread.rule
        codes = domains.code[view.rows]
        labelled: Mask = codes > 0
        if not domains.exists.any():
            return labelled
        counts = self.state.coupling.counts(term, future=view.future, ignore_terminating=True)
        here = counts[: len(domains.code)] * domains.counted
        # float64 sums of pods are exact far beyond any number of pods
        sums = np.bincount(domains.code, here, minlength=len(domains.exists))
        least = sums[domains.exists].min() if domains.enough else 0
        own = term.number in klass.signature.terms
        result: Mask = labelled & (sums[codes] + own - least <= rule.max_skew)
        return result

    def _explain(self, klass: TaskClass, view: NodeView) -> str:
        text = "node(s) didn't match pod topology spread constraints"
        missing = np.zeros(len(view.rows), np.bool_)
        for domains in self._domains(klass):
            missing |= domains.code[view.rows] == 0
        return f"{text} (missing required label)" if missing.all() else text

    def _domains(self, klass: TaskClass) -> list[Domains]:
        nodes = self.state.nodes
        version = (nodes.static_epoch, len(nodes.version))
        return kept(klass.memo, _DOMAINS, version, lambda: self._compute(klass))

    def _compute(self, klass: TaskClass) -> list[Domains]:
        nodes = self.state.nodes
        hard = [spread for spread in self.state.coupling.speech(klass).spread if spread.rule.hard]
        codes = [nodes.label_codes(spread.rule.topology_key)[0] for spread in hard]
        size = min(len(each) for each in codes)
        everywhere: Mask = nodes.live[:size].copy()
        for each in codes:
            everywhere &= each[:size] >= 0
        return [
            self._one(klass, spread, everywhere, each[:size] + 1)
            for spread, each in zip(hard, codes, strict=True)
        ]

    def _one(self, klass: TaskClass, spread: Spread, everywhere: Mask, code: Rows32) -> Domains:
        nodes, rule = self.state.nodes, spread.rule
        counted = everywhere.copy()
        if rule.honor_affinity:
            counted &= wanted(self.state, klass)[: len(code)]
        if rule.honor_taints:
            groups = taint_groups(nodes)
            counted &= groups.tolerated(klass.constraints.tolerations, BLOCKING)[: len(code)]
        exists = np.zeros(int(code.max(initial=0)) + 1, np.bool_)
        exists[code[counted]] = True
        enough = int(np.count_nonzero(exists)) >= rule.min_domains
        return Domains(spread, code, counted.astype(np.int32), exists, enough)
