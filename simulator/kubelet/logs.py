"""Logs of pretend pods, served as a kubelet serves them, so that ``kubectl logs`` works on any API server.

One HTTPS server on the loopback address answers for all nodes; API servers find it by the nodes' kubelet port
and, as with real kubelets, do not ask who signed its certificate. It tells nothing but scripted lines.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import trustme
from aiohttp import web

from volcano_py.simulator.kubelet.podview import Container, PodView
from volcano_py.simulator.kubelet.script import output
from volcano_py.simulator.kubelet.statuses import HOST_IP

_FOLLOW_S = 0.2
"""How often a followed log looks whether its pod has ended."""


@asynccontextmanager
async def serve_logs(find: Callable[[str], PodView | None]) -> AsyncIterator[int]:
    """Serve the logs of the pods that *find* knows by ``namespace/name``; yields the port."""
    app = web.Application()
    endpoint = _Logs(find)
    app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", endpoint.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST_IP, 0, ssl_context=_tls())
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert(HOST_IP).configure_cert(context)
    return context


class _Logs:
    def __init__(self, find: Callable[[str], PodView | None]) -> None:
        self._find = find

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The log of one container, whole or followed until its pod ends."""
        words = request.match_info
        pod = self._find(f"{words['namespace']}/{words['pod']}")
        if pod is None:
            raise web.HTTPNotFound(text=f'pod "{words["pod"]}" is not known here')
        container = _container(pod, words["container"])
        if container is None:
            raise web.HTTPNotFound(text=f"container {words['container']} not found in pod {words['pod']}")
        if pod.status.phase == "Pending":
            raise web.HTTPBadRequest(
                text=f'container "{container.name}" in pod "{words["pod"]}" waits to start'
            )
        body = _text(pod, container, request)
        if request.query.get("follow") != "true":
            whole = web.Response(body=body, content_type="text/plain")
            whole.force_close()
            return whole
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.force_close()  # a server that keeps connections would hold up our end
        await response.prepare(request)
        await response.write(body)
        while self._runs(pod):
            await asyncio.sleep(_FOLLOW_S)
        return response

    def _runs(self, pod: PodView) -> bool:
        now = self._find(pod.key)
        return now is not None and now.metadata.uid == pod.metadata.uid and not now.has_ended


def _container(pod: PodView, name: str) -> Container | None:
    return next((one for one in (*pod.spec.containers, *pod.spec.init_containers) if one.name == name), None)


def _text(pod: PodView, container: Container, request: web.Request) -> bytes:
    """All lines are written when the container starts."""
    asked = request.query
    if asked.get("previous") == "true":
        raise web.HTTPBadRequest(text=f'previous terminated container "{container.name}" not found')
    started_s = pod.running_since_s or pod.acknowledged_s or 0.0
    lines = output(pod, container)
    since_s = float(asked.get("sinceSeconds", "inf"))
    if time.time() - started_s > since_s:
        lines = []
    if "tailLines" in asked:
        lines = lines[-int(asked["tailLines"]) :] if int(asked["tailLines"]) else []
    if asked.get("timestamps") == "true":
        stamp = datetime.fromtimestamp(started_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.000000000Z")
        lines = [f"{stamp} {line}" for line in lines]
    text = "".join(f"{line}\n" for line in lines).encode()
    return text[: int(asked["limitBytes"])] if "limitBytes" in asked else text
