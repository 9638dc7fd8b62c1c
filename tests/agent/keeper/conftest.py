"""A host with a pretend card, real processes in real cgroups, and a keeper beside them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from tests.agent.cgroup.conftest import hosts
from tests.agent.cgroup.hosts import GATE, WAIT_S, Host, let_go
from tests.shim.harness import LIBRARY, Probe
from tests.shim.stub import build
from tests.shim.stub.build import ROOT
from tests.shim.stub.state import MIB, Card, Driver, card_uuid
from volcano_py.shim.agent.cgroup.names import ContainerCgroup

GPU: Final = card_uuid(0)
SETTINGS: Final = {"answer": "event", "over_s": 0.3, "way": "off", "idle_s": 2.0, "most_s": 600.0}


@dataclass
class Node:
    """A host with one pretend card, its containers, and the keeper."""

    host: Host
    driver: Driver
    folder: Path
    tenants: list[dict[str, Any]] = field(default_factory=list)
    keepers: list[subprocess.Popen[str]] = field(default_factory=list)

    def tenant(self, name: str, **changes: Any) -> ContainerCgroup:
        """A new container that holds 100 MiB and half the time of the card."""
        cgroup = self.host.container()
        told = {
            "pod_uid": cgroup.pod_uid,
            "container_id": cgroup.container_id,
            "namespace": "ns",
            "pod": name,
            "container": "main",
            "holds": {GPU: (100 * MIB, 50)},
            "queue": "ml",
        }
        self.tenants.append({**told, **changes})
        return cgroup

    @contextlib.contextmanager
    def program(
        self, cgroup: ContainerCgroup | None, under: Path | None = None, *before: str
    ) -> Iterator[Probe]:
        """A program on the card in *cgroup*, begun by the words *before*.

        With a region it is *under* the library; else nothing stands between it and the driver.
        """
        table = self.folder / "names"
        table.touch()
        library = {} if under is None else {"LD_PRELOAD": str(LIBRARY), "VOLCANO_PY_REGION": str(under)}
        process = subprocess.Popen(
            [*GATE, *before, str(build.build() / "probe"), "dlsym", str(table)],
            env={"PATH": os.environ["PATH"], **self.driver.environment(build.build()), **library},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with Probe(process) as probe:
            if cgroup is not None:
                self.host.join(cgroup, process.pid)
            probe.tell("go")
            try:
                yield probe.start()
            finally:
                if cgroup is not None:
                    let_go(self.host.tree.hierarchy("freezer") / cgroup.path)
                probe.kill()

    def keeper(self, **changes: Any) -> subprocess.Popen[str]:
        """A keeper that begins now."""
        told = {"root": str(self.host.tree.root), "name": self.host.name, "devices": str(self.folder)}
        file = self.folder / "keep.json"
        file.write_text(json.dumps({**SETTINGS, **told, **changes, "tenants": self.tenants}))
        made = subprocess.Popen(
            [sys.executable, "-m", "tests.agent.keeper.child", str(file)],
            cwd=ROOT,
            env={**os.environ, **self.driver.environment(build.build())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.keepers.append(made)
        return made


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Node]:
    with Driver.create(tmp_path / "state", [Card(sms=100)]) as driver:
        for host in hosts(request.param):
            made = Node(host, driver, tmp_path)
            try:
                yield made
            finally:
                for keeper in made.keepers:
                    keeper.kill()
                    keeper.communicate()


def busy_until(true: Callable[[], bool], *programs: Probe) -> bool:
    """Whether *true* comes to hold while *programs* keep the card busy. Their answers are not waited for."""
    deadline = time.monotonic() + WAIT_S
    again = 0.0
    while not true():
        if time.monotonic() > deadline:
            return False
        if time.monotonic() > again:
            again = time.monotonic() + 0.2
            for program in programs:
                program.tell("launch cuLaunchKernel 100000 100 1")
        time.sleep(0.02)
    return True
