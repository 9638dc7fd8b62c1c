"""Logs of pods, fetched from the kubelets of their nodes as a kube-apiserver does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import aiohttp

from volcano_py.simulator.apiserver.cluster import Cluster
from volcano_py.simulator.apiserver.requests import Target
from volcano_py.simulator.apiserver.status import Document, Refused

_CONNECT_S = 5.0


class KubeletLogs:
    """Asks the kubelet that each node names. Whoever signed its certificate is believed, as there."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def read(self, pod: Document, container: str, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """The log of *container*; that of a pod without a node is empty.

        Raises:
            Refused: the node is gone, its kubelet does not answer, or refuses.
        """
        name = (pod.get("spec") or {}).get("nodeName")
        if not name:
            return
        meta = pod["metadata"]
        url = f"{self._kubelet(name)}/containerLogs/{meta['namespace']}/{meta['name']}/{container}"
        asked = {key: value for key, value in query.items() if key != "container"}
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=limits) as session,
                session.get(url, params=asked, ssl=False) as answer,
            ):
                if answer.status >= 400:
                    raise _refused(answer.status, await answer.text())
                async for chunk in answer.content.iter_any():
                    yield chunk
        except aiohttp.ClientError as error:
            raise Refused(500, "InternalError", f'Get "{url}": {error}') from error

    def _kubelet(self, name: str) -> str:
        nodes = self._cluster.kind("", "v1", "nodes")
        status = self._cluster.objects.read(Target(nodes, "", name)).get("status") or {}
        port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port")
        addresses = {one["type"]: one["address"] for one in status.get("addresses") or ()}
        if not port or "InternalIP" not in addresses:
            raise Refused(500, "InternalError", f"no kubelet serves the logs of node {name}")
        return f"https://{addresses['InternalIP']}:{port}"


def _refused(status: int, text: str) -> Refused:
    reasons = {400: "BadRequest", 404: "NotFound"}
    return Refused(status if status in reasons else 500, reasons.get(status, "InternalError"), text.strip())
