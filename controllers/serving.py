"""/healthz, /readyz and /metrics over plain HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from volcano_py.controllers.figures import CONTENT_TYPE, Figures

__all__ = ["serving"]

_BAD: Final = 503


@asynccontextmanager
async def serving(
    host: str, port: int, figures: Figures, trouble: Callable[[], str]
) -> AsyncIterator[tuple[str, int]]:
    """Listen while the context lasts; gives the address, where port 0 became a free one.

    Args:
        host: to listen at; empty: every interface.
        port: 0 takes a free one.
        figures: what /metrics says.
        trouble: what keeps us from being ready; empty: nothing. /healthz is about the process alone: it
            answers as long as the process can.
    """

    async def metrics(_request: web.Request) -> web.Response:
        return web.Response(body=figures.text(), headers={"Content-Type": CONTENT_TYPE})

    async def ready(_request: web.Request) -> web.Response:
        said = trouble()
        return web.Response(text=f"{said or 'ok'}\n", status=_BAD if said else 200)

    async def healthy(_request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    app = web.Application()
    app.add_routes(
        [
            web.get("/healthz", healthy),
            web.get("/livez", healthy),
            web.get("/readyz", ready),
            web.get("/metrics", metrics),
        ]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host or None, port).start()
        bound_host, bound_port = runner.addresses[0][:2]
        yield bound_host, bound_port
    finally:
        await runner.cleanup()
