"""Flags that many commands share, as kubectl and vcctl spell them, and the decorator that adds them.

A command is a function whose first argument is the ``Flags`` it was called with; the others are its own
options. Which of the shared flags it takes is said where it is registered.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, Final, TypeVar

import typer

F = TypeVar("F", bound=Callable[..., None])


class Form(StrEnum):
    """How objects are printed."""

    table = "table"
    wide = "wide"
    json = "json"
    yaml = "yaml"
    name = "name"


@dataclass(frozen=True, slots=True)
class Flags:
    """What was said about the server, the namespace and the output.

    Attributes:
        kubeconfig, context, master: which server; the address in *master* wins.
        namespace: None where none was named.
        selector: label selector.
    """

    kubeconfig: str | None = None
    context: str | None = None
    master: str | None = None
    namespace: str | None = None
    all_namespaces: bool = False
    output: Form = Form.table
    selector: str = ""
    watch: bool = False

    @property
    def for_programs(self) -> bool:
        """The output is data, not a table."""
        return self.output in (Form.json, Form.yaml, Form.name)


_CLUSTER: Final = "Cluster"
Kubeconfig = Annotated[
    str | None,
    typer.Option("-k", "--kubeconfig", metavar="FILE", help="Kubeconfig file.", rich_help_panel=_CLUSTER),
]
Context = Annotated[
    str | None,
    typer.Option("--context", metavar="NAME", help="Context in it.", rich_help_panel=_CLUSTER),
]
Master = Annotated[
    str | None,
    typer.Option(
        "-s",
        "--master",
        "--server",
        metavar="URL",
        help="Address of the API server.",
        rich_help_panel=_CLUSTER,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "-n",
        "--namespace",
        metavar="NAME",
        help="Namespace; else that of the context.",
        rich_help_panel=_CLUSTER,
    ),
]
AllNamespaces = Annotated[
    bool, typer.Option("-A", "--all-namespaces", help="All namespaces.", rich_help_panel=_CLUSTER)
]
Output = Annotated[Form, typer.Option("-o", "--output", help="Form of what is printed.")]
Selector = Annotated[
    str, typer.Option("-l", "--selector", metavar="LABELS", help="Only objects with these labels.")
]
Watch = Annotated[bool, typer.Option("-w", "--watch", help="Go on and print what changes.")]

_SHARED: Final[dict[str, tuple[Any, Any]]] = {
    "kubeconfig": (Kubeconfig, None),
    "context": (Context, None),
    "master": (Master, None),
    "namespace": (Namespace, None),
    "all_namespaces": (AllNamespaces, False),
    "output": (Output, Form.table),
    "selector": (Selector, ""),
    "watch": (Watch, False),
}
CONNECTION: Final = ("kubeconfig", "context", "master")
IN_NAMESPACE: Final = ("namespace",)
NAMESPACED: Final = ("namespace", "all_namespaces")
LIST: Final = ("output", "selector", "watch")
ONE: Final = ("output",)
DRAWN: Final = ("output", "watch")


def verb(app: typer.Typer, name: str, *shared: str, also: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Register a command *name* of *app* that takes the *shared* flags, and those of the connection.

    Args:
        app: the noun it belongs to.
        name: the verb.
        shared: names of ``Flags``.
        also: other spellings of the verb, not listed in the help.
    """
    taken = (*shared, *CONNECTION)

    def register(function: F) -> F:
        command = with_flags(function, taken)
        app.command(name)(command)
        for other in also:
            app.command(other, hidden=True)(command)
        return function

    return register


def with_flags(function: Callable[..., None], taken: tuple[str, ...]) -> Callable[..., None]:
    """*function*, which takes ``Flags`` first, as a command with the options *taken* beside its own."""
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]

    def command(ctx: typer.Context, **given: Any) -> None:
        above = ctx.obj if isinstance(ctx.obj, Flags) else Flags()
        said = {key: value for key in taken if (value := given.pop(key)) != _SHARED[key][1]}
        function(replace(above, **said), **given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("ctx", keyword, annotation=typer.Context)]
    parameters += [parameter.replace(kind=keyword) for parameter in own]
    for key in taken:
        annotation, default = _SHARED[key]
        parameters.append(inspect.Parameter(key, keyword, default=default, annotation=annotation))
    command.__doc__, command.__name__ = function.__doc__, function.__name__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # typer reads it
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def top_flags(
    ctx: typer.Context,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    master: Master = None,
    namespace: Namespace = None,
) -> None:
    """Flags before the noun; those behind the verb win."""
    ctx.obj = Flags(kubeconfig, context, master, namespace)
