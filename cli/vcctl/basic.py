"""The verbs that every noun in a namespace has: list, get, describe, delete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from volcano_py.cli.vcctl.cluster import Cluster, Document, run
from volcano_py.cli.vcctl.commands import one_name
from volcano_py.cli.vcctl.describe import describe
from volcano_py.cli.vcctl.flags import LIST, NAMESPACED, ONE, Flags, verb
from volcano_py.cli.vcctl.names import object_names
from volcano_py.cli.vcctl.tables import Column, print_objects, say, show

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="The object.", autocompletion=object_names)]
NameOption = Annotated[
    str | None,
    typer.Option(
        "-N", "--name", metavar="NAME", help="The same, as vcctl has it.", autocompletion=object_names
    ),
]
NAMESPACE: Column = Column("Namespace", lambda item: item["metadata"].get("namespace", ""))


async def nothing_more(_cluster: Cluster, _document: Document) -> Mapping[str, Any]:
    """Nothing that the object's own fields don't say."""
    return {}


@dataclass(frozen=True, slots=True)
class Noun:
    """A kind and how people see it.

    Attributes:
        name: as it is typed.
        kind: as the API calls it.
        columns: of its table, the namespace aside.
        first: what ``describe`` says before the fields.
    """

    name: str
    kind: str
    columns: Sequence[Column]
    first: Callable[[Cluster, Document], Awaitable[Mapping[str, Any]]] = nothing_more


def columns_of(noun: Noun, flags: Flags) -> Sequence[Column]:
    """The table's columns; the namespace where several are listed."""
    return (NAMESPACE, *noun.columns) if flags.all_namespaces else noun.columns


def in_order(items: list[Document]) -> list[Document]:
    """By namespace, then name."""
    return sorted(items, key=lambda item: (item["metadata"].get("namespace", ""), item["metadata"]["name"]))


def list_verb(app: typer.Typer, noun: Noun) -> None:
    """Give *app* the verb ``list``."""

    def list_objects(flags: Flags) -> None:
        async def work(cluster: Cluster) -> None:
            async def rows() -> list[Document]:
                return in_order(await cluster.every(noun.kind, cluster.listed, labelSelector=flags.selector))

            await show(cluster, columns_of(noun, flags), rows, (noun.kind,))

        run(flags, work)

    list_objects.__doc__ = f"""List {noun.kind}s of a namespace, or of all with -A.

    vcctl-py {noun.name} list -A
    """
    verb(app, "list", *LIST, *NAMESPACED, also=("ls",))(list_objects)


def get_verb(app: typer.Typer, noun: Noun) -> None:
    """Give *app* the verb ``get``."""

    def get_object(flags: Flags, name: Name = None, named: NameOption = None) -> None:
        async def work(cluster: Cluster) -> None:
            found = await cluster.get(noun.kind, one_name(name, named, noun.name))
            print_objects(flags, noun.columns, [found], one=True)

        run(flags, work)

    get_object.__doc__ = f"""Show one {noun.kind}.

    vcctl-py {noun.name} get NAME -o yaml
    """
    verb(app, "get", *ONE, "namespace")(get_object)


def describe_verb(app: typer.Typer, noun: Noun, *also: str) -> None:
    """Give *app* the verb ``describe``."""

    def describe_object(flags: Flags, name: Name = None, named: NameOption = None) -> None:
        async def work(cluster: Cluster) -> None:
            found = await cluster.get(noun.kind, one_name(name, named, noun.name))
            await describe(cluster, found, await noun.first(cluster, found))

        run(flags, work)

    describe_object.__doc__ = f"""Show all there is about one {noun.kind}, events too.

    vcctl-py {noun.name} describe NAME
    """
    verb(app, "describe", "namespace", also=also)(describe_object)


def delete_verb(app: typer.Typer, noun: Noun) -> None:
    """Give *app* the verb ``delete``."""

    def delete_object(flags: Flags, name: Name = None, named: NameOption = None) -> None:
        async def work(cluster: Cluster) -> None:
            wanted = one_name(name, named, noun.name)
            found = await cluster.get(noun.kind, wanted)
            preconditions = {"uid": found["metadata"]["uid"]}
            body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
            await cluster.remove(noun.kind, wanted, {**body, "propagationPolicy": "Background"})
            say(f"{noun.name} {wanted} deleted")

        run(flags, work)

    delete_object.__doc__ = f"""Delete one {noun.kind} and what it owns.

    vcctl-py {noun.name} delete NAME
    """
    verb(app, "delete", "namespace")(delete_object)
