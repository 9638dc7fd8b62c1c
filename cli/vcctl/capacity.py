"""How many pods the nodes hold when nothing else runs, by amounts alone: labels and ports are not asked."""

from __future__ import annotations

import numpy as np

from volcano_py.scheduler.framework.refusal import ENDLESS
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.resources import Ints


def pods_on_empty_nodes(state: ClusterState, request: Ints) -> int:
    """How many pods of *request* (R,) all nodes hold, each for itself; ``ENDLESS`` of what asks nothing."""
    columns = np.flatnonzero(request)
    nodes = state.nodes.allocatable[state.nodes.live][:, columns]
    if nodes.shape[0] == 0:
        return 0
    if not columns.size:
        return ENDLESS
    return int((np.maximum(nodes, 0) // request[columns]).min(axis=1).sum())
