"""Stopping and ending containers, with real processes in real cgroups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.agent.cgroup.hosts import REAL, WAIT_S, Host, answers, eventually, heard, tell
from volcano_py.shim.agent.cgroup.errors import CgroupError
from volcano_py.shim.agent.cgroup.files import Timing, processes
from volcano_py.shim.agent.cgroup.freezer import MARK, Freezer, State
from volcano_py.shim.agent.cgroup.kill import Killer
from volcano_py.shim.agent.cgroup.names import ContainerCgroup


@pytest.fixture
def freezer(node: Host) -> Freezer:
    return Freezer(node.tree)


def pause(node: Host, cgroup: ContainerCgroup) -> None:
    """What a runtime does when somebody says ``pause``."""
    folder = node.tree.folder(cgroup, "freezer")
    if node.tree.unified:
        (folder / "cgroup.freeze").write_text("1")
    else:
        (folder / "freezer.state").write_text("FROZEN")


def marked(node: Host, cgroup: ContainerCgroup) -> bool:
    return MARK in os.listxattr(node.tree.folder(cgroup, "freezer"))


def test_who_is_frozen_does_nothing_until_thawed(node: Host, freezer: Freezer) -> None:
    mine, other = node.container(), node.container()
    stopped, running = node.echo(mine), node.echo(other)
    assert freezer.freeze(mine, WAIT_S) is State.FROZEN
    tell(stopped, b"one\n")
    tell(running, b"two\n")
    assert heard(running) == b"two\n"
    assert not answers(stopped, 0.05)
    assert freezer.thaw(mine, WAIT_S) is State.THAWED
    assert heard(stopped) == b"one\n"


def test_processes_further_down_are_stopped_too(node: Host, freezer: Freezer) -> None:
    mine = node.container("cgroupfs")
    process = node.start(mine, "cat", below="inner")
    assert freezer.freeze(mine, WAIT_S) is State.FROZEN
    tell(process, b"one\n")
    assert not answers(process, 0.05)
    assert freezer.thaw(mine, WAIT_S) is State.THAWED
    assert heard(process) == b"one\n"


def test_an_empty_container_can_be_frozen(node: Host, freezer: Freezer) -> None:
    mine = node.container()
    assert freezer.freeze(mine, WAIT_S) is State.FROZEN
    assert freezer.thaw(mine, WAIT_S) is State.THAWED
    assert not marked(node, mine)


def test_a_freeze_is_marked_before_it_is_made(
    node: Host, freezer: Freezer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever dies in between leaves a mark too many, never a freeze that nobody knows to be ours."""
    mine = node.container()

    def dies(path: Path, text: str) -> None:
        assert marked(node, mine)
        raise KeyboardInterrupt

    monkeypatch.setattr("volcano_py.shim.agent.cgroup.freezer.write", dies)
    with pytest.raises(KeyboardInterrupt):
        freezer.freeze(mine, WAIT_S)
    monkeypatch.undo()
    assert freezer.thaw_all(WAIT_S) == [mine]
    assert not marked(node, mine)


def test_who_starts_again_thaws_what_its_earlier_life_froze(node: Host, freezer: Freezer) -> None:
    mine, paused, running = (node.container() for _ in range(3))
    process = node.echo(mine)
    freezer.freeze(mine, WAIT_S)
    pause(node, paused)

    again = Freezer(node.tree)
    assert again.thaw_all(WAIT_S) == [mine]
    tell(process, b"back\n")
    assert heard(process) == b"back\n"
    assert eventually(lambda: again.state(paused) is State.FROZEN)
    assert again.state(running) is State.THAWED
    assert again.thaw_all(WAIT_S) == []


def test_one_that_cannot_be_thawed_does_not_keep_others(
    node: Host, freezer: Freezer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sorted(node.container() for _ in range(2))
    for each in (first, second):
        freezer.freeze(each, WAIT_S)
    whole = Freezer.thaw

    def fails_once(self: Freezer, cgroup: ContainerCgroup, within_s: float) -> State:
        if cgroup == first:
            raise CgroupError("no luck with the first")
        return whole(self, cgroup, within_s)

    monkeypatch.setattr(Freezer, "thaw", fails_once)
    with pytest.raises(CgroupError, match="may still be frozen: no luck with the first"):
        freezer.thaw_all(WAIT_S)
    assert freezer.state(second) is State.THAWED


def test_who_was_paused_by_somebody_else_stays_so(node: Host, freezer: Freezer) -> None:
    mine = node.container()
    node.sleeper(mine)
    pause(node, mine)
    assert eventually(lambda: freezer.state(mine) is State.FROZEN)
    with pytest.raises(CgroupError, match="frozen by somebody else"):
        freezer.freeze(mine, WAIT_S)
    assert freezer.thaw(mine, WAIT_S) is State.FROZEN


def test_waiting_for_frozen_ends(node: Host) -> None:
    """A process inside a call to a driver stops later; what was asked for stays asked for."""
    mine = node.container()
    node.sleeper(mine)
    now = [0.0]

    def pass_time(seconds: float) -> None:
        now[0] += seconds

    looks = iter([State.THAWED])
    patient = Freezer(node.tree, Timing(lambda: now[0], pass_time))
    real = Freezer.state

    class Stuck(Freezer):
        def state(self, cgroup: ContainerCgroup) -> State:
            return next(looks, State.FREEZING)

    assert Stuck(patient.tree, patient.timing).freeze(mine, 3.0) is State.FREEZING
    assert 3.0 <= now[0] < 3.1
    assert eventually(lambda: real(patient, mine) is State.FROZEN)
    assert patient.is_ours(mine)


def test_a_container_that_ended_is_no_fault(node: Host, freezer: Freezer) -> None:
    gone = node.container("cgroupfs")
    node.remove(gone)
    assert freezer.state(gone) is State.GONE
    assert freezer.freeze(gone, WAIT_S) is State.GONE
    assert freezer.thaw(gone, WAIT_S) is State.GONE
    assert Killer(freezer).kill(gone, WAIT_S)


def test_no_mark_no_freeze(node: Host, freezer: Freezer, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    mine = node.container()
    monkeypatch.setattr(os, "setxattr", refused)
    with pytest.raises(CgroupError, match="can't be marked, so it isn't frozen"):
        freezer.freeze(mine, WAIT_S)
    assert freezer.state(mine) is State.THAWED


# -- ending -------------------------------------------------------------------------------------


@pytest.mark.parametrize("frozen", ["running", "frozen by us", "paused"])
def test_all_processes_end_and_nobody_elses(node: Host, freezer: Freezer, frozen: str) -> None:
    mine, other = node.container("cgroupfs"), node.container()
    victims = [node.sleeper(mine), node.sleeper(mine, below="inner")]
    bystander = node.echo(other)
    if frozen == "frozen by us":
        freezer.freeze(mine, WAIT_S)
    if frozen == "paused":
        pause(node, mine)
    assert Killer(freezer).kill(mine, WAIT_S)
    assert [victim.wait(WAIT_S) for victim in victims] == [-9, -9]
    tell(bystander, b"alive\n")
    assert heard(bystander) == b"alive\n"


def test_a_fork_bomb_ends(node: Host, freezer: Freezer) -> None:
    """Bounded: at most 40 at a time, each replaced as soon as it ends."""
    mine = node.container()
    bomb = "n=0; while [ $n -lt 40 ]; do (while :; do sleep 0.01; done) & n=$((n+1)); done; wait"
    node.start(mine, "/bin/sh", "-c", bomb)
    folder = node.tree.folder(mine, "freezer")
    assert eventually(lambda: len(processes(folder)) > 20)
    assert Killer(freezer).kill(mine, WAIT_S)
    assert processes(folder) == []


def test_without_cgroup_kill_they_are_ended_one_by_one(
    node: Host, freezer: Freezer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels before 5.14 have no such file."""
    exists = Path.exists
    monkeypatch.setattr(Path, "exists", lambda self: self.name != "cgroup.kill" and exists(self))
    mine = node.container("cgroupfs")
    victims = [node.sleeper(mine), node.sleeper(mine, below="inner")]
    assert Killer(freezer).kill(mine, WAIT_S)
    assert [victim.wait(WAIT_S) for victim in victims] == [-9, -9]
    assert not marked(node, mine)


def test_a_number_that_went_to_another_process_is_spared(
    node: Host, freezer: Freezer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = node.container(), node.container()
    node.sleeper(mine)
    stranger = node.echo(other)
    listed = [stranger.pid]
    monkeypatch.setattr(
        "volcano_py.shim.agent.cgroup.kill.processes", lambda _: [listed.pop()] if listed else []
    )
    Killer(freezer)._round(mine, node.tree.folder(mine, "freezer"))
    tell(stranger, b"alive\n")
    assert heard(stranger) == b"alive\n"


def test_processes_of_another_pid_namespace_are_told(
    node: Host, freezer: Freezer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = node.container()
    monkeypatch.setattr("volcano_py.shim.agent.cgroup.kill.processes", lambda _: [0])
    with pytest.raises(CgroupError, match="run with hostPID"):
        Killer(freezer)._round(mine, node.tree.folder(mine, "freezer"))
    assert freezer.state(mine) is State.THAWED


def test_a_wait_without_time_looks_once() -> None:
    assert REAL.until(lambda: True, 0.0)
    assert not REAL.until(lambda: False, 0.0)
