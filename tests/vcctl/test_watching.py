"""A command that goes on ends where it can't see what it waits for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.cluster.pod_server import Fault, PodServer
from volcano_py.cli.vcctl.cluster import Cluster
from volcano_py.cli.vcctl.flags import Flags
from volcano_py.cli.vcctl.watching import changes
from volcano_py.client.api import ApiError


def test_who_may_not_watch_is_told_so(tmp_path: Path) -> None:
    server = PodServer(choose=lambda method, path: Fault(status=403))

    async def live() -> None:
        async with server.api(tmp_path) as api, asyncio.timeout(120):
            async for _ in changes(Cluster(api, Flags(namespace="ns")), ("Pod",)):
                pass

    with pytest.raises(ApiError) as refused:
        asyncio.run(live())
    assert refused.value.status == 403
