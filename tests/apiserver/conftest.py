"""Both servers, started once for all cases here."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.apiserver.spaces import new_namespace
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.programs import need
from tests.e2e.servers import KINDS, make
from volcano_py.client.api import Api

Case = Callable[[Api, str], Awaitable[None]]


@pytest.fixture(scope="session")
def place() -> Iterator[Path]:
    """A folder in memory where there is such a thing."""
    shm = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="volcano-py-", dir=shm if shm.is_dir() else None))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def configs(place: Path) -> Iterator[Callable[[str], Path]]:
    """Kind of server to kubeconfig; a server starts when it is first asked for."""
    running = {}

    def kubeconfig(kind: str) -> Path:
        if kind not in running:
            server = make(kind, place / kind)
            server.start()
            running[kind] = server
        return running[kind].kubeconfig

    try:
        yield kubeconfig
    finally:
        for server in running.values():
            server.stop()


@pytest.fixture(scope="session")
def real_without_controllers(place: Path) -> Iterator[Path]:
    """Kubeconfig of a real server where nobody but the client writes, nor marks what is not in use."""
    flags = ["--disable-admission-plugins=TaintNodesByCondition,StorageObjectInUseProtection"]
    binaries = need("kube-apiserver").parent
    plane = ControlPlane(place / "bare", binaries, "", apiserver_flags=flags)
    try:
        plane.start()
        yield plane.kubeconfig
    finally:
        plane.stop()


@pytest.fixture(params=KINDS)
def run(request: pytest.FixtureRequest, configs: Callable[[str], Path]) -> Callable[[Case], None]:
    """Runs a case in a namespace of its own, on either server."""
    config = configs(request.param)

    def run_case(case: Case) -> None:
        async def within() -> None:
            async with await Api.connect(str(config)) as api:
                await case(api, await new_namespace(api))

        asyncio.run(within())

    return run_case
