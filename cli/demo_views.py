"""What a small cluster looks like, from its API server's own objects and events: tables for the demo."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from volcano_py.crds.quantity import parse_quantity

Document = dict[str, Any]
CARDS_HELD: Final = "hami.io/vgpu-devices-allocated"
CARD_MEMORY: Final = "nvidia.com/gpumem"
_PHASE_STYLE: Final = {"Running": "green", "Succeeded": "dim", "Pending": "yellow", "Failed": "red"}


def pod_table(pods: Iterable[Document]) -> RenderableType:
    """Pods with their node and their slices of cards."""
    table = _table("POD", "STATUS", "NODE", "CARD", "MEMORY MiB", "CORES %")
    for pod in sorted(pods, key=_key):
        status = "Leaving" if "deletionTimestamp" in pod["metadata"] else pod["status"]["phase"]
        first, *others = slices_of(pod) or [("", "", "")]
        node = pod["spec"].get("nodeName", "")
        table.add_row(
            escape(pod["metadata"]["name"]), Text(status, _PHASE_STYLE.get(status, "")), node, *first
        )
        for one in others:
            table.add_row("", "", "", *one)
    return table


def slices_of(pod: Document) -> list[tuple[str, str, str]]:
    """Card, MiB and percent of each slice that *pod* holds."""
    text = pod["metadata"].get("annotations", {}).get(CARDS_HELD, "")
    rows = [row.split(",") for row in text.replace(";", ":").split(":") if row]
    return [(card, memory, cores) for card, _, memory, cores in rows]


def queue_table(queues: Iterable[Document], total_mib: int, one_mib: int) -> Table:
    """Queues with the cards they own, by weight, and those they hold, in whole cards."""
    shown = [queue for queue in queues if queue["metadata"]["name"] not in ("root", "default")]
    weights = sum(queue["spec"].get("weight", 1) for queue in shown)
    table = _table("QUEUE", "OWNS CARDS", "HOLDS CARDS", "")
    for queue in sorted(shown, key=_key):
        owns = queue["spec"].get("weight", 1) / weights * total_mib / one_mib
        held = card_mib(queue) / one_mib
        said = Text(f"borrows {held - owns:g}", "yellow") if held > owns else Text("")
        table.add_row(queue["metadata"]["name"], f"{owns:g}", f"{held:.1f}", said)
    return table


def card_mib(queue: Document) -> float:
    """MiB of cards that *queue* holds, by its status."""
    allocated = queue.get("status", {}).get("allocated", {})
    return float(parse_quantity(allocated.get(CARD_MEMORY, "0")))


def holds_cards(pod: Document) -> bool:
    """Whether *pod* is on a node and has not ended."""
    return bool(pod["spec"].get("nodeName")) and pod["status"]["phase"] in ("Pending", "Running")


def waiting_list(pods: Iterable[Document]) -> RenderableType:
    """Pods that wait, by reason, the commonest first."""
    reasons: dict[str, list[str]] = {}
    for pod in pods:
        why = refusal_of(pod)
        if why:
            reasons.setdefault(why, []).append(pod["metadata"]["name"])
    lines: list[RenderableType] = []
    for why, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        lines.append(Text.assemble((f"{', '.join(sorted(names))} ", "yellow"), "wait: ", why))
    return Group(*lines)


def refusal_of(pod: Document) -> str:
    """Why *pod* is not scheduled, as the scheduler wrote it; empty if it is, or nobody said."""
    if pod["spec"].get("nodeName"):
        return ""
    conditions = pod.get("status", {}).get("conditions") or ()
    return next((str(one.get("message", "")) for one in conditions if one["type"] == "PodScheduled"), "")


def eviction_table(events: Iterable[Document]) -> RenderableType:
    """Who was evicted, for whom, and by which rule, from the events that say so."""
    table = _table("EVICTED", "WHY")
    of_pods = (event for event in events if event["involvedObject"]["kind"] == "Pod")
    for event in sorted(of_pods, key=lambda event: str(event["involvedObject"]["name"])):
        about = event["involvedObject"]
        why = event["message"].partition(" (lost:")[0]
        table.add_row(Text(f"{about['namespace']}/{about['name']}", "red"), escape(why))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _key(document: Document) -> str:
    meta = document["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else str(meta["name"])
