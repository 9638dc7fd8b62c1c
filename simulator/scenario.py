"""Scenarios: small cluster situations with a right answer, run on the very engine.

The format is that of the scenario files (one a YAML document): ``objects`` go in, ``cycles`` are run,
``expect`` is compared; or ``steps`` of the same on one engine that lives on. What an object in a
scenario has wrong is part of the case; what the scenario itself has wrong is an error.

Neighbours: ``scenario_format`` (what may be written), ``shorthand`` (short forms), ``expectations``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from volcano_py.crds.arguments import ConfigError
from volcano_py.crds.schedulerconfig import (
    SCENARIO_CONFIG,
    SchedulerConfig,
    load_scheduler_config,
    parse_scheduler_config,
)
from volcano_py.scheduler.framework.registry import known_actions, known_plugins
from volcano_py.scheduler.model.kube.times import parse_duration, parse_time
from volcano_py.simulator import scenario_format, shorthand
from volcano_py.simulator.card_shorthand import ShorthandError
from volcano_py.simulator.expectations import Outcome, differences
from volcano_py.simulator.manifests import Document, Manifest
from volcano_py.simulator.world import World

START: Final = "2026-01-01T00:00:00Z"
"""The clock of a scenario that says nothing about it."""
_SHORT: Final[Mapping[str, Callable[[Any], list[Document]]]] = {
    "priorities": shorthand.priorities,
    "nodes": shorthand.nodes,
    "queues": shorthand.queues,
    "jobs": shorthand.jobs,
}
_IN_PLACE_OF_CONFIG: Final = ("actions", "plugins")


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


def run_scenario(manifest: Manifest) -> Verdict:
    """Run one scenario; raises ``ScenarioError`` if the document is not in the format."""
    document = manifest.document
    where = f"{manifest.file}:{manifest.line}"
    name = str(document.get("name", "(no name)"))
    faults = scenario_format.faults(document, (*_SHORT, *_IN_PLACE_OF_CONFIG))
    if faults:
        raise ScenarioError(f"{where}: scenario {name}: {'; '.join(faults)}")
    try:
        wrong = _run(document)
    except (ShorthandError, ConfigError) as error:
        raise ScenarioError(f"{where}: scenario {name}: {error}") from error
    return Verdict(name, " ".join(document.get("why", "").split()), where, tuple(wrong))


def _run(document: Document) -> list[str]:
    """What differs from what *document* expects."""
    run = _Run(World(_config(document), parse_time(document.get("now", START))))
    run.world.apply(_objects(document, "objects"))
    if "steps" not in document:
        return run.judged(document)
    return [
        f"step {number}: {text}"
        for number, step in enumerate(document["steps"], 1)
        for text in run.step(step)
    ]


@dataclass(slots=True)
class _Run:
    """A world on its way through the steps of a scenario.

    Attributes:
        to_settle: the last cycle's step said that the cluster settles between cycles.
        begun: a cycle has run.
    """

    world: World
    to_settle: bool = False
    begun: bool = False

    def step(self, step: Document) -> list[str]:
        """Do *step*; what differs from what it expects.

        Between the last cycle of a step and the first one of the next the cluster settles if either
        says so, before anything is applied.
        """
        if self.begun and (self.to_settle or step.get("settle", False)):
            self.world.settle()
        self.world.apply(_objects(step, "apply"))
        for gone in step.get("delete", ()):
            self.world.delete(gone["kind"], gone["name"], gone.get("namespace"))
        self.world.now += parse_duration(step.get("wait", 0))
        return self.judged(step)

    def judged(self, step: Document) -> list[str]:
        """Run the cycles of *step*; what differs from what it expects."""
        outcome = Outcome(self.world.engine)
        self.to_settle = step.get("settle", False)
        for number in range(step.get("cycles", 1)):
            if number and self.to_settle:
                self.world.settle()
            outcome.add(self.world.cycle())
            self.begun = True
        return differences(outcome, step.get("expect", {}))


def _config(document: Document) -> SchedulerConfig:
    plugins, actions = known_plugins(), known_actions()
    if any(key in document for key in _IN_PLACE_OF_CONFIG):
        if "config" in document:
            raise ShorthandError("actions and plugins stand in place of config, not beside it")
        made = shorthand.config(document.get("actions"), document.get("plugins", {}))
        return parse_scheduler_config(made, plugins, actions)
    if "config" in document:
        return parse_scheduler_config(document["config"], plugins, actions)
    return load_scheduler_config(SCENARIO_CONFIG, plugins, actions)


# -- objects ------------------------------------------------------------------------------------


def _objects(source: Document, key: str) -> list[Document]:
    """Long and short forms of *source*, copies made."""
    short = [item for name, make in _SHORT.items() for item in make(source.get(name, ()))]
    return [copy for item in [*short, *source.get(key, ())] for copy in _copies(item)]


def _copies(item: Document) -> Iterator[Document]:
    """*item*, or those that it stands for."""
    if "copies" not in item:
        yield item
        return
    plain = {key: value for key, value in item.items() if key not in ("copies", "firstCopy")}
    first = item.get("firstCopy", 0)
    for number in range(first, first + item["copies"]):
        yield _numbered(plain, str(number))


def _numbered(value: Any, number: str) -> Any:
    if isinstance(value, str):
        return value.replace("{i}", number)
    if isinstance(value, list):
        return [_numbered(item, number) for item in value]
    if isinstance(value, dict):
        return {_numbered(key, number): _numbered(item, number) for key, item in value.items()}
    return value
