"""Scores by the pods around: preferred affinity in both directions, and soft topology spread.

Source of the formulas: kube-scheduler's InterPodAffinity (required affinity of pods already there counts
with weight 1) and PodTopologySpread. Both are relative to the nodes that passed all checks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.plugins.nodeorder.amounts import weighted
from volcano_py.scheduler.framework.points import Scope, Scorer
from volcano_py.scheduler.model.domains import Domains, spread_domains

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.view import NodeView
    from volcano_py.scheduler.model.classes import TaskClass
    from volcano_py.scheduler.model.cluster import ClusterState
    from volcano_py.scheduler.model.resources import Ints, Mask, Scores

HOSTNAME: Final = "kubernetes.io/hostname"


class PodScores:
    """The scorers of this module over *state*."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.coupling = state.coupling

    def affinity(self, weight: int) -> Scorer:
        """Nodes near pods that the class likes, or that like the class; away from the others."""

        def score(klass: TaskClass, view: NodeView) -> Scores:
            raw = self._liking(klass, view)[view.rows]
            least, most = int(raw.min(initial=2**62)), int(raw.max(initial=-(2**62)))
            if most <= least:
                return np.zeros(len(raw))
            return weighted(np.floor(100.0 * ((raw - least) / (most - least))), weight)

        return Scorer("InterPodAffinity", Scope.CLUSTER, score, self._likes_or_is_liked)

    def spread(self, weight: int) -> Scorer:
        """Nodes in domains with fewer of the pods that the class's soft constraints count."""

        def score(klass: TaskClass, view: NodeView) -> Scores:
            domains = spread_domains(self.state.nodes, self.coupling, klass, hard=False)
            labelled = np.ones(len(view.rows), np.bool_)
            for each in domains:
                labelled &= each.code[view.rows] > 0
            raw = self._crowding(domains, labelled, view)
            return weighted(_fewest_best(raw, labelled), weight)

        return Scorer(
            "PodTopologySpread",
            Scope.CLUSTER,
            score,
            lambda klass: any(not rule.hard for rule in klass.constraints.spread),
        )

    def _likes_or_is_liked(self, klass: TaskClass) -> bool:
        speech = self.coupling.speech(klass)
        return bool(speech.wishes) or any(term.wishers for term in speech.selected_by)

    def _liking(self, klass: TaskClass, view: NodeView) -> Ints:
        """(capacity,) summed weights by node row."""
        coupling, future = self.coupling, view.future
        capacity = len(self.state.nodes.version)
        speech = coupling.speech(klass)
        total = np.zeros(capacity, np.int64)
        for wish in speech.wishes:
            total += wish.weight * coupling.domain_counts(wish.term, wish.key, future=future)
        for term in speech.selected_by:
            for key, tally in (*term.wished.items(), *term.drawn.items()):
                if tally:
                    total += coupling.over_domains(tally.present(capacity, future=future), key)
        return total

    def _crowding(self, domains: list[Domains], labelled: Mask, view: NodeView) -> Ints:
        """(n,) weighted number of counted pods around each node, rounded."""
        total = np.zeros(len(view.rows))
        for each in domains:
            rule = each.spread.rule
            codes = each.code[view.rows]
            counts = self.coupling.counts(each.spread.term, future=view.future, ignore_terminating=True)
            if rule.topology_key == HOSTNAME:
                here, number = counts[view.rows], int(np.count_nonzero(labelled))
            else:
                here, number = each.sums(counts)[codes], len(np.unique(codes[labelled]))
            total += here * math.log(number + 2) + (rule.max_skew - 1)
        rounded: Ints = np.floor(total + 0.5).astype(np.int64)
        return rounded


def _fewest_best(raw: Ints, labelled: Mask) -> Ints:
    """(n,) 0 to 100, the smallest of *raw* best; 0 for nodes that are not *labelled*."""
    scores = np.zeros(len(raw), np.int64)
    if not labelled.any():
        return scores
    known = raw[labelled]
    least, most = int(known.min()), int(known.max())
    scores[labelled] = 100 if most == 0 else 100 * (most + least - known) // most
    return scores
