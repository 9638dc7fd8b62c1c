"""``vcctl-py podgroup``: look at gangs, and change their place in the line."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from volcano_py.cli.lazy import NearMissGroup
from volcano_py.cli.vcctl import group_orders as orders
from volcano_py.cli.vcctl.basic import (
    Name,
    NameOption,
    Noun,
    columns_of,
    delete_verb,
    describe_verb,
    get_verb,
    in_order,
)
from volcano_py.cli.vcctl.cluster import Cluster, Document, run
from volcano_py.cli.vcctl.commands import one_name
from volcano_py.cli.vcctl.flags import LIST, NAMESPACED, Flags, verb
from volcano_py.cli.vcctl.names import queue_names
from volcano_py.cli.vcctl.pod import status
from volcano_py.cli.vcctl.queue_orders import queue_of
from volcano_py.cli.vcctl.tables import Column, age, show

app = typer.Typer(cls=NearMissGroup, no_args_is_help=True, help="Gangs, and their place in the line.")


def _reason(group: Document) -> str:
    """What its last condition says, if it waits."""
    conditions = (group.get("status") or {}).get("conditions") or []
    waits = [c for c in conditions if c.get("type") == "Unschedulable" and c.get("status") == "True"]
    return str(waits[-1].get("message") or waits[-1].get("reason") or "") if waits else ""


def _state(group: Document) -> str:
    held = orders.is_held(group) and orders.phase(group) in orders.WAITING
    return "Held" if held else orders.phase(group)


def _made_for(group: Document) -> str:
    owners = group["metadata"].get("ownerReferences") or []
    return next((f"{one['kind']}/{one['name']}" for one in owners if one.get("controller")), "-")


async def _members(cluster: Cluster, group: Document) -> dict[str, Any]:
    pods = await orders.members(cluster, group)
    return {"Pods": {pod["metadata"]["name"]: status(pod) for pod in in_order(pods)} or "none"}


GROUP: Final = Noun(
    "podgroup",
    "PodGroup",
    (
        Column("Name", lambda group: group["metadata"]["name"]),
        Column("Status", _state),
        Column("MinMember", lambda group: (group.get("spec") or {}).get("minMember", 0)),
        Column("Running", lambda group: (group.get("status") or {}).get("running", 0)),
        Column("Queue", queue_of),
        Column("Age", age),
        Column("Boost", lambda group: orders.boost_of(group) or "-", wide=True),
        Column("Made for", _made_for, wide=True),
        Column("Reason", _reason, wide=True),
    ),
    _members,
)
get_verb(app, GROUP)
describe_verb(app, GROUP)
delete_verb(app, GROUP)


@verb(app, "list", *LIST, *NAMESPACED, also=("ls",))
def list_groups(
    flags: Flags,
    queue: Annotated[
        str | None,
        typer.Option("-q", "--queue", help="Only those of this queue.", autocompletion=queue_names),
    ] = None,
) -> None:
    """List PodGroups.

    vcctl-py podgroup list -A -q ml

    vcctl-py podgroup list -o wide --watch
    """

    async def work(cluster: Cluster) -> None:
        async def rows() -> list[Document]:
            groups = await cluster.every("PodGroup", cluster.listed, labelSelector=flags.selector)
            return [group for group in in_order(groups) if queue in (None, queue_of(group))]

        await show(cluster, columns_of(GROUP, flags), rows, ("PodGroup",))

    run(flags, work)


@verb(app, "move", "namespace")
def move_group(
    flags: Flags,
    queue: Annotated[
        str,
        typer.Option(
            "-q", "--queue", "--to", metavar="QUEUE", help="Where it shall wait.", autocompletion=queue_names
        ),
    ],
    name: Name = None,
    named: NameOption = None,
) -> None:
    """Move a group of which nothing runs yet to another queue; its gate decides anew.

    vcctl-py podgroup move train --to research
    """

    async def work(cluster: Cluster) -> None:
        await orders.move(cluster, one_name(name, named, "podgroup"), queue)

    run(flags, work)


@verb(app, "hold", "namespace")
def hold_group(flags: Flags, name: Name = None, named: NameOption = None) -> None:
    """Let nothing more of a group start until it is released; what runs goes on.

    vcctl-py podgroup hold train
    """

    async def work(cluster: Cluster) -> None:
        await orders.hold(cluster, one_name(name, named, "podgroup"))

    run(flags, work)


@verb(app, "release", "namespace")
def release_group(flags: Flags, name: Name = None, named: NameOption = None) -> None:
    """Let a held group start again.

    vcctl-py podgroup release train
    """

    async def work(cluster: Cluster) -> None:
        await orders.release(cluster, one_name(name, named, "podgroup"))

    run(flags, work)


@verb(app, "boost", "namespace")
def boost_group(
    flags: Flags,
    name: Name = None,
    named: NameOption = None,
    by: Annotated[
        int,
        typer.Option("--by", min=-(2**31) + 1, max=2**31 - 1, help="More goes first; 0 ends it."),
    ] = 1,
) -> None:
    """Let a group go before the others of its queue, whatever their priority; it evicts nobody.

    vcctl-py podgroup boost train

    vcctl-py podgroup boost train --by 0
    """

    async def work(cluster: Cluster) -> None:
        await orders.boost(cluster, one_name(name, named, "podgroup"), by)

    run(flags, work)
