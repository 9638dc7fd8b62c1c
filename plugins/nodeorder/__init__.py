"""nodeorder: which of the nodes that pass is better, by kube-scheduler's scores of 0 to 100.

Each score has a weight; a weight of 0 takes it out. A scorer that would give every node the same is not
asked, so its constant is missing from totals; the order of nodes is the same.

Neighbours: ``amounts`` (requested against allocatable), ``nodes`` (labels, taints, images), ``pods``
(affinity between pods, spread); binpack and deviceshare add scores of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from volcano_py.crds.schedulerconfig import Arguments, ConfigError
from volcano_py.plugins.nodeorder.amounts import balanced_resource, least_requested, most_requested
from volcano_py.plugins.nodeorder.nodes import NodeScores
from volcano_py.plugins.nodeorder.pods import PodScores
from volcano_py.scheduler.framework.plugin import Plugin

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.points import Scorer
    from volcano_py.scheduler.framework.session import Session
    from volcano_py.scheduler.model.cluster import ClusterState

WEIGHTS: Final = {
    "leastrequested": 1,
    "mostrequested": 0,
    "balancedresource": 1,
    "imagelocality": 1,
    "nodeaffinity": 2,
    "podaffinity": 2,
    "tainttoleration": 3,
    "podtopologyspread": 2,
}


class NodeOrderPlugin(Plugin):
    """Kube-scheduler's scores, each with a weight."""

    name = "nodeorder"
    ARGUMENTS: ClassVar = {
        f"{score}.weight": f"factor of the {score} score; {weight}" for score, weight in WEIGHTS.items()
    }

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.weights = {
            score: arguments.get_int(f"{score}.weight", weight) for score, weight in WEIGHTS.items()
        }
        for score, weight in self.weights.items():
            if weight < 0:
                raise ConfigError(
                    f"{arguments.owner}: argument '{score}.weight' must not be negative, as {weight} is"
                )
        self._state: ClusterState | None = None
        self._scorers: list[Scorer] = []

    def open(self, session: Session) -> None:
        """Hang the scores that have a weight."""
        if self._state is not session.state:
            self._state = session.state
            self._scorers = self._make(session.state)
        for scorer in self._scorers:
            session.points.node_order.add(self.name, scorer)

    def _make(self, state: ClusterState) -> list[Scorer]:
        nodes, pods = NodeScores(state), PodScores(state)
        makers = {
            "leastrequested": least_requested,
            "mostrequested": most_requested,
            "balancedresource": lambda weight: balanced_resource(state.vocabulary, weight),
            "imagelocality": nodes.image_locality,
            "nodeaffinity": nodes.affinity,
            "podaffinity": pods.affinity,
            "tainttoleration": nodes.taints,
            "podtopologyspread": pods.spread,
        }
        return [makers[score](weight) for score, weight in self.weights.items() if weight]
