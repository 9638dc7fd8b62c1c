"""What is read of cards through NVML, on the stub driver. A process loads a driver once: one each case."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.agent.cgroup.hosts import WAIT_S
from tests.shim.harness import Probe
from tests.shim.scripts import says
from tests.shim.stub import build
from tests.shim.stub.state import MIB, Card, Driver, MigInstance, card_uuid

BEGIN = "import pynvml as n\nn.nvmlInit()\nfrom volcano_py.shim.agent.readings import read_cards\n"


@contextmanager
def program(state: Driver, folder: Path) -> Iterator[Probe]:
    """A program on the first card, without any library between it and the driver."""
    environment = {"PATH": os.environ["PATH"], **state.environment(build.build())}
    table = folder / "names"
    table.touch()
    process = subprocess.Popen(
        [str(build.build() / "probe"), "dlsym", str(table)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with Probe(process) as probe:
        yield probe.start()


def test_a_card_tells_its_processes_and_itself(tmp_path: Path) -> None:
    cards = [Card(memory_mib=1024, minor=3), Card()]
    with Driver.create(tmp_path / "state", cards) as state, program(state, tmp_path) as probe:
        assert probe.take("x", 100) == 0
        told = says(
            state,
            BEGIN + "for each in read_cards():\n"
            "    print(each.uuid, each.minor, each.processes, each.facts, each.trouble or '-', sep='|')",
        )
        pid = probe.process.pid
    first, second = (line.split("|") for line in told)
    assert first[:2] == [card_uuid(0), "3"]
    assert first[2] == f"(CardProcess(pid={pid}, memory_bytes={100 * MIB}, busy_percent=0),)"
    assert f"used_bytes={100 * MIB}, total_bytes={1024 * MIB}" in first[3]
    assert second[:3] == [card_uuid(1), "1", "()"]
    assert first[4] == second[4] == "-"


def test_a_busy_process_has_its_share_of_the_time(tmp_path: Path) -> None:
    script = (
        "import time\n"
        "share = 0\n"
        "while share < 50:\n"
        "    time.sleep(0.05)\n"
        "    share = read_cards()[0].processes[0].busy_percent\n"
    )
    with Driver.create(tmp_path / "state", [Card(sms=100)]) as state, program(state, tmp_path) as probe:
        environment = {**os.environ, **state.environment(build.build())}
        with subprocess.Popen([sys.executable, "-c", BEGIN + script], env=environment) as reader:
            kept_busy(probe, reader)
            reader.kill()
        probe.kill()
    assert reader.returncode == 0


def kept_busy(probe: Probe, until_ends: subprocess.Popen[bytes]) -> None:
    """Let *probe* fill the card's time until the other process ends, or the deadline is over."""
    deadline = time.monotonic() + WAIT_S
    while until_ends.poll() is None and time.monotonic() < deadline:
        assert probe.code("launch cuLaunchKernel 1200000 100 1") == 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            until_ends.wait(1.0)


def test_one_lost_card_hides_no_other(tmp_path: Path) -> None:
    with Driver.create(tmp_path / "state", [Card(), Card()]) as state:
        state.lose(0)
        told = says(
            state, BEGIN + "for each in read_cards(): print(each.uuid or 'unknown', bool(each.trouble))"
        )
    assert told == ["unknown True", f"{card_uuid(1)} False"] or told == [
        f"{card_uuid(0)} True",
        f"{card_uuid(1)} False",
    ]


def test_a_list_that_cannot_be_had_is_trouble_and_not_empty(tmp_path: Path) -> None:
    with Driver.create(tmp_path / "state", [Card()]) as state:
        state.fail("nvmlDeviceGetComputeRunningProcesses_v3", 999)
        told = says(state, BEGIN + "for each in read_cards(): print(each.uuid, each.trouble)")
    assert told == [f"{card_uuid(0)} Unknown Error"]


def test_a_card_without_such_lists_has_the_others(tmp_path: Path) -> None:
    """Old drivers know of no MPS list, cards for computing draw nothing."""
    with Driver.create(tmp_path / "state", [Card()]) as state, program(state, tmp_path) as probe:
        for symbol in ("Graphics", "MPSCompute"):
            state.fail(f"nvmlDeviceGet{symbol}RunningProcesses_v3", 3)
        state.fail("nvmlDeviceGetProcessUtilization", 3)
        told = says(state, BEGIN + "print(read_cards()[0].processes)")
        pid = probe.process.pid
    assert told == [f"(CardProcess(pid={pid}, memory_bytes=0, busy_percent=None),)"]


def test_in_mig_mode_instances_have_the_processes(tmp_path: Path) -> None:
    card = Card(mig_mode=1, minor=2, migs=(MigInstance("MIG-a", 9728), MigInstance("MIG-b", 19968)))
    with Driver.create(tmp_path / "state", [card]) as state:
        told = says(
            state, BEGIN + "for each in read_cards(): print(each.uuid, each.minor, each.facts is not None)"
        )
    assert told == [f"{card_uuid(0)} 2 True", "MIG-a 2 False", "MIG-b 2 False"]
