"""``vcctl-py plan``: what would become of a manifest if it were submitted to the cluster now. Read-only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.console import Console

from volcano_py.cli.lazy import NearMissGroup
from volcano_py.cli.output import print_plan
from volcano_py.cli.plan import BAD_INPUT, WIDTH
from volcano_py.cli.vcctl.cluster import USAGE, Cluster, CommandError, Document, run
from volcano_py.cli.vcctl.flags import CONNECTION, Flags, Form, with_flags
from volcano_py.cli.vcctl.live_config import SchedulerConf, scheduler_config
from volcano_py.cli.vcctl.snapshot import NEEDED
from volcano_py.cli.vcctl.tables import counted, print_data
from volcano_py.client.api import ApiError
from volcano_py.scheduler.cluster.feed import ENGINE_KINDS
from volcano_py.scheduler.model.kube.errors import Problem
from volcano_py.simulator.faults import fault_of
from volcano_py.simulator.manifests import Manifest, Read, read_paths
from volcano_py.simulator.planning import Report, plan_manifests
from volcano_py.simulator.present import identity
from volcano_py.simulator.workload_objects import WORKLOADS, pods_there
from volcano_py.simulator.world import CLUSTER_SCOPED

Files = Annotated[
    list[str],
    typer.Option("-f", "--filename", metavar="FILE", help="Manifest, folder, or - for standard input."),
]


def plan(
    flags: Flags,
    filename: Files,
    scheduler_conf: SchedulerConf = None,
    cycles: Annotated[int, typer.Option("--cycles", min=1, help="Cycles to run.")] = 1,
    settle: Annotated[
        bool, typer.Option("--settle", help="Between cycles bound pods run and evicted ones go.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--everything", help="Also what those cycles decide about other work.")
    ] = False,
) -> None:
    """Say what would become of a manifest in this cluster, by the scheduler's own rules.

    Nothing is created or changed. Exit status is 2 if the manifest has errors.

    vcctl-py plan -f train.yaml -n ml

    vcctl-py plan -f train.yaml --cycles 3 --settle -o json
    """

    async def work(cluster: Cluster) -> None:
        source = await scheduler_config(cluster, scheduler_conf)
        read = _placed(read_paths(list(filename)), cluster.namespace)
        if not read[0] and not read[1]:
            raise CommandError("there is nothing to plan in it", code=USAGE)
        given = {identity(manifest.document) for manifest in read[0]}
        live = [*([] if source.cards is None else [source.cards]), *await _around(cluster)]
        around = [document for document in live if identity(document) not in given]
        report = plan_manifests(read, source.config, time.time(), cycles=cycles, settle=settle, around=around)
        replaced = sorted(map(_name, given & set(map(identity, live))))
        report = _told(report, around, everything=everything)
        report["warnings"] = [
            *map(_exists, replaced),
            *_at_work(read[0], around),
            *report["warnings"],
        ]
        report["configuration"] = source.where
        if not print_data(flags, report):
            console = Console(highlight=False)
            console.width = console.width if console.is_terminal else max(console.width, WIDTH)
            print_plan(report, console, wide=flags.output is Form.wide)
        if report["errors"]:
            raise typer.Exit(BAD_INPUT)

    run(flags, work)


def _placed(read: Read, namespace: str) -> Read:
    """*read* with objects that name no namespace in *namespace*, as the server would put them."""
    return [_in_namespace(manifest, namespace) for manifest in read[0]], read[1]


def _in_namespace(manifest: Manifest, namespace: str) -> Manifest:
    document = manifest.document
    meta = document.get("metadata")
    if document.get("kind") in CLUSTER_SCOPED or not isinstance(meta, dict) or meta.get("namespace"):
        return manifest
    return replace(manifest, document={**document, "metadata": {**meta, "namespace": namespace}})


async def _around(cluster: Cluster) -> list[Document]:
    """Everything in the cluster that a plan has to reckon with."""
    kinds = await asyncio.gather(*(_every(cluster, kind) for kind in ENGINE_KINDS))
    return [document for documents in kinds for document in documents]


async def _every(cluster: Cluster, kind: str) -> list[Document]:
    try:
        return await cluster.every(kind)
    except (ApiError, CommandError) as error:
        if kind in NEEDED or (isinstance(error, ApiError) and error.status not in (403, 404)):
            raise
        return []


def _told(report: Report, around: Iterable[Document], *, everything: bool) -> Report:
    """*report* of the manifest's own objects; of the others only how many are decided about too."""
    found = {identity(document) for document in around}
    pods = {f"{space}/{name}" for kind, space, name in found if kind == "Pod"}
    groups = {f"{space}/{name}" for kind, space, name in found if kind == "PodGroup"}
    # Faults of live objects are not those of the manifest: `vcctl-py doctor` tells them.
    own: dict[str, Any] = {
        key: [fault for fault in report[key] if fault["file"]] for key in ("errors", "warnings")
    }
    if everything:
        return {**report, **own}
    decisions = [
        d
        for d in report["decisions"]
        if (d["forWhom"] not in groups if d["forWhom"] else d["pod"] not in pods)
    ]
    mine = [group for group in report["podGroups"] if group["name"] not in groups]
    names = {group["queue"] for group in mine}
    own["decisions"], own["podGroups"] = decisions, mine
    own["pending"] = {pod: why for pod, why in report["pending"].items() if pod not in pods}
    own["queues"] = [queue for queue in report["queues"] if queue["name"] in _with_parents(names, report)]
    own["others"] = len(report["decisions"]) - len(decisions)
    return {**report, **own}


def _with_parents(names: set[str], report: Report) -> set[str]:
    parents = {queue["name"]: queue["parent"] for queue in report["queues"]}
    found = set(names)
    for name in names:
        above = parents.get(name, "")
        while above and above not in found:
            found.add(above)
            above = parents.get(above, "")
    return found


def _at_work(manifests: Iterable[Manifest], around: list[Document]) -> Iterator[dict[str, Any]]:
    """Jobs and their like of which pods are there: what is planned is what they lack, perhaps nothing."""
    for manifest in manifests:
        document = manifest.document
        there = pods_there(document, around) if document.get("kind") in WORKLOADS else 0
        if there:
            told = f"has {counted(there, 'pod')} in the cluster already; what is planned are those it lacks"
            yield fault_of(manifest, Problem("", told)).data()


def _name(found: tuple[str, str, str]) -> str:
    kind, namespace, name = found
    return f"{kind} {name}" if kind in CLUSTER_SCOPED else f"{kind} {namespace}/{name}"


def _exists(name: str) -> dict[str, Any]:
    message = "is in the cluster already; it is planned as the manifest has it"
    return {"file": "", "line": 0, "object": name, "field": "", "message": message}


app = typer.Typer(cls=NearMissGroup)
app.command("plan")(with_flags(plan, ("output", "namespace", *CONNECTION)))
