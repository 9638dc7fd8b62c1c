"""Orders to controllers: a Command object names an action and its target, as with Volcano's tools."""

from __future__ import annotations

from typing import Final

from volcano_py.cli.vcctl.cluster import Cluster, CommandError, Document

QUEUE_NAMESPACE: Final = "default"
"""Where orders to queues are put, since queues have no namespace."""


async def order(cluster: Cluster, target: Document, action: str, namespace: str) -> str:
    """Order *action* of *target*; the name of the Command."""
    meta = target["metadata"]
    reference = {
        "apiVersion": target["apiVersion"],
        "kind": target["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    body = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {
            "generateName": f"{meta['name']}-{action.lower()}-",
            "namespace": namespace,
            "ownerReferences": [reference],
        },
        "action": action,
        "target": reference,
        "reason": "CommandIssued",
        "message": "asked for with vcctl-py",
    }
    made = await cluster.create("Command", body)
    return str(made["metadata"]["name"])


def one_name(positional: str | None, option: str | None, kind: str) -> str:
    """The name that was given, as argument or with Volcano's option."""
    if positional and option and positional != option:
        raise CommandError(f"two names are given, {positional} and {option}", "name one of them", code=2)
    name = positional or option
    if not name:
        raise CommandError(f"name a {kind}", code=2)
    return name
