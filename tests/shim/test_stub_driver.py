"""The CUDA half of the stub driver, by itself: a wrong oracle would prove nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shim.harness import FAMILIES, INVALID_VALUE, OUT_OF_MEMORY, WAYS, Probe, Slice, one_slice
from tests.shim.stub import build
from tests.shim.stub.state import MIB, Card, Clock


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Slice]:
    """A container without the library, of 1 GiB on each of two cards of 2 GiB."""
    cards = [Card(memory_mib=2048, context_mib=100, module_kib=512), Card(memory_mib=2048)]
    with one_slice(tmp_path, (1024, 1024), cards=cards) as slice_:
        slice_.extra["LD_PRELOAD"] = ""
        yield slice_


@pytest.fixture
def probe(bare: Slice) -> Iterator[Probe]:
    with bare.probe() as probe:
        yield probe.start(1)


@pytest.mark.parametrize("way", WAYS)
def test_every_family_takes_and_gives_in_every_way(bare: Slice, way: str) -> None:
    with bare.probe(way) as probe:
        probe.start(1)
        for family in FAMILIES:
            assert probe.ask(f"take x {family} {64 * MIB}") == ["0", "clean"], family
            assert bare.held(1) == 64 * MIB, family
            assert probe.code("give x") == 0, family
            assert bare.held(1) == 0, family
            assert probe.ask(f"take x {family} {2050 * MIB}") == [str(OUT_OF_MEMORY), "clean"], family
    assert bare.driver.violations == 0


def test_what_a_killed_process_held_is_free_at_once(bare: Slice, probe: Probe) -> None:
    assert probe.take("x", 1000) == 0
    probe.kill()
    with bare.probe() as next_one:
        assert next_one.start(1).take("x", 1024) == 0
        assert bare.held(1) == 1024 * MIB
    assert bare.driver.violations == 0


def test_more_than_the_containers_limit_is_written_down(bare: Slice, probe: Probe) -> None:
    assert probe.take("x", 1000) == 0
    with bare.probe() as other:
        assert other.start(1).take("x", 25) == 0
    assert bare.driver.violations == 1
    assert bare.driver.container("pod").worst_bytes == MIB


def test_contexts_take_memory_once_and_give_it_back(bare: Slice) -> None:
    with bare.probe() as probe:
        probe.start(0)
        assert probe.code("retain 0") == 0
        assert bare.held() == 100 * MIB
        assert probe.take("x", 50) == 0
        assert [probe.code("device_call cuDevicePrimaryCtxRelease_v2 0") for _ in range(3)] == [0, 0, 201]
        assert bare.held() == 0
        assert probe.take("x", 1) == 201


def test_a_mapping_keeps_released_memory(bare: Slice, probe: Probe) -> None:
    assert probe.take("x", 4, "mapped") == 0
    assert bare.held(1) == 4 * MIB
    assert probe.code("give x") == 0
    assert bare.held(1) == 0


def test_faults_and_unknown_frees(bare: Slice, probe: Probe) -> None:
    bare.driver.fail("cuMemAlloc_v2", 999, first=2, times=1)
    assert [probe.take(name, 1) for name in "abc"] == [0, 999, 0]
    assert probe.code(f"give_address alloc {12345 * 512} 0") == INVALID_VALUE
    assert bare.held(1) == 2 * MIB


def test_a_forked_child_starts_with_nothing(bare: Slice, probe: Probe) -> None:
    assert probe.take("x", 100) == 0
    for kind in ("exit", "_exit", "exec", "vfork", "clone"):
        assert probe.ask(f"fork {kind}") == ["done"]
    assert bare.held(1) == 100 * MIB
    assert int(probe.ask("child")[0]) > 0
    assert probe.take("y", 1) == 3
    probe.start(1)
    assert probe.take("y", 50) == 0
    assert sorted(holder.used_bytes[1] for holder in bare.driver.holders()) == [50 * MIB, 100 * MIB]


def test_visible_devices_number_the_cards(bare: Slice) -> None:
    for visible in ("1", bare.driver.raw.card[1].uuid.decode(), bare.driver.raw.card[1].uuid.decode()[:12]):
        with bare.probe(changes={"CUDA_VISIBLE_DEVICES": visible}) as probe:
            probe.start(0)
            assert probe.take("x", 10) == 0
            assert (bare.held(0), bare.held(1)) == (0, 10 * MIB)
            assert probe.code("retain 1") == 101


def test_launches_keep_the_card_for_their_waves(bare: Slice, probe: Probe) -> None:
    sms = bare.driver.raw.card[1].sms
    assert probe.code(f"launch cuLaunchKernel 2000 {sms} 3") == 0
    assert probe.code(f"launch cuLaunchKernel_ptsz 1000 {sms + 1} 1") == 0
    assert bare.driver.container("pod").busy_ns[1] == 8_000_000


def test_the_jumping_clock_makes_a_busy_card_of_ten_seconds_in_a_moment(bare: Slice, tmp_path: Path) -> None:
    with Clock(tmp_path / "clock") as clock:
        changes = {"LD_PRELOAD": str(build.build() / "libclock.so"), "STUB_CLOCK": str(clock.path)}
        told = bare.run([build.build() / "spin", "cuLaunchKernel", "1000", "108", "10", "sync"], changes)
        launches, busy, elapsed = map(int, told.splitlines()[0].split())
    assert launches == pytest.approx(10000, abs=20)
    assert elapsed == pytest.approx(busy, rel=0.001)


def test_a_storm_ends_with_nothing_held(bare: Slice) -> None:
    for card in range(2):  # the oracle looks twice at who is over a limit, which takes two seconds each time
        bare.driver.container("pod").limit_bytes[card] = 0
    told = bare.run([build.build() / "storm", "7", "3", "300", "40", "2"]).split()
    assert told[:2] == ["ready", "done"]
    assert int(told[2]) > 100
    assert bare.held(0) == bare.held(1) == 0
