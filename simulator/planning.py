"""A plan: manifests into an engine, some cycles, and what came out as data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.crds.base import unknown_fields
from volcano_py.crds.objects import parse_object
from volcano_py.crds.schedulerconfig import SchedulerConfig
from volcano_py.scheduler.engine import SCHEDULER_NAMES, Engine
from volcano_py.scheduler.model.kube.errors import Problem
from volcano_py.simulator.expand import expand
from volcano_py.simulator.manifests import Manifest, Unreadable, object_name, read_paths
from volcano_py.simulator.present import part
from volcano_py.simulator.report import plan_report

Report = dict[str, Any]


def plan_manifests(
    paths: Iterable[str], config: SchedulerConfig, now: float, *, cycles: int = 1, settle: bool = False
) -> Report:
    """What the scheduler would do with the manifests at *paths*.

    Returns:
        ``report.plan_report``'s data with ``errors`` and ``warnings``, each a list of
        {file, line, object, field, message}. Bad objects are left out; the rest is planned.

    Raises:
        ConfigError: *config* can't be carried out.
    """
    manifests, faults = read_paths(paths)
    engine = Engine(config)
    errors = [_fault(fault) for fault in faults]
    errors += _apply(engine, manifests)
    results = []
    for _ in range(cycles):
        results.append(engine.cycle(now))
        if settle:
            engine.settle(now)
            now += 1.0
    report = plan_report(engine, results, now)
    return {**report, "errors": errors, "warnings": _warnings(manifests)}


def _apply(engine: Engine, manifests: list[Manifest]) -> list[Report]:
    """Feed the documents, expanded; what is wrong is told by where the object was written."""
    where = {manifest.name: manifest for manifest in manifests}
    return [
        _error(object_name(document), problem, _source(document, where))
        for document in expand([manifest.document for manifest in manifests], SCHEDULER_NAMES)
        for problem in engine.apply(document)
    ]


def _source(document: dict[str, Any], where: dict[str, Manifest]) -> Manifest | None:
    """Where *document* was written, or the object that it was made of."""
    name = object_name(document)
    if name in where:
        return where[name]
    meta = part(document, "metadata")
    owners = meta.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict):
            kind, plain = owner.get("kind"), owner.get("name")
            for written in (f"{kind} {meta.get('namespace')}/{plain}", f"{kind} {plain}"):
                if written in where:
                    return where[written]
    return None


def _error(name: str, problem: Problem, manifest: Manifest | None) -> Report:
    return {
        "file": manifest.file if manifest else "",
        "line": manifest.line_of(problem.field) if manifest else 0,
        "object": name,
        "field": problem.field,
        "message": problem.message,
    }


def _fault(fault: Unreadable) -> Report:
    return {"file": fault.file, "line": fault.line, "object": "", "field": "", "message": fault.message}


def _warnings(manifests: list[Manifest]) -> list[Report]:
    """Fields nobody knows, which an API server would drop."""
    found = []
    for manifest in manifests:
        try:
            item = parse_object(manifest.document)
        except ValueError:
            continue
        for field in unknown_fields(item) if item is not None else ():
            problem = Problem(field, "unknown field, ignored")
            found.append(_error(manifest.name, problem, manifest))
    return found
