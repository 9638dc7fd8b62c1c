"""Every scenario document below this folder, and the shared ones where they lie beside the checkout."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from volcano_py.scheduler.framework.registry import BUILT_IN_ACTIONS, BUILT_IN_PLUGINS
from volcano_py.simulator.manifests import Manifest, read_paths
from volcano_py.simulator.scenario import ScenarioError, run_scenario

HERE: Final = Path(__file__).parent
SHARED: Final = HERE.parents[2] / "shared" / "scenarios"
COLLECTED: Final = (
    "actions",
    "deviceshare",
    "plugins",
    "interruption.yaml",
    "queues.yaml",
    "reservations.yaml",
    "objects.yaml",
    "people.yaml",
    "users.yaml",
)
LEAST_IN_ALL: Final = 120
LEAST_EACH: Final = 5


def _documents(paths: list[Path]) -> list[Manifest]:
    files = [file for path in paths for file in (sorted(path.rglob("*.yaml")) if path.is_dir() else [path])]
    manifests, faults = read_paths([str(file) for file in files])
    assert not faults, faults
    return list(manifests)


@cache
def own() -> list[Manifest]:
    """The project's own scenarios."""
    return _documents([HERE / name for name in COLLECTED])


@cache
def shared() -> list[Manifest]:
    """Those beside the checkout; none where that folder is missing."""
    return _documents([SHARED / name for name in ("pitfalls", "volcano") if (SHARED / name).is_dir()])


def _name(manifest: Manifest) -> str:
    return str(manifest.document.get("name"))


@pytest.mark.parametrize("manifest", own(), ids=_name)
def test_own(manifest: Manifest) -> None:
    verdict = run_scenario(manifest)
    assert verdict.why, "a scenario says why its answer is right"
    assert not verdict.wrong, f"{verdict.where}: {verdict.why}"


@pytest.mark.parametrize("manifest", shared(), ids=_name)
def test_shared(manifest: Manifest) -> None:
    verdict = run_scenario(manifest)
    assert not verdict.wrong, f"{verdict.where}: {verdict.why}"


def test_every_scenario_expects_something() -> None:
    """A document without an expectation can't fail."""
    for manifest in own():
        steps = manifest.document.get("steps", [manifest.document])
        assert any(step.get("expect") for step in steps), _name(manifest)


def test_names_are_unique() -> None:
    counts = Counter(map(_name, own()))
    assert [name for name, count in counts.items() if count > 1] == []


def test_there_are_enough() -> None:
    assert len(own()) >= LEAST_IN_ALL


@pytest.mark.parametrize(
    "file",
    [*(f"actions/{name}" for name in BUILT_IN_ACTIONS), *(f"plugins/{name}" for name in BUILT_IN_PLUGINS)],
)
def test_every_action_and_plugin_has_its_own(file: str) -> None:
    of_file = [manifest for manifest in own() if Path(manifest.file) == HERE / f"{file}.yaml"]
    assert len(of_file) >= LEAST_EACH


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{name: x, expekt: {}}", "unknown key 'expekt'"),
        ("{name: x, expect: {bind: {}}}", "unknown key 'bind'"),
        ("{name: x, steps: [{waits: 1s}]}", "unknown key 'waits'"),
        ("{name: x, nodes: [{name: n, gpus: 1}]}", "unknown key 'gpus'"),
        ("{name: x, nodes: [{cpu: 1}]}", "no name"),
        ("{name: x, nodes: [{name: n, cards: {size: 1}}]}", "unknown key 'size'"),
        ("{name: x, nodes: [{name: n, cards: {family: amd}}]}", "unknown family 'amd'"),
        ("{name: x, jobs: [{name: a, cards: {kores: 1}}]}", "unknown key 'kores'"),
        ("{name: x, jobs: [{name: a, at: n, holds: [c/1]}]}", "not card/MiB/cores"),
        ("{name: x, plugins: {binpakc: {}}}", "binpakc"),
        ("{name: x, plugins: {binpakc: null}}", "can't be left out"),
        ("{name: x, actions: allocat}", "allocat"),
        ("{name: x, actions: allocate, config: {}}", "in place of config"),
        ("{why: no name}", "needs a name"),
    ],
)
def test_mistakes_in_a_scenario_are_errors(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    [manifest] = _documents([file])
    with pytest.raises(ScenarioError, match=message):
        run_scenario(manifest)
