"""``vcctl-py version``: of this program and, where one answers, of the server."""

from __future__ import annotations

from importlib.metadata import version as installed
from typing import Any

import typer

from volcano_py.cli.lazy import NearMissGroup
from volcano_py.cli.vcctl.cluster import Cluster, CommandError, fail, run
from volcano_py.cli.vcctl.flags import CONNECTION, ONE, Flags, with_flags
from volcano_py.cli.vcctl.tables import print_data, say


def version(flags: Flags, client: bool = typer.Option(False, "--client", help="This program only.")) -> None:
    """Print the versions of this program and of the API server.

    vcctl-py version --client
    """
    ours = {"clientVersion": {"gitVersion": installed("volcano-py")}}
    if client:
        try:
            _tell(flags, ours)
        except CommandError as refused:
            fail(str(refused), refused.hint, refused.code)
        return

    async def work(cluster: Cluster) -> None:
        _tell(flags, {**ours, "serverVersion": await cluster.read("/version")}, cluster.api.server)

    run(flags, work)


def _tell(flags: Flags, versions: dict[str, Any], server: str = "") -> None:
    """Print *versions*, under the keys that kubectl has for them."""
    if print_data(flags, versions):
        return
    say(f"vcctl-py {versions['clientVersion']['gitVersion']}")
    if server:
        say(f"server   {versions['serverVersion'].get('gitVersion', 'unknown')} at {server}")


app = typer.Typer(cls=NearMissGroup)
app.command("version")(with_flags(version, (*ONE, *CONNECTION)))
