"""Which subresource takes which request, and what answers it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final, Protocol

from aiohttp import web

from volcano_py.simulator.apiserver.cluster import Cluster
from volcano_py.simulator.apiserver.requests import Target, Write
from volcano_py.simulator.apiserver.security import Keyring, User
from volcano_py.simulator.apiserver.status import Document, bad_request, not_allowed
from volcano_py.simulator.apiserver.store import encode
from volcano_py.simulator.apiserver.subresources.binding import bind
from volcano_py.simulator.apiserver.subresources.eviction import evict
from volcano_py.simulator.apiserver.subresources.reviews import REVIEWS, review
from volcano_py.simulator.apiserver.subresources.scale import read_scale
from volcano_py.simulator.apiserver.subresources.tokens import issue_token

POSTED: Final = REVIEWS | {"bindings"}
"""Resources that are only ever posted and kept nowhere."""


class Logs(Protocol):
    """Where the logs of pods come from."""

    def read(self, pod: Document, container: str, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """The log of one container, as the query asks for it (follow, tailLines, sinceSeconds, ...).

        Raises:
            Refused: what the client is answered.
        """


def post(
    cluster: Cluster, keys: Keyring, user: User, target: Target, document: Document, write: Write
) -> Document:
    """Carry out a POST that keeps no object of its own.

    Raises:
        Refused: as the subresource says.
    """
    plural, subresource = target.kind.plural, target.subresource
    if plural == "bindings":
        name = str((document.get("metadata") or {}).get("name") or "")
        pods = cluster.registry.resolve("", "v1", "pods")
        if pods is None or not name:
            raise bad_request("name is required")
        return bind(cluster.objects, Target(pods, target.namespace, name, "binding"), document, write)
    if plural in REVIEWS:
        return review(target.kind, document, user, keys)
    match subresource:
        case "binding":
            return bind(cluster.objects, target, document, write)
        case "eviction":
            return evict(cluster.objects, cluster.deleting, target, document)
        case "token":
            return issue_token(cluster.objects, keys, target, document)
        case _:
            raise not_allowed()


async def read_subresource(
    cluster: Cluster, logs: Logs, target: Target, request: web.BaseRequest
) -> web.StreamResponse:
    """Answer a GET of scale or log.

    Raises:
        Refused: 404 or 405.
    """
    if target.subresource == "scale":
        scale = read_scale(cluster.objects, target)
        return web.Response(body=encode(scale), content_type="application/json")
    if target.subresource == "log":
        return await _stream_log(cluster, logs, target, request)
    raise not_allowed()


async def _stream_log(
    cluster: Cluster, logs: Logs, target: Target, request: web.BaseRequest
) -> web.StreamResponse:
    pod = cluster.objects.read(Target(target.kind, target.namespace, target.name))
    chunks = logs.read(pod, _container_of(pod, request.query.get("container", "")), request.query)
    first = await anext(chunks, b"")
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    if first:
        await response.write(first)
    async for chunk in chunks:
        await response.write(chunk)
    await response.write_eof()
    return response


def _container_of(pod: Document, wanted: str) -> str:
    name = pod["metadata"]["name"]
    containers = [one["name"] for one in pod["spec"].get("containers") or ()]
    early = [one["name"] for one in pod["spec"].get("initContainers") or ()]
    if wanted:
        if wanted not in (*containers, *early):
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(containers) > 1:
        listed = f"[{' '.join(containers)}]"
        extra = f" or one of the init containers: [{' '.join(early)}]" if early else ""
        raise bad_request(
            f"a container name must be specified for pod {name}, choose one of: {listed}{extra}"
        )
    return str(containers[0])
