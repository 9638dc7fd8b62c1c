"""A plugin in a package of its own is found by name and changes what is decided."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples/price-plugin"
CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: a-dear, labels: {example.com/price: "4"}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: b-cheap, labels: {example.com/price: "1"}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ml}
spec:
  schedulerName: volcano-py
  containers: [{name: main, image: busybox, resources: {requests: {cpu: "1"}}}]
"""
PLAIN = "actions: 'enqueue, allocate'\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]\n"
PRICE = "{name: price, arguments: {price.weight: 20}}"
PRICED = PLAIN.replace("{name: predicates}", f"{{name: predicates}}, {PRICE}")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    source = tmp_path_factory.mktemp("source")
    for file in PACKAGE.iterdir():
        if file.is_file():
            (source / file.name).write_bytes(file.read_bytes())
    subprocess.run([*pip, "--target", str(target), str(source)], check=True, timeout=300)
    return target


def plan(folder: Path, config: str, site: Path | None) -> subprocess.CompletedProcess[str]:
    (folder / "cluster.yaml").write_text(CLUSTER)
    (folder / "config.yaml").write_text(config)
    command = [str(ROOT / ".venv/bin/volcano-py"), "plan", "-f", str(folder / "cluster.yaml"), "-o", "json"]
    environment = {**os.environ, **({"PYTHONPATH": str(site)} if site else {})}
    command += ["--config", str(folder / "config.yaml")]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)


def node_of(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return str(report["decisions"][0]["node"])


def test_it_changes_a_decision(tmp_path: Path, installed: Path) -> None:
    assert node_of(plan(tmp_path, PLAIN, installed)) == "a-dear"
    assert node_of(plan(tmp_path, PRICED, installed)) == "b-cheap"


def test_a_name_that_no_package_brings_is_unknown(tmp_path: Path, installed: Path) -> None:
    done = plan(tmp_path, PRICED.replace("name: price", "name: prices"), installed)
    assert done.returncode == 2
    assert 'did you mean \\"price\\"' in done.stdout


def test_its_arguments_are_checked(tmp_path: Path, installed: Path) -> None:
    done = plan(tmp_path, PRICED.replace("price.weight", "price.wieght"), installed)
    assert done.returncode == 2
    assert "price.wieght" in done.stdout
    assert "did you mean" in done.stdout


BROKEN = """\
from volcano_py.scheduler.framework.plugin import Plugin


class BrokenPlugin(Plugin):
    name = "broken"

    def open(self, session):
        session.points.job_valid.add(self.name, self.judge)

    def judge(self, job):
        return job.members
"""


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("BrokenPlugin", "breaks off at volcano_broken.py:11 because of AttributeError"),
        ("Absent", "volcano_broken:Absent can't be loaded"),
    ],
)
def test_one_that_breaks_is_named_with_its_line(tmp_path: Path, where: str, says: str) -> None:
    (tmp_path / "volcano_broken.py").write_text(BROKEN)
    about = tmp_path / "volcano_broken-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: volcano-broken\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[volcano_py.plugins]\nbroken = volcano_broken:{where}\n")
    done = plan(tmp_path, PLAIN.replace("{name: gang}", "{name: gang}, {name: broken}"), tmp_path)
    assert (done.returncode, done.stderr) == (2, "")
    [error] = json.loads(done.stdout)["errors"]
    assert (error["line"], error["field"]) == (2, "tiers[0].plugins[1]")
    assert says in error["message"]


def test_it_is_short() -> None:
    code = [line for line in (PACKAGE / "volcano_py_price.py").read_text().splitlines() if line.strip()]
    assert len(code) <= 40
