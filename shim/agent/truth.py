"""Writes to pods: records that become true, and the marks that HAMi's plugin would leave."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final

from volcano_py.client.api import Api
from volcano_py.crds.cards.instances import INSTANCES
from volcano_py.shim.agent.exchange import Rewrite
from volcano_py.shim.agent.identify import Placed
from volcano_py.shim.agent.instances import Instance, with_identities
from volcano_py.shim.agent.pods import Pod, Record, marks

_EVENTS: Final = "volcano-py-agent"
_LONGEST_NOTE: Final = 1000


def pod_path(pod: Pod) -> str:
    """Where *pod* is on the server."""
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"


async def carry_out(server: Api, rewrites: Sequence[Rewrite], served: Iterable[str]) -> AsyncIterator[Any]:
    """Write *rewrites*, one after the other; each only if the pod still has the record it is made from.

    Args:
        server: where.
        rewrites: in the order in which they are safe.
        served: containers of the last one's pod that have their cards already.

    Yields:
        each pod as it is then.

    Raises:
        ApiError, Unreachable: one was not written; those before it were.
    """
    for at, each in enumerate(rewrites):
        done = served if at == len(rewrites) - 1 else ()
        yield await server.patch(pod_path(each.placed.pod), _patch(each, done), kind="json")


async def mark(server: Api, placed: Placed, served: Iterable[str], made: Sequence[Instance] = ()) -> Any:
    """Say on the pod which containers have their cards, and its instances; the pod then, None if it said so.

    Raises ``ApiError`` and ``Unreachable``.
    """
    notes = placed.pod.metadata.annotations
    wanted = marks(placed.record, notes, served)
    if made and INSTANCES in notes:
        told = with_identities(notes[INSTANCES], made)
        wanted |= {INSTANCES: told} if told != notes[INSTANCES] else {}
    if not wanted:
        return None
    change = {"metadata": {"uid": placed.pod.uid, "annotations": wanted}}
    return await server.patch(pod_path(placed.pod), change)


def event(pod: Pod, node: str, reason: str, note: str, now: str) -> dict[str, Any]:
    """A warning about *pod*, for ``POST``; *now* as RFC 3339."""
    meta = pod.metadata
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{meta.name}.{secrets.token_hex(8)}", "namespace": meta.namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
        },
        "reason": reason,
        "message": note[:_LONGEST_NOTE],
        "type": "Warning",
        "source": {"component": _EVENTS, "host": node},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def _patch(rewrite: Rewrite, served: Iterable[str]) -> list[dict[str, Any]]:
    keys, pod, after = rewrite.after.keys, rewrite.placed.pod, rewrite.after
    notes = pod.metadata.annotations
    return [
        {"op": "test", "path": "/metadata/uid", "value": pod.uid},
        {"op": "test", "path": _pointer(keys.allocated), "value": notes[keys.allocated]},
        {"op": "add", "path": _pointer(keys.allocated), "value": after.text(after.segments)},
        {"op": "add", "path": _pointer(keys.to_allocate), "value": _left(after, served)},
    ]


def _left(record: Record, served: Iterable[str]) -> str:
    done = frozenset(served)
    gone = {claim.segment for claim in record.claims if claim.container in done}
    return record.text([() if at in gone else segment for at, segment in enumerate(record.segments)])


def _pointer(annotation: str) -> str:
    return "/metadata/annotations/" + annotation.replace("~", "~0").replace("/", "~1")
