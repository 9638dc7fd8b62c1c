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


async def watched(
    folder: Path, rest: Rest, *, after_first: float | None = None, after_last: float | None = None
) -> list[list[bytes]]:
    """The batches in which lines come that are sent each by itself.

    Args:
        folder: for a kubeconfig.
        rest: of the reader.
        after_first: seconds that a rest has as soon as the first batch was read.
        after_last: the same, as soon as the last line was sent.
    """

    async def drip(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for number in range(LINES):
            await answer.write(f"{number}\n".encode())
            await asyncio.sleep(0.01)
        if after_last is not None:
            rest.seconds = after_last
        return answer

    app = web.Application()
    app.router.add_get("/watch", drip)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    kubeconfig = folder / "config"
    kubeconfig.write_text(yaml.safe_dump(config(f"http://127.0.0.1:{port}")))
    try:
        async with asyncio.timeout(60), await Api.connect(str(kubeconfig)) as api:
            lines = api.line_batches("/watch", {}, idle_timeout_s=60, rest=rest)
            async with aclosing(lines) as batches:
                found = []
                async for batch in batches:
                    found += [batch] if batch else []
                    if after_first is not None and len(found) == 1:
                        asyncio.get_running_loop().call_soon(setattr, rest, "seconds", after_first)
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


def in_order(batches: list[list[bytes]]) -> bool:
    """Whether every line came once and in order."""
    return [line for batch in batches for line in batch] == [b"%d" % number for number in range(LINES)]


def test_a_reader_that_rests_is_not_woken_by_each_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken = []
    receive = ResponseHandler.data_received

    def counted(self: ResponseHandler, data: bytes) -> None:
        woken.extend([len(data)] if data else [])
        receive(self, data)

    monkeypatch.setattr(ResponseHandler, "data_received", counted)
    batches = asyncio.run(watched(tmp_path, Rest(3600.0), after_last=0.0))
    assert in_order(batches)
    assert len(batches) < LINES / 2
    assert len(woken) < LINES / 2


def test_a_reader_that_does_not_rest_loses_nothing_either(tmp_path: Path) -> None:
    assert in_order(asyncio.run(watched(tmp_path, Rest())))


def test_a_rest_that_is_shortened_ends_at_once(tmp_path: Path) -> None:
    assert in_order(asyncio.run(watched(tmp_path, Rest(3600.0), after_first=0.0)))


def test_a_rest_ends_by_itself(tmp_path: Path) -> None:
    assert in_order(asyncio.run(watched(tmp_path, Rest(0.05))))
