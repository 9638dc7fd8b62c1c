"""/healthz, /readyz and /metrics over plain HTTP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from volcano_py.scheduler.run.metrics import CONTENT_TYPE, Metrics

Check = Callable[[], str]
"""Says what is wrong; "" if nothing is."""


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
    """Serves the checks and metrics at one or two addresses.

    Attributes:
        bound: the addresses that it really listens at, metrics first.
    """

    def __init__(self, alive: Check, ready: Check, metrics: Metrics) -> None:
        self._alive, self._ready, self._metrics = alive, ready, metrics
        self._runners: list[web.AppRunner] = []
        self.bound: list[tuple[str, int]] = []

    async def start(self, listen: Address | None, health: Address | None) -> None:
        """Listen for metrics at *listen* and for checks at *health*; both answer everything.

        Raises ``OSError`` where an address is taken.
        """
        for address in dict.fromkeys(one for one in (listen, health) if one is not None):
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
        return web.Response(body=self._metrics.text(), headers={"Content-Type": CONTENT_TYPE})


_BAD: Final = 503


def _said(trouble: str) -> web.Response:
    return web.Response(text=f"{trouble or 'ok'}\n", status=_BAD if trouble else 200)
