"""``vcctl-py top queues|nodes|cards``: who holds what, by what pods ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import typer
from rich.text import Text

from volcano_py.cli.card_lines import amount, lines
from volcano_py.cli.lazy import NearMissGroup
from volcano_py.cli.queue_bars import ASCII, BLOCKS, queue_table, usage_bar
from volcano_py.cli.vcctl.card_view import in_use, unit_of
from volcano_py.cli.vcctl.cluster import Cluster, run
from volcano_py.cli.vcctl.flags import DRAWN, Flags, verb
from volcano_py.cli.vcctl.live_config import SchedulerConf
from volcano_py.cli.vcctl.measured import PrometheusUrl, measured
from volcano_py.cli.vcctl.snapshot import snapshot
from volcano_py.cli.vcctl.tables import Column, drawn, out, print_data, print_rows, say, table
from volcano_py.crds.quantity import format_base, units_per_one
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.wording import NOUNS
from volcano_py.simulator.report import queue_report

Data = dict[str, Any]


class _Things(NearMissGroup):
    """What can be looked at, in the singular too."""

    spellings: ClassVar = {"queue": "queues", "q": "queues", "node": "nodes", "no": "nodes", "card": "cards"}


app = typer.Typer(cls=_Things, no_args_is_help=True, help="What queues, nodes and cards hold.")


@verb(app, "queues", *DRAWN)
def top_queues(flags: Flags, scheduler_conf: SchedulerConf = None) -> None:
    """What every queue holds, against what it deserves and its max.

    vcctl-py top queues
    """

    async def draw(cluster: Cluster) -> None:
        seen = await snapshot(cluster, scheduler_conf)
        engine = seen.engine
        shares = engine.close(engine.open(seen.now)).shares
        queues = queue_report(engine.state, shares)
        if not print_data(flags, {"queues": queues}):
            console = out()
            told = queue_table([*queues], plain=console.options.ascii_only)
            console.print(told if told is not None else "There are no queues.", soft_wrap=False)

    run(flags, lambda cluster: drawn(cluster, draw))


@verb(app, "nodes", *DRAWN)
def top_nodes(flags: Flags, scheduler_conf: SchedulerConf = None) -> None:
    """What is asked of every node, against what it has.

    vcctl-py top nodes --watch
    """

    async def draw(cluster: Cluster) -> None:
        seen = await snapshot(cluster, scheduler_conf)
        nodes = node_usage(seen.engine)
        if not print_data(flags, {"nodes": nodes}):
            _print(flags, node_columns(nodes), nodes, "There are no nodes.")

    run(flags, lambda cluster: drawn(cluster, draw))


@verb(app, "cards", *DRAWN)
def top_cards(flags: Flags, prometheus: PrometheusUrl = None, scheduler_conf: SchedulerConf = None) -> None:
    """What is taken of every card: memory, cores, and how many pods share it.

    With a Prometheus also what is really in use, as the node agents see it.

    vcctl-py top cards

    vcctl-py top cards --prometheus http://prometheus:9090
    """

    async def draw(cluster: Cluster) -> None:
        seen = await snapshot(cluster, scheduler_conf)
        figures = await measured(prometheus)
        cards = [{**card, **figures.of_card(card["uuid"])} for card in card_usage(seen.engine.state)]
        if not print_data(flags, {"cards": cards}):
            columns = CARDS if prometheus is None else (*CARDS, IN_USE)
            _print(flags, columns, cards, "No node reports cards.")

    run(flags, lambda cluster: drawn(cluster, draw))


def _print(flags: Flags, columns: Sequence[Column], items: Sequence[Data], none: str) -> None:
    if items:
        print_rows(table(columns, items, flags))
    else:
        say(none)


# -- nodes --------------------------------------------------------------------------------------


def node_usage(engine: Engine) -> list[Data]:
    """Every node by name: what it has and what is asked of it, by resource, and its state."""
    state = engine.state
    nodes, names = state.nodes, state.vocabulary.names
    told = []
    for name in sorted(name for name, row in nodes.index.items() if nodes.live[row]):
        row = nodes.index[name]
        used = dict(zip(names, nodes.used[row].tolist(), strict=False)) | _cards_used(state, row)
        has = dict(zip(names, nodes.allocatable[row].tolist(), strict=False))
        known = [each for each in names if has[each] > 0 or used[each] > 0]
        told.append(
            {
                "name": name,
                "state": _node_state(state, row),
                "used": {each: format_base(each, used[each]) for each in known},
                "allocatable": {each: format_base(each, has[each]) for each in known},
                "percent": {each: round(100 * used[each] / max(has[each], 1), 1) for each in known},
            }
        )
    return told


def _cards_used(state: ClusterState, row: int) -> dict[str, int]:
    """What is taken of the cards of node *row*, under all names that it offers them by, in base units.

    Pods need not ask for memory or cores to get them: a whole card has both.
    """
    if not state.cards.specs.get(row):
        return {}
    taken = {part: int(getattr(state.cards, f"used_{part}")[row].sum()) for part in NOUNS}
    return {name: taken[part] * units_per_one(name) for name, part in state.card_source.measures.items()}


def _node_state(state: ClusterState, row: int) -> str:
    if state.nodes.unschedulable[row]:
        return "Cordoned"
    return "Tainted" if state.nodes.tainted[row] else "Ready"


def node_columns(nodes: Sequence[Data]) -> list[Column]:
    """Columns of the table: the common resources, then every other one that some node has."""
    others = sorted({name for node in nodes for name in node["used"]} - {"cpu", "memory", "pods"})
    columns = [Column("Name", lambda node: node["name"]), Column("State", lambda node: node["state"])]
    told = lines(("cpu", "memory", "pods", *others))
    return [*columns, *(_column(label, name) for name, label in told.items())]


def _column(label: str, resource: str) -> Column:
    return Column(label, lambda node: _of(node, label, resource))


def _of(node: Data, label: str, name: str) -> str | Text:
    """``3/8 (37 %)``; more than half full in colour."""
    if name not in node["used"]:
        return "-"
    percent = node["percent"][name]
    used, has = (amount(label, name, node[key][name]) for key in ("used", "allocatable"))
    text = f"{used}/{has} ({percent:.0f} %)"
    style = "red" if percent >= 95 else "yellow" if percent >= 70 else ""
    return Text(text, style) if style else text


# -- cards --------------------------------------------------------------------------------------


def card_usage(state: ClusterState) -> list[Data]:
    """Every card, by node and position."""
    cards, told = state.cards, []
    for name in sorted(state.nodes.index):
        row = state.nodes.index[name]
        for place, spec in enumerate(cards.specs.get(row, ())):
            told.append(
                {
                    "node": name,
                    "card": place,
                    "uuid": spec.uuid,
                    "type": spec.type,
                    "memoryMiB": spec.memory_mib,
                    "usedMemoryMiB": int(cards.used_memory[row, place]),
                    "cores": spec.cores,
                    "coreUnit": unit_of(spec),
                    "usedCores": int(cards.used_cores[row, place]),
                    "slots": spec.slots,
                    "usedSlots": int(cards.used_slots[row, place]),
                    "healthy": spec.healthy,
                }
            )
    return told


def _in_use(card: Data) -> Text:
    return in_use(card) if "inUseMemoryMiB" in card else Text("not known", "dim")


def _bar(card: Data) -> str:
    signs = ASCII if out().options.ascii_only else BLOCKS
    return usage_bar(card["usedMemoryMiB"], 0, card["memoryMiB"], signs)


CARDS: Final = (
    Column("Node", lambda card: card["node"]),
    Column("Card", lambda card: card["card"]),
    Column("Type", lambda card: card["type"]),
    Column("Use", _bar),
    Column("Memory", lambda card: f"{card['usedMemoryMiB']}/{card['memoryMiB']} MiB"),
    Column("Cores", lambda card: f"{card['usedCores']}/{card['cores']} {card['coreUnit']}"),
    Column("Pods", lambda card: f"{card['usedSlots']}/{card['slots']}"),
    Column("Health", lambda card: "Healthy" if card["healthy"] else Text("Unhealthy", "red")),
    Column("UUID", lambda card: card["uuid"], wide=True),
)
IN_USE: Final = Column("In use", _in_use)
