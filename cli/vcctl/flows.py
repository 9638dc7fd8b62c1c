"""``vcctl-py jobflow`` and ``jobtemplate``: as far as their objects go."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from volcano_py.cli.lazy import NearMissGroup
from volcano_py.cli.vcctl.basic import Noun, delete_verb, describe_verb, get_verb, list_verb
from volcano_py.cli.vcctl.cluster import Cluster, run
from volcano_py.cli.vcctl.flags import Flags, verb
from volcano_py.cli.vcctl.submitting import submit
from volcano_py.cli.vcctl.tables import Column, age

FLOW: Final = Noun(
    "jobflow",
    "JobFlow",
    (
        Column("Name", lambda flow: flow["metadata"]["name"]),
        Column("Namespace", lambda flow: flow["metadata"]["namespace"]),
        Column("Phase", lambda flow: ((flow.get("status") or {}).get("state") or {}).get("phase", "")),
        Column("Age", age),
    ),
)
TEMPLATE: Final = Noun(
    "jobtemplate",
    "JobTemplate",
    (
        Column("Name", lambda template: template["metadata"]["name"]),
        Column("Namespace", lambda template: template["metadata"]["namespace"]),
    ),
)
File = Annotated[
    list[str], typer.Option("-f", "--filename", metavar="FILE", help="Manifest, or - for standard input.")
]


def _app(noun: Noun, help_line: str) -> typer.Typer:
    app = typer.Typer(cls=NearMissGroup, no_args_is_help=True, help=help_line)

    def create(flags: Flags, filename: File) -> None:
        async def work(cluster: Cluster) -> None:
            await submit(cluster, filename, (noun.kind,))

        run(flags, work)

    create.__doc__ = f"""Make the {noun.kind}s of a manifest.

    vcctl-py {noun.name} create -f {noun.name}.yaml
    """
    verb(app, "create", "namespace")(create)
    list_verb(app, noun)
    get_verb(app, noun)
    describe_verb(app, noun)
    delete_verb(app, noun)
    return app


jobflow = _app(FLOW, "Jobs that wait for each other.")
jobtemplate = _app(TEMPLATE, "Jobs that flows are made of.")
