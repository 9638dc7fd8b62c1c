"""What a small cluster looks like, from its API server's own objects and events: tables for the demo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from volcano_py.cli.queue_bars import BLOCKS, usage_bar
from volcano_py.crds.quantity import parse_quantity

Document = dict[str, Any]
CARDS_HELD: Final = "hami.io/vgpu-devices-allocated"
CARD_MEMORY: Final = "nvidia.com/gpumem"
CELLS: Final = 6
"""Of the bar of a card."""
_COLOURS: Final = ("magenta", "cyan", "yellow", "green", "blue")
"""Of teams."""
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


def card_picture(pods: Iterable[Document], nodes: int, cards: int, one_mib: int) -> RenderableType:
    """All cards of *nodes*, a line each: who is on each card, and how full its memory is.

    Args:
        pods: all pods.
        nodes: pretend nodes, ``node-0`` and on.
        cards: of each node.
        one_mib: memory of each card.
    """
    held: Counter[str] = Counter()
    work: dict[str, Counter[str]] = {}
    teams: dict[str, str] = {}
    for pod in filter(holds_cards, pods):
        meta = pod["metadata"]
        for card, mib, _ in slices_of(pod):
            held[card] += int(mib)
            work.setdefault(card, Counter())[str(meta["name"]).partition("-")[0]] += 1
            teams[card] = meta["namespace"]
    table = _table("", *(f"CARD {card}" for card in range(cards)))
    for node in (f"node-{number}" for number in range(nodes)):
        ids = [f"{node}-{card}" for card in range(cards)]
        table.add_row(
            node,
            *(
                Text.assemble(
                    (usage_bar(held[card], 0, one_mib, BLOCKS, CELLS), _colour(teams.get(card))),
                    f" {_names(work.get(card))}",
                )
                for card in ids
            ),
        )
    return table


def _colour(team: str | None) -> str:
    """The same for the same team wherever it appears."""
    return _COLOURS[sum(team.encode()) % len(_COLOURS)] if team else "dim"


def _names(pods: Counter[str] | None) -> str:
    """``train``, ``chat x4``, ``idle``."""
    if not pods:
        return "idle"
    return ", ".join(name if count == 1 else f"{name} x{count}" for name, count in sorted(pods.items()))


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
