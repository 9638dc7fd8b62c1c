"""Whose is what the driver sees: made-up lists, and real processes of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.cgroup.hosts import WAIT_S, Host, heard, host, root_of
from volcano_py.shim.agent.attribution import (
    Attribution,
    Found,
    HostProcesses,
    Stray,
    Use,
    attribute,
    start_ticks,
)
from volcano_py.shim.agent.cgroup.names import ContainerCgroup
from volcano_py.shim.agent.cgroup.tree import Whereabouts
from volcano_py.shim.agent.readings import CardProcess, Reading

A, B = ContainerCgroup("uid-a", "id-a", "a"), ContainerCgroup("uid-b", "id-b", "b")
KEY_A, KEY_B = ("uid-a", "id-a"), ("uid-b", "id-b")
PLACES = {
    1: Found(1, Whereabouts.OUTSIDE),
    10: Found(10, A),
    11: Found(11, A),
    12: Found(10, A),  # a thread of 10
    20: Found(20, B),
    30: Found(30, Whereabouts.ENDED),
    40: Found(40, Whereabouts.UNCLEAR),
}


def shared(*cards: Reading) -> Attribution:
    return attribute(cards, lambda pid, _: PLACES[pid])


def card(*processes: CardProcess, uuid: str = "GPU-0", trouble: str = "") -> Reading:
    return Reading(uuid, 100.0, processes, trouble=trouble)


def test_processes_of_a_container_add_up() -> None:
    told = shared(card(CardProcess(10, 100, 30), CardProcess(11, 50, 20), CardProcess(20, 7, 0)))
    assert told.uses == {
        KEY_A: {"GPU-0": Use(150, 50, (10, 11))},
        KEY_B: {"GPU-0": Use(7, 0, (20,))},
    }


def test_cards_are_kept_apart() -> None:
    told = shared(card(CardProcess(10, 100)), card(CardProcess(10, 5), uuid="GPU-1"))
    assert {uuid: use.memory_bytes for uuid, use in told.uses[KEY_A].items()} == {"GPU-0": 100, "GPU-1": 5}


def test_threads_of_one_process_count_once() -> None:
    told = shared(card(CardProcess(10, 100, 30), CardProcess(12, 100, 40)))
    assert told.uses[KEY_A]["GPU-0"] == Use(100, 40, (10,))


def test_time_is_never_more_than_all_of_it() -> None:
    told = shared(card(CardProcess(10, 1, 70), CardProcess(11, 1, 70)))
    assert told.uses[KEY_A]["GPU-0"].busy_percent == 100


def test_what_is_not_measured_is_not_nought() -> None:
    told = shared(card(CardProcess(10, None), CardProcess(11, 5)))
    assert told.uses[KEY_A]["GPU-0"] == Use(5, None, (10, 11), untold=1)


def test_who_is_in_no_container_is_told_as_such() -> None:
    told = shared(card(CardProcess(1, 9), CardProcess(40, None), CardProcess(30, 5)))
    assert told.uses == {}
    assert told.strays == (
        Stray("GPU-0", 1, 9, Whereabouts.OUTSIDE),
        Stray("GPU-0", 40, 0, Whereabouts.UNCLEAR),
    )


def test_a_card_in_trouble_says_nothing() -> None:
    told = shared(card(CardProcess(10, 100), trouble="list was cut off"), card(uuid="GPU-1"))
    assert told == Attribution({}, (), frozenset({"GPU-1"}))


# -- real processes -----------------------------------------------------------------------------


@pytest.fixture
def machine() -> Iterator[Host]:
    """A host with cgroups of either version."""
    (root, reason), (older, _) = root_of(2), root_of(1)
    if root is None and older is None:
        pytest.skip(reason)
    with host(root or older or Path()) as made:
        yield made


def now_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def test_a_process_is_found_in_its_container(machine: Host) -> None:
    mine = machine.container()
    process = machine.sleeper(mine)
    assert HostProcesses(machine.tree).find(process.pid, now_s()) == Found(process.pid, mine)


def test_a_number_used_again_is_not_the_one_that_was_listed(machine: Host) -> None:
    """The card was read, the process ended, and another one got its number."""
    listed_s = now_s()
    process = machine.sleeper(machine.container())
    later = start_ticks(Path(f"/proc/{process.pid}"))
    assert later is not None
    assert later >= int(listed_s * os.sysconf("SC_CLK_TCK"))
    found = HostProcesses(machine.tree).find(process.pid, listed_s - 0.011)
    assert found.place is Whereabouts.ENDED


def test_a_process_that_changes_under_the_look_is_not_believed(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = machine.sleeper(machine.container())
    starts = iter([5, 6])
    monkeypatch.setattr("volcano_py.shim.agent.attribution.start_ticks", lambda _: next(starts))
    assert HostProcesses(machine.tree).find(process.pid, now_s()).place is Whereabouts.ENDED


def test_a_process_that_ended(machine: Host) -> None:
    process = machine.sleeper(None)
    process.kill()
    process.wait(WAIT_S)
    assert HostProcesses(machine.tree).find(process.pid, now_s()).place is Whereabouts.ENDED


def test_a_thread_is_its_process(machine: Host) -> None:
    mine = machine.container()
    script = (
        "import threading, sys\n"
        "thread = threading.Thread(target=sys.stdin.read)\n"
        "thread.start()\n"
        "print(thread.native_id, flush=True)\n"
    )
    process = machine.start(mine, sys.executable, "-c", script)
    thread = int(heard(process))
    assert thread != process.pid
    assert HostProcesses(machine.tree).find(thread, now_s()) == Found(process.pid, mine)


def test_a_process_may_be_called_anything(tmp_path: Path) -> None:
    """Its name stands in the middle of the line that tells when it started."""
    strange = tmp_path / "a) R 1 2 (b"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", strange)
    before = now_s()
    with subprocess.Popen([strange, "600"]) as process:
        try:
            # Until the copy runs in place of the fork, the name is still ours.
            deadline = time.monotonic() + WAIT_S
            comm = Path(f"/proc/{process.pid}/comm")
            while "R 1 2" not in comm.read_text() and time.monotonic() < deadline:
                time.sleep(0.01)
            ticks = start_ticks(Path(f"/proc/{process.pid}"))
        finally:
            process.kill()
    hertz = os.sysconf("SC_CLK_TCK")
    assert ticks is not None
    assert int(before * hertz) <= ticks <= now_s() * hertz
