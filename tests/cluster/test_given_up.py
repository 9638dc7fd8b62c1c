"""A post that is given up in the moment in which its connection is made."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from tests.client.test_given_up import Deaf
from volcano_py.scheduler.cluster import posts as posts_module
from volcano_py.scheduler.cluster.line import Line
from volcano_py.scheduler.cluster.posts import Posts


def test_a_connection_that_comes_too_late_leaves_no_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[socket.socket] = []
    asking: list[asyncio.Future[bytes]] = []

    class Late(Line):
        """Whoever asked for it is gone as soon as it stands."""

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            made.append(transport.get_extra_info("socket"))
            asking[0].cancel()

    async def live() -> None:
        async with Deaf().api(tmp_path) as api:
            posts = Posts(api)
            post = posts.post("/x", b"{}", content_type="application/json", timeout_s=3600.0)
            asking.append(asyncio.ensure_future(post))
            assert await asyncio.gather(*asking, return_exceptions=True)
            assert [line.fileno() for line in made] == [-1], (
                "at once: whoever ends the loop waits for nothing"
            )
            posts.close()

    monkeypatch.setattr(posts_module, "Line", Late)
    asyncio.run(live())
