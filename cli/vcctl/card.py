"""``vcctl-py card NODE``: who sits on which card of a node."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from volcano_py.cli.lazy import NearMissGroup
from volcano_py.cli.vcctl.card_view import Look, node_cards, picture, with_figures
from volcano_py.cli.vcctl.cluster import Cluster, run
from volcano_py.cli.vcctl.flags import CONNECTION, ONE, Flags, with_flags
from volcano_py.cli.vcctl.live_config import SchedulerConf
from volcano_py.cli.vcctl.measured import PrometheusUrl, measured
from volcano_py.cli.vcctl.snapshot import snapshot
from volcano_py.cli.vcctl.tables import out, print_data, say


class By(StrEnum):
    """What has a colour of its own."""

    pod = "pod"
    queue = "queue"


def card(
    flags: Flags,
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node.")],
    by: Annotated[By, typer.Option("--by", help="What has a colour of its own.")] = By.pod,
    prometheus: PrometheusUrl = None,
    scheduler_conf: SchedulerConf = None,
) -> None:
    """Draw the cards of a node: memory and cores of each, who holds which part, and what is free.

    Parts are what was handed out; what is really in use a Prometheus may tell.
    Where the output is no terminal, letters stand for colours.

    vcctl-py card n0

    vcctl-py card n0 --by queue

    vcctl-py card n0 -o json
    """

    async def work(cluster: Cluster) -> None:
        await cluster.get("Node", node)  # says which there are, if this one isn't
        state = (await snapshot(cluster, scheduler_conf)).engine.state
        figures = await measured(prometheus)
        cards = with_figures(node_cards(state, node) if node in state.nodes.index else [], figures)
        if print_data(flags, {"node": node, "cards": cards}):
            return
        if not cards:
            say(f"{node} reports no cards.")
            return
        console = out()
        coloured = console.color_system is not None and not console.no_color
        for line in picture(cards, Look(coloured, console.options.ascii_only, by.value)):
            console.print(line)

    run(flags, work)


app = typer.Typer(cls=NearMissGroup)
app.command("card")(with_flags(card, (*ONE, *CONNECTION)))
