"""Pretend nodes on a server, their kubelets and their logs, until cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from volcano_py.client.api import RESOURCES, Api
from volcano_py.scheduler.cluster.reflector import Change
from volcano_py.simulator.following import Followed, follow
from volcano_py.simulator.kubelet.kubelets import Kubelets
from volcano_py.simulator.kubelet.leases import keep_alive
from volcano_py.simulator.kubelet.logs import serve_logs
from volcano_py.simulator.kubelet.nodes import SELECTOR, NodeShape, make_nodes, register_nodes
from volcano_py.simulator.kubelet.podview import decode_pod
from volcano_py.simulator.volumes.keeping import keep_volumes

PLAYING: Final = "pretend nodes are played"
"""Part of what a process of kubelets says once its nodes are there."""
_BOUND_PODS: Final = Followed(RESOURCES["Pod"], decode_pod, {"fieldSelector": "spec.nodeName!="})
_decode_node: Final = msgspec.json.Decoder(dict).decode
_PRETEND_NODES: Final = Followed(RESOURCES["Node"], _decode_node, {"labelSelector": SELECTOR})


async def play(
    api: Api,
    nodes: int = 0,
    shape: NodeShape | None = None,
    *,
    in_flight: int = 16,
    leases_per_s: float = 0.0,
    volumes: bool = False,
    ready: Callable[[Kubelets], None] = lambda kubelets: None,
) -> None:
    """Make *nodes* of *shape* and run whatever is bound to pretend nodes, until cancelled.

    Nodes and pods may come, go and change as they like; pods on other nodes are left alone.

    Args:
        api: the server.
        nodes: how many to make, beside those that are there.
        shape: what each has.
        in_flight: requests at once.
        leases_per_s: how many leases of nodes are renewed a second, at most; 0: none. A node controller gives
            nodes up where that is less than one of ten nodes.
        volumes: make volumes for claims of our provisioner and bind them.
        ready: called once the nodes are there.

    Raises:
        ApiError: the server refused a node.
        Unreachable: it did not answer while nodes were made; later it is waited for.
    """
    kubelets = Kubelets(api, in_flight=in_flight)
    uids: dict[str, str] = {}
    async with serve_logs(kubelets.pod) as port:
        made = make_nodes(nodes, shape or NodeShape())
        await register_nodes(api, made, kubelet_port=port, in_flight=in_flight)
        async with asyncio.TaskGroup() as group:
            group.create_task(follow(api, _PRETEND_NODES, _on_node(kubelets, uids)).run())
            group.create_task(follow(api, _BOUND_PODS, _on_pod(kubelets)).run())
            group.create_task(kubelets.run())
            if leases_per_s:
                group.create_task(keep_alive(api, lambda: uids, most_per_s=leases_per_s))
            if volumes:
                group.create_task(keep_volumes(api, tells=False))
            ready(kubelets)


def _on_node(kubelets: Kubelets, uids: dict[str, str]) -> Callable[[Change], None]:
    def tell(change: Change) -> None:
        if change.item is None:
            kubelets.remove_node(change.key)
            uids.pop(change.key, None)
        else:
            uids[change.key] = change.uid
            status = change.item.get("status") or {}
            kubelets.add_node(change.key, status.get("allocatable") or {})

    return tell


def _on_pod(kubelets: Kubelets) -> Callable[[Change], None]:
    def tell(change: Change) -> None:
        if change.item is None:
            kubelets.remove_pod(change.key)
        else:
            kubelets.add_pod(change.item)

    return tell
