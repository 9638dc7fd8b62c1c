"""A server that is slow to bind, refuses to, or binds and does not answer: a proxy that reads requests."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from aiohttp import ClientError, ClientTimeout, web

from volcano_py.client.access import Access

FAULTS = ("refused", "busy", "broken", "lost", "slow")
_KEPT = ("Content-Type", "Retry-After")


class BindFaults:
    """Passes requests on to the server of *kubeconfig*; of binds a part meets a fault.

    Attributes:
        share: of binds that meet one, from 0 to 1.
        met: how often each fault came.
    """

    def __init__(self, kubeconfig: Path, dice: random.Random, share: float) -> None:
        self._kubeconfig, self._dice = kubeconfig, dice
        self.share = share
        self.met: Counter[str] = Counter()
        self._deck: list[str] = []

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """The port it listens on, without TLS: whoever asks there is the administrator."""
        self._access = await Access.find(str(self._kubeconfig), None)
        application = web.Application(client_max_size=1 << 24)
        application.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield runner.addresses[0][1]
        finally:
            await runner.cleanup()
            await self._access.pool.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        fault = self._fault(request)
        if fault in ("refused", "busy", "broken"):
            status = {"refused": 403, "busy": 429, "broken": 500}[fault]
            said = {"kind": "Status", "status": "Failure", "code": status, "message": f"{fault} by the test"}
            return web.json_response(said, status=status, headers={"Retry-After": "0"})
        if fault == "slow":
            await asyncio.sleep(self._dice.uniform(0, 0.5))
        try:
            return await self._pass_on(request, answer=fault != "lost")
        except (ClientError, OSError):  # the server is down
            return _hang_up(request)

    def _fault(self, request: web.Request) -> str:
        binds = request.method == "POST" and request.path.endswith("/binding")
        if not binds or self._dice.random() >= self.share:
            return ""
        if not self._deck:  # dealt like cards: every few binds have met each fault
            self._deck = self._dice.sample(FAULTS, len(FAULTS))
        fault = self._deck.pop()
        self.met[fault] += 1
        return fault

    async def _pass_on(self, request: web.Request, *, answer: bool) -> web.StreamResponse:
        pool = self._access.pool
        headers = {**await self._access.headers(), "Content-Type": request.headers.get("Content-Type", "")}
        headers["Accept"] = request.headers.get("Accept", "*/*")
        url = f"{pool.configuration.host}{request.path_qs}"
        options: Any = {
            "data": await request.read(),
            "headers": headers,
            "timeout": ClientTimeout(total=None),
        }
        async with pool.open().request(request.method, url, **options) as found:
            if not answer:
                await found.read()
                return _hang_up(request)
            kept = {name: found.headers[name] for name in _KEPT if name in found.headers}
            response = web.StreamResponse(status=found.status, headers=kept)
            await response.prepare(request)
            async for chunk in found.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response


def _hang_up(request: web.Request) -> web.StreamResponse:
    """No answer: the connection is reset."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def kubeconfig_for(port: int, target: Path) -> Path:
    """A kubeconfig for the proxy on *port*, as *target*."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    target.write_text(yaml.safe_dump(config))
    return target
