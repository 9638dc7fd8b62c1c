"""``vcctl-py`` as a process, against a real cluster of each kind."""

from __future__ import annotations

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.conftest import cluster, memory_folder, server
from tests.vcctl.person import Person

__all__ = ["cluster", "memory_folder", "person", "server"]


@pytest.fixture
def person(cluster: Cluster) -> Person:
    """Somebody at a terminal, with an empty cluster and a namespace."""
    cluster.default_queue()
    return Person(cluster)
