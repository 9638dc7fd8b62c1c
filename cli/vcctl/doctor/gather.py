"""Everything the checks look at, read once. Nothing is written; reviews of rights only ask."""

from __future__ import annotations

import asyncio
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final

from volcano_py.cli.vcctl.cluster import Cluster, CommandError
from volcano_py.cli.vcctl.doctor.finding import Document, Evidence
from volcano_py.cli.vcctl.doctor.rights import denied_rights
from volcano_py.cli.vcctl.live_config import scheduler_config
from volcano_py.cli.vcctl.snapshot import as_listed, fed
from volcano_py.client.api import ApiError
from volcano_py.scheduler.cluster.feed import ENGINE_KINDS

MORE_KINDS: Final = ("CustomResourceDefinition", "Lease", "DaemonSet")
EVENTS: Final = ("Scheduled", "FailedScheduling")
"""Events that only a living scheduler writes."""


async def gather(cluster: Cluster, conf: Path | None) -> Evidence:
    """The evidence. Raises ``CommandError`` where the configuration can't be carried out."""
    source = await scheduler_config(cluster, conf)
    objects: dict[str, list[Document]] = {}
    unread: dict[str, str] = {}
    kinds = (*ENGINE_KINDS, *MORE_KINDS)
    for kind, found in zip(
        kinds, await asyncio.gather(*(_every(cluster, kind) for kind in kinds)), strict=True
    ):
        if isinstance(found, str):
            unread[kind] = found
        else:
            objects[kind] = found
    server_now = server_clock(cluster.api.server_date)
    now = our_clock(server_now, *cluster.api.dated_between)
    objects["Event"] = await _events(cluster)
    rights, why = await denied_rights(cluster)
    if why:
        unread["rights"] = why
    engine = fed(source, (as_listed(each) for kind in ENGINE_KINDS for each in objects.get(kind, ())))
    result = engine.cycle(now)
    return Evidence(objects, engine, result, now, server_now, rights, unread)


def our_clock(server_now: float | None, asked: float, heard: float) -> float:
    """Our clock when the server said *server_now*: of the time that we waited the moment next to it.

    Whoever is slow, here or on the way, is not taken for a clock that is off.
    """
    return heard if server_now is None else min(max(server_now, asked), heard)


def server_clock(date: str) -> float | None:
    """The clock in a ``Date`` header, epoch seconds; None where there is none."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None


async def _every(cluster: Cluster, kind: str) -> list[Document] | str:
    """All objects of *kind*, or why they can't be read."""
    try:
        return await cluster.every(kind)
    except CommandError as error:
        return str(error)
    except ApiError as error:
        if error.status != 403:
            raise
        return error.message


async def _events(cluster: Cluster) -> list[Document]:
    """Some recent events of schedulers: which of them are alive, not what they say."""
    found: list[Document] = []
    for reason in EVENTS:
        try:
            answer = await cluster.read("/api/v1/events", fieldSelector=f"reason={reason}", limit="500")
        except ApiError as error:
            if error.status != 403:
                raise
            continue
        found += answer.get("items") or []
    return found
