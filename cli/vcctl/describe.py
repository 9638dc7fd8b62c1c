"""One object in full, as people read it: what matters first, then its spec and status, then its events."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from volcano_py.cli.vcctl.cluster import Cluster, Document
from volcano_py.cli.vcctl.tables import age, say, span
from volcano_py.client.api import ApiError
from volcano_py.crds.times import parse_time_s

_WIDTH: Final = 14
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The whole object once more, as kubectl keeps it for its next apply."""
EVENTS: Final = 15
"""Events shown, the newest last."""


async def describe(cluster: Cluster, document: Document, first: Mapping[str, Any]) -> None:
    """Print *document*; *first* holds what no field of it says."""
    meta = document["metadata"]
    _line("Name", meta["name"], 0)
    if meta.get("namespace"):
        _line("Namespace", meta["namespace"], 0)
    _line("Age", age(document), 0)
    for key, value in first.items():
        _line(key, value, 0)
    notes = {key: value for key, value in meta.get("annotations", {}).items() if key != LAST_APPLIED}
    for part, value in (("Labels", meta.get("labels")), ("Annotations", notes)):
        if value:
            _line(part, value, 0)
    if meta.get("ownerReferences"):
        _line("OwnerReferences", meta["ownerReferences"], 0)
    for part in ("spec", "status"):
        if document.get(part):
            _line(part.capitalize(), document[part], 0)
    await print_events(cluster, document)


def _line(key: str, value: Any, depth: int) -> None:
    """``key: value``, with what *value* holds below it."""
    indent = "  " * depth
    head = f"{indent}{key}:"
    if isinstance(value, Mapping):
        say(head)
        for name, item in value.items():
            _line(str(name), item, depth + 1)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        say(head)
        for item in value:
            _item(item, depth + 1)
    elif isinstance(value, list):
        say(f"{head:<{_WIDTH}} {', '.join(map(str, value))}")
    else:
        say(f"{head:<{_WIDTH}} {value}")


def _item(item: Any, depth: int) -> None:
    """One entry of a list, its first line marked."""
    told = ", ".join(f"{key}={value}" for key, value in item.items() if not isinstance(value, (dict, list)))
    say(f"{'  ' * depth}- {told}")
    for key, value in item.items():
        if isinstance(value, (dict, list)):
            _line(str(key), value, depth + 1)


async def print_events(cluster: Cluster, document: Document) -> None:
    """Print the latest events about *document*."""
    found = await events_of(cluster, document)
    if not found:
        say("Events:        none")
        return
    say("Events:")
    for event in found[-EVENTS:]:
        told = "  ".join(str(event.get(key, "")) for key in ("type", "reason", "message"))
        say(f"  {event_age(event):>5}  {told}")


async def events_of(cluster: Cluster, document: Document) -> list[Document]:
    """Events about *document*, the newest last; none where they may not be read."""
    meta = document["metadata"]
    fields = [f"involvedObject.kind={document['kind']}", f"involvedObject.name={meta['name']}"]
    # Events about objects without a namespace stand in "default".
    path = f"/api/v1/namespaces/{meta.get('namespace') or 'default'}/events"
    try:
        answer = await cluster.read(path, fieldSelector=",".join(fields))
    except ApiError as error:
        if error.status in (403, 404):
            return []
        raise
    uid = meta.get("uid")
    events = [
        e for e in answer.get("items") or [] if (e.get("involvedObject") or {}).get("uid") in (uid, "", None)
    ]
    return sorted(events, key=event_time)


def event_time(event: Document) -> float:
    """When *event* was last seen, epoch seconds; 0 where it doesn't say."""
    series = event.get("series") or {}
    said = (
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or (event.get("metadata") or {}).get("creationTimestamp")
    )
    return parse_time_s(said) if said else 0.0


def event_age(event: Document) -> str:
    """How long ago *event* was last seen."""
    seen = event_time(event)
    return span(time.time() - seen) if seen else "?"
