"""Who had to go, for whom: from what is written on pods, and from events."""

from __future__ import annotations

from volcano_py.cli.vcctl.cluster import Cluster, Document
from volcano_py.cli.vcctl.describe import event_age, event_time
from volcano_py.client.api import ApiError

EVICTED_FOR = "volcano-py.io/evicted-for"
RULE = "volcano-py.io/evicted-by-rule"
REASON = "Evict"


def written_on(pod: Document) -> list[str]:
    """What *pod* itself says of its eviction."""
    notes = pod["metadata"].get("annotations") or {}
    if EVICTED_FOR not in notes:
        return []
    rule = f": {notes[RULE]}" if RULE in notes else ""
    return [f"it was evicted for {notes[EVICTED_FOR]}{rule}"]


async def told_by_events(cluster: Cluster, namespace: str, kind: str, name: str) -> list[str]:
    """Evictions that events on an object tell of: its own, or those of a PodGroup's pods."""
    try:
        answer = await cluster.read(
            f"/api/v1/namespaces/{namespace}/events", fieldSelector=f"reason={REASON}"
        )
    except ApiError as error:
        if error.status in (403, 404):
            return []
        raise
    found = []
    for event in sorted(answer.get("items") or [], key=event_time):
        about = event.get("involvedObject") or {}
        if (about.get("kind"), about.get("name")) == (kind, name):
            found.append(f"{event_age(event)} ago, {kind} {name}: {event.get('message', '')}{_times(event)}")
    return found


def _times(event: Document) -> str:
    """How often it was told, where the server counts."""
    count = (event.get("series") or {}).get("count") or event.get("count") or 1
    return f" ({count} times)" if count > 1 else ""
