"""Servers and clusters for end-to-end cases; a session starts each server once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.servers import KINDS, Server, make


@pytest.fixture(scope="session")
def memory_folder() -> Iterator[Path]:
    """A folder in memory, where there is such a thing: etcd and its tests wait for no disk."""
    shm = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(prefix="volcano-py-", dir=shm if shm.is_dir() else None))
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="session", params=KINDS)
def server(request: pytest.FixtureRequest, memory_folder: Path) -> Iterator[Server]:
    """Both servers, one after the other."""
    server = make(request.param, memory_folder / request.param)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def cluster(server: Server, tmp_path: Path) -> Iterator[Cluster]:
    """An empty cluster on *server*, with scheduler, controllers and pretend kubelets ready to start."""
    cluster = Cluster(server, tmp_path)
    try:
        yield cluster
    finally:
        cluster.close()
