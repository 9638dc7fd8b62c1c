"""A watch that rests hands over together what came meanwhile, and loses nothing."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from aiohttp.client_proto import ResponseHandler

from volcano_py.client.api import Api
from volcano_py.client.rests import Rest

LINES = 24


async def drip(request: web.Request) -> web.StreamResponse:
    """*LINES* lines, each by itself."""
    answer = web.StreamResponse()
    await answer.prepare(request)
    for number in range(LINES):
        await answer.write(f"{number}\n".encode())
        await asyncio.sleep(0.01)
    return answer


async def watched(folder: Path, rest: Rest, *, shorten: bool = False) -> list[list[bytes]]:
    """The batches in which the lines come; *shorten*: after the first one there is to be no rest."""
    app = web.Application()
    app.router.add_get("/watch", drip)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    kubeconfig = folder / "config"
    kubeconfig.write_text(yaml.safe_dump(config(f"http://127.0.0.1:{port}")))
    try:
        async with await Api.connect(str(kubeconfig)) as api:
            lines = api.line_batches("/watch", {}, idle_timeout_s=60, rest=rest)
            async with aclosing(lines) as batches:
                found = []
                async for batch in batches:
                    found += [batch] if batch else []
                    if shorten and len(found) == 1:
                        asyncio.get_running_loop().call_soon(setattr, rest, "seconds", 0.0)
                return found
    finally:
        await runner.cleanup()


def config(server: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


@pytest.mark.parametrize("rest_s", [0.0, 0.15])
def test_every_line_comes_once_and_in_order(
    tmp_path: Path, rest_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken = []
    receive = ResponseHandler.data_received

    def counted(self: ResponseHandler, data: bytes) -> None:
        woken.extend([len(data)] if data else [])
        receive(self, data)

    monkeypatch.setattr(ResponseHandler, "data_received", counted)
    batches = asyncio.run(watched(tmp_path, Rest(rest_s)))
    assert [line for batch in batches for line in batch] == [b"%d" % number for number in range(LINES)]
    if rest_s:
        assert len(batches) < LINES / 2
        assert len(woken) < LINES / 2


def test_a_rest_that_is_shortened_ends_at_once(tmp_path: Path) -> None:
    async def read() -> list[list[bytes]]:
        async with asyncio.timeout(60):
            return await watched(tmp_path, Rest(3600.0), shorten=True)

    batches = asyncio.run(read())
    assert [line for batch in batches for line in batch] == [b"%d" % number for number in range(LINES)]
