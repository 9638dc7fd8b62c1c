"""``vcctl-py version``: of this program and, where one answers, of the server."""

from __future__ import annotations

from importlib.metadata import version as installed

import typer

from volcano_py.cli.lazy import NearMissGroup
from volcano_py.cli.vcctl.cluster import Cluster, run
from volcano_py.cli.vcctl.flags import CONNECTION, Flags, with_flags
from volcano_py.cli.vcctl.tables import say


def version(flags: Flags, client: bool = typer.Option(False, "--client", help="This program only.")) -> None:
    """Print the versions of this program and of the API server.

    vcctl-py version --client
    """
    say(f"vcctl-py {installed('volcano-py')}")
    if client:
        return

    async def work(cluster: Cluster) -> None:
        told = await cluster.read("/version")
        say(f"server   {told.get('gitVersion', 'unknown')} at {cluster.api.server}")

    run(flags, work)


app = typer.Typer(cls=NearMissGroup)
app.command("version")(with_flags(version, CONNECTION))
