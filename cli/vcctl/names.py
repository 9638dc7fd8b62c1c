"""Names of objects for the shell to complete: what the server has, where it answers at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import typer

from volcano_py.cli.vcctl.cluster import AGENT, Cluster, CommandError
from volcano_py.cli.vcctl.flags import Flags
from volcano_py.client.access import AccessError
from volcano_py.client.api import Api, ApiError, Unreachable
from volcano_py.client.resources import RESOURCES

PATIENCE_S: Final = 3.0
"""Whoever has pressed a key waits no longer than this."""
NOUNS: Final = {
    "pod": "Pod", "podgroup": "PodGroup", "queue": "Queue", "job": "Job", "jobflow": "JobFlow",
    "jobtemplate": "JobTemplate",
}  # fmt: skip


def object_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the kind that the command is about."""
    kinds = (NOUNS.get(str(each.info_name)) for each in _commands(ctx))
    kind = next((found for found in kinds if found), None)
    return [] if kind is None else _names(ctx, kind, incomplete)


def queue_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of queues, for options of commands about something else."""
    return _names(ctx, "Queue", incomplete)


def _names(ctx: typer.Context, kind: str, incomplete: str) -> list[str]:
    try:
        found = asyncio.run(_listed(_flags(ctx), kind))
    except (AccessError, ApiError, CommandError, TimeoutError, Unreachable):
        return []  # nothing is offered; the command itself will say what is wrong
    return sorted(name for name in found if name.startswith(incomplete))


async def _listed(flags: Flags, kind: str) -> list[str]:
    async with (
        asyncio.timeout(PATIENCE_S),
        await Api.connect(flags.kubeconfig, flags.context, server=flags.master, agent=AGENT) as api,
    ):
        cluster = Cluster(api, flags)
        space = cluster.namespace if RESOURCES[kind].namespaced else None
        return [item["metadata"]["name"] for item in await cluster.every(kind, space)]


def _flags(ctx: typer.Context) -> Flags:
    """What has been said so far; behind the verb counts more than before the noun."""
    said: dict[str, Any] = {}
    for each in _commands(ctx):
        for key in ("kubeconfig", "context", "master", "namespace"):
            said[key] = said.get(key) or each.params.get(key)
    return Flags(**said)


def _commands(ctx: typer.Context) -> Iterator[Any]:
    """The command and those above it."""
    here: Any = ctx
    while here is not None:
        yield here
        here = here.parent
