"""``vcctl-py queue``: make, look at, open, close and delete queues, and stop or resume their lending."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import typer

from volcano_py.cli.lazy import NearMissGroup
from volcano_py.cli.vcctl import queue_orders as orders
from volcano_py.cli.vcctl.cluster import Cluster, Document, run
from volcano_py.cli.vcctl.commands import one_name
from volcano_py.cli.vcctl.describe import describe
from volcano_py.cli.vcctl.flags import LIST, ONE, Flags, verb
from volcano_py.cli.vcctl.names import queue_names
from volcano_py.cli.vcctl.tables import Column, age, print_objects, say, show

app = typer.Typer(cls=NearMissGroup, no_args_is_help=True, help="Queues: who is owed what.")
lend = typer.Typer(
    cls=NearMissGroup, no_args_is_help=True, help="Whether others may use what a queue is owed."
)
app.add_typer(lend, name="lend")

PHASES: Final = ("Inqueue", "Pending", "Running", "Unknown", "Completed")
Name = Annotated[str | None, typer.Argument(metavar="NAME", help="The queue.", autocompletion=queue_names)]
NameOption = Annotated[
    str | None,
    typer.Option(
        "-n", "--name", metavar="NAME", help="The same, as vcctl has it.", autocompletion=queue_names
    ),
]


@dataclass(frozen=True, slots=True)
class Counted:
    """A queue and the PodGroups that name it, by phase."""

    document: Document
    phases: Counter[str]


def _count(phase: str) -> Column:
    return Column(phase, lambda counted: counted.phases[phase])


def _spec(key: str, otherwise: Any = "") -> Any:
    return lambda counted: (counted.document.get("spec") or {}).get(key, otherwise)


COLUMNS: Final = (
    Column("Name", lambda counted: counted.document["metadata"]["name"]),
    Column("Weight", _spec("weight", 1)),
    Column("State", lambda counted: orders.state_of(counted.document)),
    Column("Parent", lambda counted: orders.parent_of(counted.document) or "-"),
    *(_count(phase) for phase in PHASES),
    Column("Priority", _spec("priority", 0), wide=True),
    Column("Lends", lambda counted: _lends(counted.document), wide=True),
    Column("Age", lambda counted: age(counted.document), wide=True),
)


def _lends(queue: Document) -> str:
    spec = queue.get("spec") or {}
    if spec.get("lendingPaused"):
        return "paused"
    return "all" if spec.get("lendMin") else "above min"


async def _counted(cluster: Cluster, queues: list[Document]) -> list[Counted]:
    """*queues*, each with its PodGroups counted now: what a status says may be old."""
    phases: dict[str, Counter[str]] = {}
    for group in await cluster.every("PodGroup"):
        phase = (group.get("status") or {}).get("phase") or "Pending"
        phases.setdefault(orders.queue_of(group), Counter())[phase] += 1
    return [Counted(queue, phases.get(queue["metadata"]["name"], Counter())) for queue in queues]


def _with_counts(counted: Counted) -> Document:
    status = {**(counted.document.get("status") or {})}
    status.update({phase.lower(): counted.phases[phase] for phase in PHASES})
    return {**counted.document, "status": status}


# -- looking ------------------------------------------------------------------------------------


@verb(app, "list", *LIST, also=("ls",))
def list_queues(flags: Flags) -> None:
    """List queues with their PodGroups by phase, counted now.

    vcctl-py queue list

    vcctl-py queue list -o wide --watch
    """

    async def work(cluster: Cluster) -> None:
        async def rows() -> list[Any]:
            queues = await cluster.every("Queue", labelSelector=flags.selector)
            counted = await _counted(
                cluster, sorted(queues, key=lambda queue: str(queue["metadata"]["name"]))
            )
            return [_with_counts(one) for one in counted] if flags.for_programs else counted

        await show(cluster, COLUMNS, rows, ("Queue", "PodGroup"))

    run(flags, work)


@verb(app, "get", *ONE)
def get_queue(flags: Flags, name: Name = None, named: NameOption = None) -> None:
    """Show one queue.

    vcctl-py queue get ml

    vcctl-py queue get -n ml -o yaml
    """

    async def work(cluster: Cluster) -> None:
        queue = await cluster.get("Queue", one_name(name, named, "queue"))
        counted = await _counted(cluster, [queue])
        if flags.for_programs:
            print_objects(flags, COLUMNS, [_with_counts(counted[0])], one=True)
        else:
            print_objects(flags, COLUMNS, counted, one=True)  # type: ignore[arg-type] # rows of the table

    run(flags, work)


@verb(app, "describe")
def describe_queue(flags: Flags, name: Name = None, named: NameOption = None) -> None:
    """Show all there is about one queue: limits, state, what waits in it, events.

    vcctl-py queue describe ml
    """

    async def work(cluster: Cluster) -> None:
        queue = await cluster.get("Queue", one_name(name, named, "queue"))
        counted = (await _counted(cluster, [queue]))[0]
        groups = {phase: counted.phases[phase] for phase in PHASES if counted.phases[phase]}
        await describe(cluster, queue, {"PodGroups": groups or "none", "Lends": _lends(queue)})

    run(flags, work)


# -- changing -----------------------------------------------------------------------------------


@verb(app, "create")
def create_queue(
    flags: Flags,
    name: Name = None,
    named: NameOption = None,
    weight: Annotated[int, typer.Option("-w", "--weight", min=1, max=65535, help="Share of the rest.")] = 1,
    state: Annotated[
        Literal["Open", "Closed"], typer.Option("-S", "--state", help="Whether it takes jobs.")
    ] = "Open",
    parent: Annotated[
        str | None, typer.Option("--parent", help="Queue above it.", autocompletion=queue_names)
    ] = None,
    least: Annotated[
        list[str] | None, typer.Option("--min", metavar="RESOURCE=AMOUNT", help="Held for it; repeatable.")
    ] = None,
    deserved: Annotated[
        list[str] | None,
        typer.Option("--deserved", metavar="RESOURCE=AMOUNT", help="Its entitlement; repeatable."),
    ] = None,
    most: Annotated[
        list[str] | None, typer.Option("--max", metavar="RESOURCE=AMOUNT", help="Hard cap; repeatable.")
    ] = None,
    capability: Annotated[
        list[str] | None, typer.Option("--capability", metavar="RESOURCE=AMOUNT", help="Other name of --max.")
    ] = None,
) -> None:
    """Make a queue.

    vcctl-py queue create ml --weight 4

    vcctl-py queue create ml --min nvidia.com/gpu=8 --max nvidia.com/gpu=16 --parent research
    """

    async def work(cluster: Cluster) -> None:
        limits = {"min": least, "deserved": deserved, "max": most, "capability": capability}
        await orders.create(cluster, one_name(name, named, "queue"), weight, state, parent, limits)

    run(flags, work)


@verb(app, "operate")
def operate_queue(
    flags: Flags,
    name: Name = None,
    named: NameOption = None,
    action: Annotated[
        Literal["open", "close", "update"] | None, typer.Option("-a", "--action", help="What to do.")
    ] = None,
    weight: Annotated[
        int | None, typer.Option("-w", "--weight", min=1, max=65535, help="New weight, for update.")
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long to wait for the controller.")
    ] = 0,
) -> None:
    """Open or close a queue, or change its weight.

    A closed queue takes no new jobs; those that run go on. The queue controller carries it out.

    vcctl-py queue operate ml -a close --wait 30

    vcctl-py queue operate ml -a update -w 8
    """

    async def work(cluster: Cluster) -> None:
        await orders.operate(cluster, one_name(name, named, "queue"), action, weight, wait)

    run(flags, work)


@verb(app, "delete")
def delete_queue(flags: Flags, name: Name = None, named: NameOption = None) -> None:
    """Delete an empty queue; default and root stay.

    vcctl-py queue delete ml
    """

    async def work(cluster: Cluster) -> None:
        wanted = one_name(name, named, "queue")
        await orders.delete(cluster, wanted)
        say(f"queue {wanted} deleted")

    run(flags, work)


@verb(lend, "pause")
def pause_lending(flags: Flags, name: Name = None, named: NameOption = None) -> None:
    """Hold all that a queue is entitled to (deserved, at least min) for it, also while it is idle.

    What others have borrowed already stays with them until the queue asks for it.

    vcctl-py queue lend pause ml
    """

    async def work(cluster: Cluster) -> None:
        await orders.pause_lending(cluster, one_name(name, named, "queue"))

    run(flags, work)


@verb(lend, "resume")
def resume_lending(flags: Flags, name: Name = None, named: NameOption = None) -> None:
    """Let others borrow again what a queue does not use.

    vcctl-py queue lend resume ml
    """

    async def work(cluster: Cluster) -> None:
        await orders.resume_lending(cluster, one_name(name, named, "queue"))

    run(flags, work)
