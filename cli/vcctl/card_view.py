"""Who sits on which card of a node: as data, and drawn with a bar of memory and one of cores for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.text import Text

from volcano_py.cli.vcctl.measured import Measured
from volcano_py.cli.vcctl.tables import STYLES
from volcano_py.scheduler.model.cards import CardHold, CardSpec
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.tasks import HOLDS_NODE, NOWHERE, Status

Data = dict[str, Any]
WIDTH: Final = 40
"""Cells of a bar."""
COLOURS: Final = ("cyan", "magenta", "blue", "yellow", "bright_red", "bright_cyan", "bright_magenta")
KEYS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Who is who in a bar without colours."""
_WORDS: Final = {Status.RELEASING: "Leaving"}


@dataclass(frozen=True, slots=True)
class Look:
    """How it is drawn.

    Attributes:
        coloured: bars are blocks in colours; else letters.
        plain: ASCII only.
        by: ``pod`` or ``queue``: what has a colour or letter of its own.
    """

    coloured: bool = False
    plain: bool = True
    by: str = "pod"


# -- data ---------------------------------------------------------------------------------------


def node_cards(state: ClusterState, name: str) -> list[Data]:
    """The cards of node *name*, each with the pods that hold parts of it, the largest part first."""
    row = state.nodes.index[name]
    specs = state.cards.specs.get(row, ())
    pods: dict[int, list[Data]] = {place: [] for place in range(len(specs))}
    for place, told in _holders(state, row):
        pods.setdefault(place, []).append(told)
    return [_card(state, row, place, spec, pods[place]) for place, spec in enumerate(specs)]


def _card(state: ClusterState, row: int, place: int, spec: CardSpec, pods: list[Data]) -> Data:
    cards = state.cards
    memory, cores, slots = (
        int(used[row, place]) for used in (cards.used_memory, cards.used_cores, cards.used_slots)
    )
    return {
        "card": place,
        "uuid": spec.uuid,
        "type": spec.type,
        "mode": spec.mode,
        "healthy": spec.healthy,
        "memoryMiB": spec.memory_mib,
        "usedMemoryMiB": memory,
        "freeMemoryMiB": max(spec.memory_mib - memory, 0),
        "cores": spec.cores,
        "coreUnit": unit_of(spec),
        "usedCores": cores,
        "freeCores": max(spec.cores - cores, 0),
        "slots": spec.slots,
        "usedSlots": slots,
        "pods": sorted(pods, key=lambda pod: (-pod["memoryMiB"], pod["namespace"], pod["pod"])),
    }


def unit_of(spec: CardSpec) -> str:
    """In what the cores of *spec* are told."""
    return "cores" if spec.counts_cores else "%"


def _holders(state: ClusterState, row: int) -> Iterator[tuple[int, Data]]:
    """Card and holder, for all pods on node *row*."""
    tasks = state.tasks
    for task, choice in tasks.slices.items():
        if tasks.node[task] == row and HOLDS_NODE[tasks.status[task]]:
            for hold in choice.holds:
                containers = sorted({part.container for part in choice.slices if part.card == hold.card})
                yield hold.card, _holder(state, task, hold, containers)


def _holder(state: ClusterState, task: int, hold: CardHold, containers: list[str]) -> Data:
    tasks = state.tasks
    namespace, _, pod = tasks.keys[task].partition("/")
    job = int(tasks.job[task])
    status = Status(int(tasks.status[task]))
    return {
        "namespace": namespace,
        "pod": pod,
        "containers": containers,
        "queue": "" if job == NOWHERE else state.jobs[job].queue_name,
        "memoryMiB": hold.memory_mib,
        "cores": hold.cores,
        "slots": hold.slots,
        "status": _WORDS.get(status, status.name.capitalize()),
        "interruptible": bool(tasks.interruptible[task]),
    }


def with_figures(cards: Sequence[Data], figures: Measured) -> list[Data]:
    """*cards* with what is really in use of each, and by each pod."""
    return [
        {
            **card,
            **figures.of_card(card["uuid"]),
            "pods": [
                {**pod, **figures.of_pod((pod["namespace"], pod["pod"], card["uuid"]))}
                for pod in card["pods"]
            ],
        }
        for card in cards
    ]


# -- drawn --------------------------------------------------------------------------------------


def picture(cards: Sequence[Data], look: Look) -> Iterator[Text]:
    """Lines for people: a block a card."""
    names = _names(cards, look)
    for place, card in enumerate(cards):
        if place:
            yield Text()
        yield _heading(card)
        yield from _bars(card, look, names)
        for pod in card["pods"]:
            yield _legend(pod, look, names, card["coreUnit"])
        yield _free(card, look)


def _names(cards: Sequence[Data], look: Look) -> dict[str, int]:
    """Everybody who has a colour, numbered in the order in which they are drawn."""
    found: dict[str, int] = {}
    for card in cards:
        for pod in card["pods"]:
            found.setdefault(_who(pod, look), len(found))
    return found


def _who(pod: Mapping[str, Any], look: Look) -> str:
    return str(pod["queue"]) if look.by == "queue" else f"{pod['namespace']}/{pod['pod']}"


def _heading(card: Data) -> Text:
    health = Text("Healthy", "green") if card["healthy"] else Text("Unhealthy", "red")
    mode = "" if card["mode"] == "hami-core" else f"  {card['mode']}"
    pods = f"{card['usedSlots']}/{card['slots']} pods"
    head = Text(f"card {card['card']}", "bold")
    return Text.assemble(head, f"  {card['type']}{mode}  ", health, f"  {pods}  ", (card["uuid"], "dim"))


def _bars(card: Data, look: Look, names: Mapping[str, int]) -> Iterator[Text]:
    for label, key, used, unit in (
        ("memory", "memoryMiB", "usedMemoryMiB", "MiB"),
        ("cores", "cores", "usedCores", card["coreUnit"]),
    ):
        parts = [(names[_who(pod, look)], int(pod[key])) for pod in card["pods"]]
        line = Text(f"  {label:<7}")
        line.append_text(bar(parts, card[key], look))
        line.append(f"  {card[used]}/{card[key]} {unit}")
        in_use = card.get(f"inUse{key[0].upper()}{key[1:]}")
        yield line if in_use is None else line.append(f", {in_use} {unit} in use")


def bar(parts: Sequence[tuple[int, int]], whole: int, look: Look, width: int = WIDTH) -> Text:
    """*parts* of *whole*, one behind the other, then what is free.

    Args:
        parts: (number of who has it, amount); whoever has something is seen.
        whole: where the parts are more together, they are the whole.
        look: how.
        width: cells.
    """
    drawn = Text()
    for number, cells in cells_of(parts, whole, width):
        drawn.append(_sign(number, look) * cells, _style(number, look))
    left = width - len(drawn)
    drawn.append(("." if look.plain else "░") * left, "dim")
    return drawn


def cells_of(parts: Sequence[tuple[int, int]], whole: int, width: int) -> list[tuple[int, int]]:
    """How many cells of *width* each part takes: never none, and never more than there are together."""
    shown = [(number, amount) for number, amount in parts if amount > 0][:width]
    total = max(whole, sum(amount for _, amount in shown), 1)
    cells = [max(amount * width // total, 1) for _, amount in shown]
    while sum(cells) > width:  # the small ones took from the large ones
        cells[cells.index(max(cells))] -= 1
    return [(number, count) for (number, _), count in zip(shown, cells, strict=True)]


def _sign(number: int, look: Look) -> str:
    return "█" if look.coloured and not look.plain else KEYS[number % len(KEYS)]


def _style(number: int, look: Look) -> str:
    return COLOURS[number % len(COLOURS)] if look.coloured else ""


def _legend(pod: Data, look: Look, names: Mapping[str, int], unit: str) -> Text:
    number = names[_who(pod, look)]
    sign = "■" if look.coloured and not look.plain else KEYS[number % len(KEYS)]
    where = ",".join(pod["containers"])
    queue = f"  queue {pod['queue']}" if pod["queue"] else ""
    shares = f"  {pod['slots']} shares" if pod["slots"] > 1 else ""
    return Text.assemble(
        "  ",
        (sign, _style(number, look)),
        f" {pod['namespace']}/{pod['pod']}" + (f" ({where})" if where else ""),
        f"  {pod['memoryMiB']} MiB  {pod['cores']} {unit}{shares}{queue}  ",
        (pod["status"], STYLES.get(pod["status"], "")),
        *(("  in use ", in_use(pod)) if "inUseMemoryMiB" in pod else ()),
    )


def in_use(thing: Data) -> Text:
    """What is measured to be in use of a card or part; more than there is of it in red."""
    held = thing["inUseMemoryMiB"]
    share = f", {thing['inUseCores']} %" if "inUseCores" in thing else ""
    return Text(f"{held} MiB{share}", "red" if held > thing["memoryMiB"] else "dim")


def _free(card: Data, look: Look) -> Text:
    sign = "." if look.plain else "░"
    slots = max(card["slots"] - card["usedSlots"], 0)
    free = f"{card['freeMemoryMiB']} MiB  {card['freeCores']} {card['coreUnit']}  {slots} more pods"
    if not card["healthy"]:
        free += ", but it takes none while it is unhealthy"
    return Text(f"  {sign} free  {free}", "dim")
