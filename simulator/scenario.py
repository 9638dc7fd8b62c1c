"""Scenarios: small cluster situations with a right answer, run on the very engine.

The format is that of the scenario files (one a YAML document): ``objects`` go in, ``cycles`` are run,
``expect`` is compared; or ``steps`` of the same on one engine that lives on. What an object in a
scenario has wrong is part of the case; what the scenario itself has wrong is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from volcano_py.crds.arguments import ConfigError
from volcano_py.crds.schedulerconfig import SCENARIO_CONFIG, load_scheduler_config, parse_scheduler_config
from volcano_py.scheduler.engine import SCHEDULER_NAMES, CycleResult, Engine
from volcano_py.scheduler.framework.registry import known_actions, known_plugins
from volcano_py.scheduler.model.kube.times import parse_duration, parse_time
from volcano_py.simulator import shorthand
from volcano_py.simulator.card_shorthand import ShorthandError
from volcano_py.simulator.expand import expand
from volcano_py.simulator.expectations import CHECKS, Outcome, differences
from volcano_py.simulator.manifests import Manifest

START: Final = "2026-01-01T00:00:00Z"
_SHORT: Final[Mapping[str, Callable[[Any], list[dict[str, Any]]]]] = {
    "priorities": shorthand.priorities,
    "nodes": shorthand.nodes,
    "queues": shorthand.queues,
    "jobs": shorthand.jobs,
}
_SCENARIO_KEYS: Final = {
    "name", "why", "config", "actions", "plugins", "cycles", "settle", "now", "objects", "expect", "steps",
    *_SHORT,
}  # fmt: skip
_STEP_KEYS: Final = {"apply", "delete", "wait", "cycles", "settle", "expect", *_SHORT}
_CLUSTER_KINDS: Final = {
    "Node",
    "Queue",
    "PriorityClass",
    "Namespace",
    "PersistentVolume",
    "StorageClass",
    "CSINode",
}


class ScenarioError(ValueError):
    """A scenario that says something the format does not know."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a scenario came out.

    Attributes:
        name, why: of the scenario.
        where: file and line.
        wrong: what differs from what was expected; empty: it passed.
    """

    name: str
    why: str
    where: str
    wrong: tuple[str, ...]


@dataclass(slots=True)
class _Run:
    """An engine, its clock, and what one step has decided so far."""

    engine: Engine
    now: float
    outcome: Outcome = field(init=False)

    def cycles(self, count: int, *, settle: bool) -> None:
        self.outcome = Outcome(self.engine)
        for _ in range(count):
            result: CycleResult = self.engine.cycle(self.now)
            self.outcome.add(result)
            if settle:
                self.engine.settle(self.now)
                self.now += 1.0


def is_scenario(manifest: Manifest) -> bool:
    """A document with a ``why`` or ``expect`` or ``steps`` rather than a Kubernetes object."""
    return "kind" not in manifest.document


def run_scenario(manifest: Manifest) -> Verdict:
    """Run one scenario; raises ``ScenarioError`` if the document is not in the format."""
    document = {key: value for key, value in manifest.document.items() if not str(key).startswith("x-")}
    where = f"{manifest.file}:{manifest.line}"
    name = document.get("name")
    if not isinstance(name, str):
        raise ScenarioError(f"{where}: a scenario needs a name")
    _known(document, _SCENARIO_KEYS, name)
    try:
        wrong = _run(document, name)
    except (ShorthandError, ConfigError) as error:
        raise ScenarioError(f"{where}: scenario {name}: {error}") from error
    return Verdict(name, " ".join(str(document.get("why", "")).split()), where, tuple(wrong))


def _run(document: dict[str, Any], name: str) -> list[str]:
    run = _Run(_engine(document), parse_time(document.get("now", START)))
    _apply(run, _objects(document, "objects"))
    if "steps" not in document:
        run.cycles(int(document.get("cycles", 1)), settle=bool(document.get("settle", False)))
        return _compare(run, document.get("expect", {}), name)
    wrong: list[str] = []
    for number, step in enumerate(document["steps"], 1):
        _known(step, _STEP_KEYS, f"{name}, step {number}")
        _apply(run, _objects(step, "apply"))
        for gone in step.get("delete", []):
            run.engine.delete(gone["kind"], _key(gone))
        run.now += parse_duration(step.get("wait", "0"))
        run.cycles(int(step.get("cycles", 1)), settle=bool(step.get("settle", False)))
        wrong += [f"step {number}: {text}" for text in _compare(run, step.get("expect", {}), name)]
    return wrong


def _engine(document: dict[str, Any]) -> Engine:
    plugins, actions = known_plugins(), known_actions()
    if "actions" in document or "plugins" in document:
        if "config" in document:
            raise ShorthandError("actions and plugins stand in place of config, not beside it")
        made = shorthand.config(document.get("actions"), document.get("plugins", {}))
        return Engine(parse_scheduler_config(made, plugins, actions))
    if "config" in document:
        return Engine(parse_scheduler_config(document["config"], plugins, actions))
    return Engine(load_scheduler_config(SCENARIO_CONFIG, plugins, actions))


def _apply(run: _Run, objects: list[dict[str, Any]]) -> None:
    for item in expand(objects, SCHEDULER_NAMES):
        run.engine.apply(item)


def _objects(source: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Long and short forms of *source*, copies made."""
    short = [item for name, make in _SHORT.items() for item in make(source.get(name, ()))]
    return [copy for item in [*short, *source.get(key, [])] for copy in _copies(item)]


def _copies(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "copies" not in item and "firstCopy" not in item:
        yield item
        return
    plain = {key: value for key, value in item.items() if key not in ("copies", "firstCopy")}
    first = int(item.get("firstCopy", 0))
    for number in range(first, first + int(item.get("copies", 1))):
        yield _numbered(plain, str(number))


def _numbered(value: Any, number: str) -> Any:
    if isinstance(value, str):
        return value.replace("{i}", number)
    if isinstance(value, list):
        return [_numbered(item, number) for item in value]
    if isinstance(value, dict):
        return {_numbered(key, number): _numbered(item, number) for key, item in value.items()}
    return value


def _compare(run: _Run, expect: dict[str, Any], name: str) -> list[str]:
    _known(expect, set(CHECKS), f"{name}: expect")
    return differences(run.outcome, expect)


def _known(given: dict[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(str(key) for key in given if key not in known and not str(key).startswith("x-"))
    if unknown:
        raise ScenarioError(
            f"scenario {where}: unknown key {unknown[0]!r}; known keys: {', '.join(sorted(known))}"
        )


def _key(item: dict[str, Any]) -> str:
    if item["kind"] in _CLUSTER_KINDS:
        return str(item["name"])
    return f"{item.get('namespace', 'default')}/{item['name']}"
