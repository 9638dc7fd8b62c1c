"""/healthz, /readyz and /metrics over plain HTTP, for whoever runs as a process in a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

Check = Callable[[], str]
"""Says what is wrong; "" if nothing is."""
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""Of what Prometheus reads."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: ``:8080``, ``127.0.0.1:0``. An empty host is every interface."""

    host: str
    port: int


class AddressError(ValueError):
    """A text that names no address."""


def parse_address(text: str) -> Address | None:
    """The address in *text*; None for ``""`` and ``0``, which switch the listener off.

    Raises ``AddressError``.
    """
    if text in ("", "0"):
        return None
    host, separator, port = text.rpartition(":")
    if not separator or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise AddressError(f'"{text}" is no address: write HOST:PORT or :PORT, or 0 for none')
    return Address(host.strip("[]"), int(port))


class Web:
    """Serves checks and metrics.

    Args:
        alive: what is wrong with the process itself, for /healthz.
        ready: what keeps it from its work.
        metrics: all of them, in Prometheus' text form.

    Attributes:
        bound: the addresses that it really listens at, where port 0 became a free one.
    """

    def __init__(self, alive: Check, ready: Check, metrics: Callable[[], bytes]) -> None:
        self._alive, self._ready, self._metrics = alive, ready, metrics
        self._runners: list[web.AppRunner] = []
        self.bound: list[tuple[str, int]] = []

    async def start(self, *addresses: Address | None) -> None:
        """Listen at *addresses*, each of which answers everything; raises ``OSError`` where one is taken."""
        for address in dict.fromkeys(one for one in addresses if one is not None):
            runner = web.AppRunner(self._app(), access_log=None)
            await runner.setup()
            self._runners.append(runner)
            site = web.TCPSite(runner, address.host or None, address.port)
            await site.start()
            self.bound += [name[:2] for name in runner.addresses[:1]]

    async def stop(self) -> None:
        """Stop listening."""
        for runner in self._runners:
            await runner.cleanup()

    def _app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/livez", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._text)
        return app

    async def _healthz(self, request: web.Request) -> web.Response:
        return _said(self._alive())

    async def _readyz(self, request: web.Request) -> web.Response:
        return _said(self._ready())

    async def _text(self, request: web.Request) -> web.Response:
        return web.Response(body=self._metrics(), headers={"Content-Type": CONTENT_TYPE})


_BAD: Final = 503


def _said(trouble: str) -> web.Response:
    return web.Response(text=f"{trouble or 'ok'}\n", status=_BAD if trouble else 200)
