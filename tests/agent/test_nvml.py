"""NVML as the agent sees it, on the stub driver. A driver is loaded once, so each case has a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.shim.scripts import says
from tests.shim.stub import build
from tests.shim.stub.state import Card, Driver, card_uuid

DEADLINE_S = 60
BEGIN = "from volcano_py.shim.agent.nvml import *\ndriver = Driver()\ndriver.open()\n"


def test_cards_are_listed_by_minor_number(tmp_path: Path) -> None:
    cards = [
        Card(memory_mib=2048, minor=1, numa=1),
        Card(memory_mib=1024, minor=0, name="Tesla V100", mig_mode=1),
    ]
    with Driver.create(tmp_path / "state", cards) as state:
        told = says(state, BEGIN + "for each in driver.cards()[0]: print(each)")
    assert told == [
        f"Card(uuid='{card_uuid(1)}', minor=0, name='Tesla V100', memory_mib=1024, bus_id='0000:11:00.0', "
        "numa=0, mig=True)",
        f"Card(uuid='{card_uuid(0)}', minor=1, name='NVIDIA A100-SXM4-80GB', memory_mib=2048, "
        "bus_id='0000:10:00.0', numa=1, mig=False)",
    ]


def test_one_lost_card_hides_no_other(tmp_path: Path) -> None:
    with Driver.create(tmp_path / "state", [Card(), Card()]) as state:
        state.lose(0)
        told = says(
            state,
            BEGIN + "cards, faults = driver.cards()\nprint([each.minor for each in cards], len(faults))\n"
            f"print(driver.trouble('{card_uuid(0)}'))\nprint(driver.trouble('{card_uuid(1)}') == '')",
        )
    assert told[0] == "[1] 1"
    assert "lost" in told[1].lower() or "not found" in told[1].lower()
    assert told[2] == "True"


def test_links_count_as_hami_counts_them(tmp_path: Path) -> None:
    cards = [Card(links=(0, 4, 0)), Card(links=(4, 0, 0)), Card()]
    with Driver.create(tmp_path / "state", cards) as state:
        told = says(state, BEGIN + "print(sorted(driver.links(driver.cards()[0]).values()))")
    assert told == ["[10, 10, 410]"]


def test_an_event_names_its_card(tmp_path: Path) -> None:
    with Driver.create(tmp_path / "state", [Card(), Card()]) as state:
        script = (
            BEGIN + "import sys\nuuids = [each.uuid for each in driver.cards()[0]]\n"
            "print(driver.wait(uuids, 1), flush=True)\nsys.stdin.readline()\nprint(driver.wait(uuids, 20000))"
        )
        environment = {**os.environ, **state.environment(build.build())}
        with subprocess.Popen(
            [sys.executable, "-c", script],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            assert process.stdout.readline() == "None\n"
            state.raise_event(1, 79)
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"Event(uuid='{card_uuid(1)}', xid=79)\n"
            assert process.wait(DEADLINE_S) == 0


def test_without_a_library_the_driver_says_so() -> None:
    script = (
        "from volcano_py.shim.agent.nvml import *\n"
        "try:\n    Driver('/nowhere/libnvidia-ml.so.1').open()\n"
        "except DriverError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=DEADLINE_S, check=True
    )
    assert "/nowhere/libnvidia-ml.so.1" in done.stdout
