"""Scores by the node alone: preferred node affinity, taints to avoid, images already there.

Source of the formulas: kube-scheduler's NodeAffinity, TaintToleration and ImageLocality. The first two are
relative to the best of the nodes that passed all checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.plugins.nodeorder.amounts import weighted
from volcano_py.scheduler.framework.points import Scope, Scorer
from volcano_py.scheduler.model.kept import kept
from volcano_py.scheduler.model.node_match import DISCOURAGING, rows_in_term, taint_groups

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.view import NodeView
    from volcano_py.scheduler.model.classes import TaskClass
    from volcano_py.scheduler.model.cluster import ClusterState
    from volcano_py.scheduler.model.kube.objects import Node
    from volcano_py.scheduler.model.resources import Ints, Scores

_MIB: Final = 2**20
_LEAST_BYTES: Final = 23 * _MIB
_MOST_BYTES: Final = 1000 * _MIB
"""Image bytes, per container, below which a node gains nothing and above which it gains no more."""


class NodeScores:
    """The scorers of this module over *state*."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._images = Images(state)

    def affinity(self, weight: int) -> Scorer:
        """Nodes that match preferred terms."""

        def score(klass: TaskClass, view: NodeView) -> Scores:
            raw = kept(klass.memo, "nodeorder.affinity", self._version(), lambda: self._preferred(klass))
            return weighted(normalised(raw[view.rows]), weight)

        return Scorer(
            "NodeAffinity", Scope.CLUSTER, score, lambda klass: bool(klass.constraints.node_preferences)
        )

    def taints(self, weight: int) -> Scorer:
        """Nodes with fewer taints that ask to be avoided."""

        def score(klass: TaskClass, view: NodeView) -> Scores:
            wishes = klass.constraints.tolerations
            raw = kept(
                klass.memo,
                "nodeorder.taints",
                self._version(),
                lambda: taint_groups(self.state.nodes).count_untolerated(wishes, DISCOURAGING),
            )
            return weighted(100 - normalised(raw[view.rows]), weight)

        return Scorer(
            "TaintToleration",
            Scope.CLUSTER,
            score,
            lambda klass: taint_groups(self.state.nodes).has(DISCOURAGING),
        )

    def image_locality(self, weight: int) -> Scorer:
        """Nodes that hold the pod's images; an image on many nodes counts more."""

        def score(klass: TaskClass, view: NodeView) -> Scores:
            raw = kept(klass.memo, "nodeorder.images", self._version(), lambda: self._images.score(klass))
            return weighted(raw[view.rows], weight)

        return Scorer(
            "ImageLocality",
            Scope.STATIC,
            score,
            lambda klass: bool(klass.constraints.images) and self._images.any(),
        )

    def _version(self) -> tuple[int, int]:
        return (self.state.nodes.static_epoch, len(self.state.nodes.version))

    def _preferred(self, klass: TaskClass) -> Ints:
        """(capacity,) summed weights of the preferred terms that each node row matches."""
        total = np.zeros(len(self.state.nodes.version), np.int64)
        for wish in klass.constraints.node_preferences:
            total += rows_in_term(self.state.nodes, wish.term) * wish.weight
        return total


class Images:
    """Which node holds which image, brought up to date for the nodes that changed."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._seen: list[Node | None] = []
        self._sizes: dict[str, dict[int, int]] = {}
        self._epoch = -1

    def any(self) -> bool:
        """Whether any node is known to hold any image."""
        self._refresh()
        return bool(self._sizes)

    def score(self, klass: TaskClass) -> Ints:
        """(capacity,) 0 to 100 by node row."""
        self._refresh()
        nodes = self.state.nodes
        live = max(len(nodes.order), 1)
        total = np.zeros(len(nodes.version), np.int64)
        images = klass.constraints.images
        for image in images:
            held = self._sizes.get(image, {})
            spread = len(held) / live
            for row, size in held.items():
                total[row] += int(size * spread)
        most = _MOST_BYTES * len(images)
        clipped = np.clip(total, _LEAST_BYTES, most)
        score: Ints = 100 * (clipped - _LEAST_BYTES) // (most - _LEAST_BYTES)
        return score

    def _refresh(self) -> None:
        nodes = self.state.nodes
        if self._epoch == nodes.static_epoch:
            return
        self._epoch = nodes.static_epoch
        objects, seen = nodes.objects, self._seen
        seen += [None] * (len(objects) - len(seen))
        for row in [row for row, node in enumerate(objects) if node is not seen[row]]:
            known, node = seen[row], objects[row]
            seen[row] = node
            if (known is not None and known.status.images) or (node is not None and node.status.images):
                self._replace(row, known, node)

    def _replace(self, row: int, known: Node | None, node: Node | None) -> None:
        for image in () if known is None else known.status.images:
            for name in image.names:
                held = self._sizes.get(name)
                if held is not None:
                    held.pop(row, None)
                    if not held:
                        del self._sizes[name]
        for image in () if node is None else node.status.images:
            for name in image.names:
                self._sizes.setdefault(name, {})[row] = image.size_bytes


def normalised(raw: Ints) -> Ints:
    """*raw* (n,), none negative, scaled to 0 to 100 by the largest, rounded down; all 0 stays 0."""
    most = int(raw.max(initial=0))
    return raw if most == 0 else raw * 100 // most
