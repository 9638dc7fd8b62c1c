"""The keeper whole: pretend cards, real processes in real cgroups, a keeper that is ended in every way."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import subprocess
import threading
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.agent.cgroup.hosts import WAIT_S, eventually
from tests.agent.keeper.conftest import GPU, Node, busy_until
from tests.shim.harness import build_library
from tests.shim.stub.state import MIB
from volcano_py.shim.agent import region
from volcano_py.shim.agent.cgroup.files import processes
from volcano_py.shim.agent.cgroup.freezer import MARK, Freezer, State
from volcano_py.shim.agent.cgroup.names import ContainerCgroup
from volcano_py.shim.agent.hand import Hand
from volcano_py.shim.agent.keeper import Keeper, Watch
from volcano_py.shim.agent.overuse import Act, Kind
from volcano_py.shim.agent.readings import Reading
from volcano_py.shim.agent.tenants import Tenant


def line_of(keeper: subprocess.Popen[str]) -> str:
    assert keeper.stdout is not None
    said = keeper.stdout.readline().strip()
    assert said, f"the keeper ended with {keeper.wait()}"
    return said


def figures(keeper: subprocess.Popen[str]) -> dict[str, dict[tuple[str, ...], float]]:
    """What Prometheus reads: by name, then by the values of the labels in the order of their names."""
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    keeper.stdin.write("metrics\n")
    keeper.stdin.flush()
    text = ""
    while (line := keeper.stdout.readline()) != "# END\n":
        assert line, f"the keeper ended with {keeper.wait()}"
        text += line
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            of_name = found.setdefault(sample.name, {})
            of_name[tuple(value for _, value in sorted(sample.labels.items()))] = sample.value
    return found


def test_who_goes_around_the_library_is_told_and_ended(node: Node) -> None:
    cheats, honest = node.tenant("cheats"), node.tenant("honest")
    with node.program(cheats) as cheat, node.program(honest) as other:
        assert cheat.take("x", 300) == 0
        assert other.take("x", 100) == 0
        keeper = node.keeper(answer="kill")
        said = line_of(keeper)
        assert cheat.process.wait(WAIT_S) == -9
        assert node.driver.used_bytes(0) == 100 * MIB
        assert other.take("y", 0) in (0, 1)
    held = f"main holds 300 MiB of 100 MiB on {GPU}; its processes are ended"
    assert said == f"CardMemoryOveruseKilled|ns/cheats/main|{held}"


def test_an_event_and_nothing_more(node: Node) -> None:
    cheats = node.tenant("cheats")
    with node.program(cheats) as cheat:
        assert cheat.take("x", 300) == 0
        keeper = node.keeper()
        assert line_of(keeper).startswith("CardMemoryOveruse|ns/cheats/main|main holds 300 MiB of 100 MiB")
        assert cheat.code("give x") == 0
        assert line_of(keeper) == "CardMemoryOveruseEnded|ns/cheats/main|main is within its slices again"


def test_the_lower_one_is_stopped_and_runs_again_at_the_end(node: Node) -> None:
    freezer = Freezer(node.host.tree)
    low, high = node.tenant("low"), node.tenant("high", priority=0)
    with node.program(low) as lower, node.program(high) as higher:
        keeper = node.keeper(way="freeze")
        assert busy_until(lambda: freezer.state(low) is State.FROZEN, lower, higher)
        assert freezer.state(high) is State.THAWED
        keeper.terminate()
        assert keeper.wait(WAIT_S) == 0
        assert eventually(lambda: freezer.state(low) is State.THAWED)
        assert not freezer.is_ours(low)


def test_whom_a_killed_keeper_left_stopped_the_next_one_lets_go(node: Node) -> None:
    freezer = Freezer(node.host.tree)
    low, high = node.tenant("low"), node.tenant("high", priority=0)
    with node.program(low) as lower, node.program(high) as higher:
        keeper = node.keeper(way="freeze", idle_s=600.0)
        assert busy_until(lambda: freezer.state(low) is State.FROZEN, lower, higher)
        keeper.kill()
        keeper.wait(WAIT_S)
        assert freezer.state(low) is State.FROZEN
        node.keeper(way="off")
        assert eventually(lambda: freezer.state(low) is State.THAWED and not freezer.is_ours(low))
        assert lower.hear() == ["0"]


def storm(node: Node, rounds: int, seed: int) -> None:
    """Kills keepers that freeze and thaw all the time, anywhere; then lets one put things right."""
    freezer, dice = Freezer(node.host.tree), random.Random(seed)
    cgroups = [node.tenant("low"), node.tenant("lower", priority=2), node.tenant("high", priority=0)]
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(node.program(each)) for each in cgroups]
        for _ in range(rounds):
            keeper = node.keeper(way="freeze", most_s=dice.choice((0.1, 0.4)))
            assert busy_until(lambda: any(map(freezer.is_ours, cgroups)), *programs)
            end = time.monotonic() + dice.uniform(0, 0.6)
            assert busy_until(lambda: time.monotonic() > end, *programs)  # noqa: B023
            keeper.kill()
            keeper.wait(WAIT_S)
            stopped = [each for each in cgroups if freezer.state(each) is not State.THAWED]
            assert all(map(freezer.is_ours, stopped)), f"seed {seed}: a freeze that nobody knows to be ours"
        node.keeper(way="off")
        for each in cgroups:
            assert eventually(lambda: freezer.state(each) is State.THAWED and not freezer.is_ours(each))  # noqa: B023
        assert all(program.process.poll() is None for program in programs)


def test_killed_anywhere_a_keeper_leaves_no_freeze_that_stays(node: Node) -> None:
    storm(node, rounds=3, seed=3)


@pytest.mark.long
def test_killed_anywhere_a_hundred_times(node: Node) -> None:
    storm(node, rounds=100, seed=4)


def test_who_holds_no_slice_any_more_is_let_go(node: Node) -> None:
    """Its pod was deleted by force while it was stopped; v1 can't even end it then."""
    freezer = Freezer(node.host.tree)
    stopped, paused = node.host.container(), node.host.container()
    process = node.host.sleeper(stopped)
    freezer.freeze(stopped, WAIT_S)
    freezer.freeze(paused, WAIT_S)
    os.removexattr(node.host.tree.folder(paused, "freezer"), MARK)
    watch = Watch(cgroups=node.host.tree.root, devices=node.folder, kubelet_roots=(node.host.name,))
    keeper = Keeper(watch, tuple, nobody_tells, cards=tuple)
    asyncio.run(keeper.round())
    assert eventually(lambda: freezer.state(stopped) is State.THAWED)
    assert freezer.state(paused) is State.FROZEN
    assert process.poll() is None


def test_a_driver_that_hangs_keeps_nobody_stopped(node: Node) -> None:
    """Whom an earlier keeper left stopped is let go before the driver is asked anything."""
    freezer, hangs = Freezer(node.host.tree), threading.Event()
    stopped = node.host.container()
    freezer.freeze(stopped, WAIT_S)
    watch = Watch(cgroups=node.host.tree.root, devices=node.folder, kubelet_roots=(node.host.name,))

    def cards() -> tuple[Reading, ...]:
        hangs.wait()
        return ()

    keeper = Keeper(watch, tuple, nobody_tells, cards)

    async def life() -> None:
        work = asyncio.create_task(keeper.run())
        try:
            assert await asyncio.to_thread(eventually, lambda: freezer.state(stopped) is State.THAWED)
        finally:
            hangs.set()
            work.cancel()

    asyncio.run(life())


def act(kind: Kind, cgroup: ContainerCgroup) -> Act:
    return Act(kind, Tenant(cgroup.pod_uid, cgroup.container_id, "ns", "p", "main", {}), "why", "why")


def test_after_the_end_nobody_is_stopped_any_more(node: Node) -> None:
    """A round may be under way in its thread when the agent ends."""
    mine = node.host.container()
    hand = Hand(Freezer(node.host.tree), 1.0)
    hand.freezer.freeze(mine, WAIT_S)
    assert hand.close() == [mine]
    cgroups = {(mine.pod_uid, mine.container_id): mine}
    assert hand.carry_out([act(Kind.FREEZE, mine), act(Kind.KILL, mine)], cgroups) == []
    assert hand.freezer.state(mine) is State.THAWED
    assert set(hand.done.values()) == {0}


def test_an_act_that_fails_keeps_no_other_from_being_done(node: Node) -> None:
    paused, mine = node.host.container(), node.host.container()
    hand = Hand(Freezer(node.host.tree), 1.0)
    hand.freezer.freeze(paused, WAIT_S)
    os.removexattr(node.host.tree.folder(paused, "freezer"), MARK)
    cgroups = {(each.pod_uid, each.container_id): each for each in (paused, mine)}
    acts = [act(Kind.FREEZE, paused), act(Kind.BLOCK, paused), act(Kind.FREEZE, mine)]
    failed = hand.carry_out(acts, cgroups)
    assert [each.act for each in failed] == acts[:2]
    assert "frozen by somebody else" in failed[0].error
    assert "no region" in failed[1].error
    assert eventually(lambda: hand.freezer.state(mine) is State.FROZEN)


async def nobody_tells(*_: object) -> None:
    raise AssertionError("nobody is there to be told about")


def test_nobody_stays_stopped_for_long(node: Node) -> None:
    freezer = Freezer(node.host.tree)
    low, high = node.tenant("low"), node.tenant("high", priority=0)
    with node.program(low) as lower, node.program(high) as higher:
        node.keeper(way="freeze", most_s=0.5)
        for state in (State.FROZEN, State.THAWED, State.FROZEN):
            assert busy_until(lambda: freezer.state(low) is state, lower, higher)  # noqa: B023


def test_launches_of_the_lower_one_are_held(node: Node) -> None:
    file = node.folder / "region"
    region.create(file, [region.DeviceLimit(GPU, 100 * MIB, 50)])
    low, high = node.tenant("low", region=str(file)), node.tenant("high", priority=0)
    with node.program(low), node.program(high) as higher:
        node.keeper(way="block")
        assert busy_until(lambda: region.read(file).blocked_until_ns > 0, higher)
        assert Freezer(node.host.tree).state(low) is State.THAWED
        # It runs out by itself.
        assert eventually(lambda: region.read(file).blocked_until_ns < time.monotonic_ns())


def test_a_launch_of_the_lower_one_waits_in_the_library(node: Node) -> None:
    """Though nothing limits its time: from the card's use by the higher one to the launch that is held."""
    build_library()
    file = node.folder / "region"
    region.create(file, [region.DeviceLimit(GPU, 100 * MIB)], priority=1)
    low, high = node.tenant("low", region=str(file)), node.tenant("high", priority=0)
    with node.program(low, file) as lower, node.program(high) as higher:
        node.keeper(way="block")

        def has_waited() -> bool:
            assert lower.code("launch cuLaunchKernel 10 100 1") == 0
            return region.read(file).devices[0].throttled_ns > 0

        assert busy_until(has_waited, higher)


def test_only_the_own_cards_file_can_be_opened(node: Node) -> None:
    if not os.access("/dev/zero", os.R_OK):
        pytest.skip("there is no /dev/zero")
    for number, minor in enumerate((5, 7)):  # zero and full play the cards
        os.mknod(node.folder / f"nvidia{number}", 0o20666, os.makedev(1, minor))
    mine, other = node.tenant("mine"), node.host.container()
    node.keeper()

    def opens(cgroup: ContainerCgroup) -> list[str]:
        script = 'for n in 0 1; do (: < "$1/nvidia$n") && echo $n; done'
        process = node.host.start(cgroup, "/bin/sh", "-c", f"exec 2>&-; {script}", "sh", str(node.folder))
        return process.communicate(timeout=WAIT_S)[0].decode().split()

    assert eventually(lambda: opens(mine) == ["0"])
    assert opens(other) == ["0", "1"]


def test_figures_of_slices_and_cards(node: Node) -> None:
    file = node.folder / "region"
    region.create(file, [region.DeviceLimit(GPU, 100 * MIB, 50)])
    mine = node.tenant("mine", region=str(file))
    no_slice = node.host.container()
    with node.program(mine) as one, node.program(no_slice) as two, node.program(None) as three:
        for program, mib in ((one, 60), (two, 7), (three, 5)):
            assert program.take("x", mib) == 0
        keeper = node.keeper(over_s=600)
        told: dict[str, dict[tuple[str, ...], float]] = {}

        def has_looked() -> bool:
            """A look that is older than a second is not told."""
            told.update(figures(keeper))
            return "volcano_py_card_slices" in told

        assert eventually(has_looked)
    # card, container, namespace, node, pod, queue
    slice_ = (GPU, "main", "ns", "n1", "mine", "ml")
    assert told["volcano_py_slice_memory_used_bytes"] == {slice_: 60 * MIB}
    assert told["volcano_py_slice_memory_limit_bytes"] == {slice_: 100 * MIB}
    assert told["volcano_py_slice_cores_limit_ratio"] == {slice_: 0.5}
    assert told["volcano_py_slice_memory_charged_bytes"] == {slice_: 0}
    assert told["volcano_py_slice_refused_allocations_total"] == {slice_: 0}
    card = (GPU, "0", "n1", "NVIDIA A100-SXM4-80GB")
    assert told["volcano_py_card_memory_used_bytes"] == {card: 72 * MIB}
    assert told["volcano_py_card_memory_unowned_bytes"] == {
        (*card, "pod"): 7 * MIB,
        (*card, "outside"): 5 * MIB,
        (*card, "unclear"): 0,
    }
    assert told["hami_vgpu_memory_used_bytes"] == {("main", GPU, "ns", "mine", "0", "vGPU"): 60 * MIB}
    assert told["volcano_py_keeper_failures_total"] == {(): 0}


@pytest.mark.parametrize(
    "before", [(), ("unshare", "--pid", "--fork", "--kill-child")], ids=["", "pid namespace"]
)
def test_the_library_is_told_its_processes_numbers_on_the_host(node: Node, before: tuple[str, ...]) -> None:
    build_library()
    file = node.folder / "region"
    region.create(file, [region.DeviceLimit(GPU, 100 * MIB, 50)])
    mine = node.tenant("mine", region=str(file))
    with node.program(mine, file, *before) as program:
        assert program.take("x", 60) == 0
        (there,) = [pid for pid in processes(node.host.tree.folder(mine, "freezer")) if on_card(pid)]
        node.keeper()
        assert eventually(lambda: region.read(file).processes[0].host_pid is not None)
        (noted,) = region.read(file).processes
    assert noted.host_pid == there
    assert (noted.pid == there) == (not before)
    assert noted.used_bytes == (60 * MIB,)


def on_card(pid: int) -> bool:
    """Whether the process is the program, and not who began it."""
    return Path(f"/proc/{pid}/comm").read_text().strip() == "probe"
