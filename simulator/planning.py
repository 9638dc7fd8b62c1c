"""A plan: manifests into an engine, some cycles, and what came out as data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from volcano_py.crds.annotations import GROUP
from volcano_py.crds.base import unknown_fields
from volcano_py.crds.messages import did_you_mean
from volcano_py.crds.objects import KINDS, parse_object
from volcano_py.crds.schedulerconfig import SchedulerConfig
from volcano_py.scheduler.engine import SCHEDULER_NAMES
from volcano_py.scheduler.framework.registry import naming_the_author
from volcano_py.scheduler.model.kube.errors import Problem
from volcano_py.scheduler.model.kube.times import format_time
from volcano_py.simulator.faults import Fault, Origins, fault_of, unreadable
from volcano_py.simulator.inspection import Finding, broken_links, doubts
from volcano_py.simulator.job_objects import MOST_PODS
from volcano_py.simulator.manifests import Document, Manifest, Read, Text, read_text
from volcano_py.simulator.present import identity, part
from volcano_py.simulator.report import plan_report
from volcano_py.simulator.workload_objects import WORKLOADS, is_workload, why_left_out
from volcano_py.simulator.world import Applied, World

Report = dict[str, Any]

LONGEST_NAME: Final = 253
"""Characters that Kubernetes allows in the name of an object."""
_CORE: Final = {
    "Namespace": "v1", "Node": "v1", "Pod": "v1", "PersistentVolume": "v1", "PersistentVolumeClaim": "v1",
    "ResourceQuota": "v1", "PodDisruptionBudget": "policy/v1", "PriorityClass": "scheduling.k8s.io/v1",
    "CSIDriver": "storage.k8s.io/v1", "CSINode": "storage.k8s.io/v1",
    "CSIStorageCapacity": "storage.k8s.io/v1", "StorageClass": "storage.k8s.io/v1",
}  # fmt: skip
_OURS: Final = {kind.info.kind: kind.info.api_version for kind in KINDS}
_CONFIG_KEYS: Final = ("actions", "tiers", "configurations", "metrics")
_OWNER: Final = re.compile(r"(plugin|action) (\S+): (.*)", re.DOTALL)
_ARGUMENT: Final = re.compile(r"""argument ["']([^"']+)["']""")
_REFERENCES: Final = (
    ("metadata", "annotations", GROUP),
    ("spec", "queue"),
    ("spec", "parent"),
    ("spec", "nodeName"),
    ("spec", "priorityClassName"),
)
"""Fields that name another object."""
_DEFAULT_SCHEDULER: Final = "default-scheduler"
_SHARED: Final = ("Job", "CronJob")
"""Kinds of ours whose name Kubernetes uses as well."""


def plan_manifests(
    read: Read,
    config: SchedulerConfig,
    now: float,
    *,
    cycles: int = 1,
    settle: bool = False,
    around: Iterable[Document] = (),
) -> Report:
    """What the scheduler would do with the objects that were *read*, beside those that are *around* already.

    Returns:
        ``report.plan_report``'s data with ``errors`` and ``warnings``, each a list of
        {file, line, object, field, message}. Bad objects are left out; the rest is planned.

    Raises:
        ConfigError: *config* can't be carried out.
    """
    manifests, faults = read
    given = _Input(manifests)
    given.errors += [unreadable(fault) for fault in faults]
    with naming_the_author():
        world = World(config, now)
        world.apply(around)
        given.take_in(world)
        results = []
        for number in range(cycles):
            if number and settle:
                world.settle()
            results.append(world.cycle())
        report = plan_report(world.engine, results, world.now)
    return {**report, "errors": _data(given.errors), "warnings": _data(given.warnings)}


def not_planned(read: Read, messages: Iterable[str], config: Text, now: float) -> Report:
    """The report where the configuration *config* can't be carried out: nothing but errors.

    A plan under another configuration than the one given would answer another question.
    """
    written = Manifest({}, config)
    faults = [unreadable(fault) for fault in read[1]]
    for message in messages:
        problem = _config_problem(message, config)
        faults.append(Fault(config.file, written.line_of(problem.field), "configuration", *problem))
    empty: Report = {
        "now": format_time(now),
        "cycles": 0,
        "decisions": [],
        "podGroups": [],
        "queues": [],
        "pending": {},
    }
    return {**empty, "errors": _data(faults), "warnings": []}


def _config_problem(message: str, config: Text) -> Problem:
    """*message* about *config* split into field and sentence; an argument is a field of its own."""
    owner = _OWNER.match(message)
    if owner is not None:
        what, name, rest = owner.groups()
        argument = _ARGUMENT.search(rest)
        for place, named in _plugins(config) if what == "plugin" else _actions(config):
            if named == name:
                return Problem(f"{place}.arguments[{argument[1]}]" if argument else place, rest)
    field, separator, rest = message.partition(": ")
    named = bool(separator) and field.startswith(_CONFIG_KEYS)
    return Problem(field, rest) if named else Problem("", message)


def _plugins(config: Text) -> Iterator[tuple[str, object]]:
    """Field and name of every plugin in a configuration that could be read."""
    for manifest in read_text(config.text, config.file)[0]:
        for tier, said in enumerate(manifest.document.get("tiers") or []):
            for place, plugin in enumerate(said.get("plugins") or []):
                yield f"tiers[{tier}].plugins[{place}]", plugin.get("name")


def _actions(config: Text) -> Iterator[tuple[str, object]]:
    """Field and name of every action that a configuration has arguments for; those without come last."""
    for manifest in read_text(config.text, config.file)[0]:
        for place, said in enumerate(manifest.document.get("configurations") or []):
            yield f"configurations[{place}]", said.get("name")
        for name in str(manifest.document.get("actions")).split(","):
            yield "actions", name.strip()


class _Input:
    """Manifests on their way into a world, and what is wrong with them."""

    def __init__(self, manifests: list[Manifest]) -> None:
        self.origins = Origins(manifests)
        self.errors: list[Fault] = []
        self.warnings: list[Fault] = []
        self.manifests = [manifest for manifest in manifests if self._is_an_object(manifest)]

    def take_in(self, world: World) -> None:
        """Feed the objects to *world* and look at what it makes of them."""
        self._warn_of_repeats()
        self._warn_of_unknown_fields()
        self._warn_of_others_pods()
        self._look_for_endless_jobs()
        applied = world.apply([manifest.document for manifest in self.manifests])
        self.errors += [self.origins.fault(a.document, p) for a in applied for p in a.problems]
        self._warn_of_ignored(applied)
        state = world.engine.state
        made = {_key(a.document): a.document for a in applied}
        self.errors += [self._found(finding, made) for finding in broken_links(state)]
        # A pod and the group made for it share annotations: what is doubtful in one is so in both.
        self.warnings += dict.fromkeys(self._found(finding, made) for finding in doubts(state))

    def _found(self, finding: Finding, made: dict[str, dict[str, Any]]) -> Fault:
        kind, key, problem = finding
        document = made.get(f"{kind} {key}")
        if document is None:  # named by others only
            return Fault("", 0, f"{kind} {key}", problem.field, problem.message)
        return self.origins.fault(document, problem)

    def _is_an_object(self, manifest: Manifest) -> bool:
        """Whether an API server would look at it at all; if not, that is an error."""
        problem = next(_identity_problems(manifest.document), None)
        if problem is not None:
            self.errors.append(fault_of(manifest, problem))
        return problem is None

    def _warn_of_repeats(self) -> None:
        seen: dict[tuple[str, str, str], Manifest] = {}
        for manifest in self.manifests:
            key = identity(manifest.document)
            if key in seen and key[2]:
                first = seen[key]
                again = f"is given twice; what counts is this one, not {first.file}:{first.line}"
                self.warnings.append(fault_of(manifest, Problem("", again)))
            seen[key] = manifest

    def _warn_of_unknown_fields(self) -> None:
        """Fields nobody knows, which an API server would drop."""
        for manifest in self.manifests:
            try:
                item = parse_object(manifest.document)
            except ValueError:
                continue  # told as an error when the engine sees it
            for field in unknown_fields(item) if item is not None else ():
                problem = Problem(field, "is no field of this kind; an API server would drop it")
                self.warnings.append(fault_of(manifest, problem))

    def _warn_of_others_pods(self) -> None:
        """Waiting pods that another scheduler serves: one warning for each scheduler."""
        waiting: dict[str, list[Manifest]] = {}
        for manifest in self.manifests:
            name = _awaited(manifest.document)
            if name and name not in SCHEDULER_NAMES:
                waiting.setdefault(name, []).append(manifest)
        for name, found in waiting.items():
            more = f" ({len(found)} such objects)" if len(found) > 1 else ""
            ours = " or ".join(SCHEDULER_NAMES)
            message = f"waits for scheduler {name}, not for us ({ours}), and is not planned{more}"
            field = "spec.template.spec" if is_workload(found[0].document) else "spec"
            self.warnings.append(fault_of(found[0], Problem(f"{field}.schedulerName", message)))

    def _look_for_endless_jobs(self) -> None:
        """Jobs that make more pods than are made here: what is planned is not all of them."""
        for manifest in self.manifests:
            for field, replicas in _asked_pods(manifest.document):
                if isinstance(replicas, int) and replicas > MOST_PODS:
                    message = (
                        f"{replicas} pods are more than a cluster holds; {MOST_PODS} of them are planned"
                    )
                    self.errors.append(fault_of(manifest, Problem(field, message)))

    def _warn_of_ignored(self, applied: list[Applied]) -> None:
        """One warning for each kind that nobody here reads."""
        ignored: dict[str, list[Applied]] = {}
        for item in applied:
            if not item.known:
                ignored.setdefault(str(item.document.get("kind")), []).append(item)
        for kind, items in ignored.items():
            others = f"; so are {len(items) - 1} others of the kind" if len(items) > 1 else ""
            told = f"plans don't read kind {kind}: it is ignored{others}"
            if is_workload(items[0].document):
                told = f"no pods are planned for this {kind}: {why_left_out(items[0].document)}{others}"
            problem = Problem("kind", told)
            self.warnings.append(self.origins.fault(items[0].document, problem))


def _awaited(document: Document) -> str:
    """The scheduler that pods of *document* wait for, "" where none waits."""
    here = part(document, "spec", "template") if is_workload(document) else document
    spec = part(here, "spec")
    if not spec or not (is_workload(document) or document.get("kind") == "Pod"):
        return ""
    if spec.get("nodeName") or part(document, "status").get("phase", "Pending") != "Pending":
        return ""
    named = part(here, "metadata", "annotations").get(GROUP)
    name = spec.get("schedulerName") or ("" if named else _DEFAULT_SCHEDULER)
    return name if isinstance(name, str) else ""


def _asked_pods(document: Document) -> Iterator[tuple[str, object]]:
    """Fields that say how many pods *document* wants, and what they say."""
    spec = part(document, "spec")
    if is_workload(document):
        field = WORKLOADS[str(document["kind"])][1]
        yield f"spec.{field}", spec.get(field)
    tasks = spec.get("tasks")
    if document.get("kind") == "Job" and isinstance(tasks, list):
        for at, task in enumerate(tasks):
            yield f"spec.tasks[{at}].replicas", task.get("replicas") if isinstance(task, dict) else None


def _identity_problems(document: dict[str, Any]) -> Iterator[Problem]:
    """What an object must say before anything else about it can be judged."""
    for field in ("apiVersion", "kind"):
        value = document.get(field)
        if not isinstance(value, str) or not value:
            yield Problem(field, f"an object needs its {field} as text")
    version, kind, meta = document.get("apiVersion"), document.get("kind"), document.get("metadata")
    known = {**_CORE, **_OURS}.get(str(kind))
    if known is not None and _group(str(version)) != _group(known) and kind not in _SHARED:
        yield Problem("apiVersion", f'a {kind} has apiVersion {known}, not "{version}"')
    if kind in _OURS and str(version) != known and _group(str(version)) == _group(str(known)):
        hint = did_you_mean(str(version), [str(known)])
        yield Problem("apiVersion", f'{kind} is read as {known}, not as "{version}"{hint}')
    if not isinstance(meta, dict):
        yield Problem("metadata", "an object needs metadata with a name")
        return
    for field in ("name", "namespace"):
        value = meta.get(field)
        if value is not None and not isinstance(value, str):
            yield Problem(f"metadata.{field}", "must be a text (put it in quotes)")
        elif value is not None and len(value) > LONGEST_NAME:
            yield Problem(f"metadata.{field}", _too_long(value))
    for *above, last in _REFERENCES:
        value = part(document, *above).get(last)
        if isinstance(value, str) and len(value) > LONGEST_NAME:
            path = ".".join(above)
            yield Problem(f"{path}[{last}]" if "/" in last else f"{path}.{last}", _too_long(value))


def _too_long(name: str) -> str:
    return f"may have at most {LONGEST_NAME} characters, not {len(name)}"


def _group(version: str) -> str:
    return version.rpartition("/")[0]


def _key(document: dict[str, Any]) -> str:
    """``Kind namespace/name`` as the engine's state names it."""
    kind, namespace, name = identity(document)
    return f"{kind} {name}" if kind in ("Queue", "Node") else f"{kind} {namespace}/{name}"


def _data(faults: list[Fault]) -> list[dict[str, Any]]:
    """File by file and from top to bottom, each once: a template's fault stands in all its pods."""
    files = list(dict.fromkeys(fault.file for fault in faults))
    ordered = sorted(dict.fromkeys(faults), key=lambda fault: (files.index(fault.file), fault.line))
    return [fault.data() for fault in ordered]
