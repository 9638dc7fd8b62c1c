"""The core limit, in the stub driver's time: programs that want the whole card get their share of it.

The clock jumps whenever all programs sleep: ten seconds of a card take a moment, whatever the load.
"""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.shim.harness import DEADLINE_S, LIBRARY, Slice, one_slice
from tests.shim.stub import build
from tests.shim.stub.state import MIB, Card, Clock, Container, Driver, card_uuid
from volcano_py.shim.agent import region
from volcano_py.shim.agent.region import CorePolicy, DeviceLimit

SECONDS = 10
ROUTES = (
    "cuLaunchKernel",
    "cuLaunchKernel_ptsz",
    "cuLaunchKernelEx",
    "cuLaunchKernelEx_ptsz",
    "cuLaunchCooperativeKernel",
    "cuLaunchCooperativeKernel_ptsz",
    "cuLaunchCooperativeKernelMultiDevice",
    "cuGraphLaunch",
    "cuGraphLaunch_ptsz",
)


@dataclass(frozen=True)
class Timed:
    """A container whose programs live in the jumping clock."""

    slice_: Slice
    clock: Clock

    def command(
        self,
        route: str,
        wave_us: int,
        blocks: int,
        mode: str = "async",
        device: int = 0,
        *,
        seconds: int = SECONDS,
    ) -> list[str]:
        """A program that launches for so many seconds after one of running in."""
        spin = str(build.build() / "spin")
        return [spin, route, str(wave_us), str(blocks), str(seconds), mode, str(device)]

    @property
    def changes(self) -> dict[str, str]:
        """What puts a program in the clock; the clock comes before the library."""
        preload = f"{build.build() / 'libclock.so'}:{LIBRARY}"
        return {"STUB_CLOCK": str(self.clock.path), "LD_PRELOAD": preload}

    def start(self, route: str, wave_us: int, blocks: int, seconds: int = SECONDS) -> "subprocess.Popen[str]":
        """Starts such a program."""
        return self.slice_.start(self.command(route, wave_us, blocks, seconds=seconds), self.changes)

    def share(self, route: str, wave_us: int, blocks: int, mode: str = "async", device: int = 0) -> float:
        """The percentage of the card's time that the program's kernels had."""
        told = self.slice_.run(self.command(route, wave_us, blocks, mode, device), self.changes)
        return _percent(told.splitlines()[0])


def _percent(line: str) -> float:
    _, busy, elapsed = (int(word) for word in line.split())
    return 100 * busy / elapsed


MakeTimed = Callable[..., Timed]


@pytest.fixture
def timed(library: Path, tmp_path: Path) -> Iterator[MakeTimed]:
    """Makes a container in the clock, with a core limit."""
    with ExitStack() as stack:

        def make(
            cores: int, *, sms: int = 108, cards: int = 1, policy: CorePolicy = CorePolicy.ALWAYS
        ) -> Timed:
            slice_ = stack.enter_context(
                one_slice(
                    tmp_path,
                    (1024,) * cards,
                    cards=[Card(sms=sms)] * cards
                    if cards == 1
                    else [Card(card_uuid(i), sms=sms) for i in range(cards)],
                    cores=cores,
                    policy=policy,
                )
            )
            return Timed(slice_, stack.enter_context(Clock(tmp_path / "clock")))

        yield make


@pytest.mark.parametrize("cores", [10, 25, 50, 75])
@pytest.mark.parametrize(("wave_us", "blocks"), [(1000, 108), (50, 108), (20000, 1), (400, 1080)])
def test_the_share_is_within_five_points_of_what_was_asked(
    timed: MakeTimed, cores: int, wave_us: int, blocks: int
) -> None:
    assert timed(cores).share("cuLaunchKernel", wave_us, blocks) == pytest.approx(cores, abs=5)


@pytest.mark.parametrize("route", ROUTES)
def test_no_way_to_launch_escapes(timed: MakeTimed, route: str) -> None:
    assert timed(25).share(route, 500, 216) == pytest.approx(25, abs=5)


@pytest.mark.parametrize("cores", [25, 50])
def test_a_program_that_waits_for_each_launch_is_held_too(timed: MakeTimed, cores: int) -> None:
    assert timed(cores).share("cuLaunchKernel", 2000, 108, "sync") == pytest.approx(cores, abs=5)


@pytest.mark.parametrize("sms", [20, 80, 188])
@pytest.mark.parametrize("cores", [30, 50])
def test_small_and_big_cards_alike(timed: MakeTimed, sms: int, cores: int) -> None:
    assert timed(cores, sms=sms).share("cuLaunchKernel", 1000, sms) == pytest.approx(cores, abs=5)


def test_each_card_of_a_container_is_held(timed: MakeTimed) -> None:
    container = timed(30, cards=2)
    for device in (0, 1):
        assert container.share("cuLaunchKernel", 1000, 108, device=device) == pytest.approx(30, abs=5)


@pytest.mark.parametrize("cores", [0, 100])
def test_without_a_limit_the_whole_card_is_had(timed: MakeTimed, cores: int) -> None:
    assert timed(cores).share("cuLaunchKernel", 1000, 108) > 95


def test_never_means_never_and_shared_means_when_others_are_there(timed: MakeTimed) -> None:
    assert timed(20, policy=CorePolicy.NEVER).share("cuLaunchKernel", 1000, 108) > 95


def test_a_container_alone_on_its_card_may_use_all_of_it_where_limits_are_shared(timed: MakeTimed) -> None:
    assert timed(20, policy=CorePolicy.SHARED).share("cuLaunchKernel", 1000, 108) > 90


def test_where_limits_are_shared_a_busy_neighbour_makes_them_hold(library: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        names = {"asked": CorePolicy.SHARED, "neighbour": CorePolicy.ALWAYS}
        containers = [Container(name, (1024,)) for name in names]
        driver = stack.enter_context(Driver.create(tmp_path / "state", [Card()], containers))
        clock = stack.enter_context(Clock(tmp_path / "clock", parties=2))
        programs = []
        for name, policy in names.items():
            file = tmp_path / f"region-{name}"
            region.create(file, [DeviceLimit(card_uuid(0), 1024 * MIB, 30)], policy=policy)
            container = Timed(Slice(driver, name, file, tmp_path), clock)
            programs.append(container.start("cuLaunchKernel", 1000, 108, 4 * SECONDS))
        told = [program.communicate(timeout=DEADLINE_S)[0].splitlines() for program in programs]
    assert _percent(told[0][1]) == pytest.approx(30, abs=10)


def test_without_utilisation_data_the_limit_still_holds(timed: MakeTimed) -> None:
    container = timed(25)
    container.slice_.driver.raw.card[0].hide_utilisation = 1
    assert container.share("cuLaunchKernel", 1000, 108) < 60


def test_processes_of_a_container_share_its_part(timed: MakeTimed) -> None:
    container = timed(40)
    container.clock.raw.missing = 3
    start = container.clock.now_ns
    programs = [container.start("cuLaunchKernel", 1000, 108) for _ in range(3)]
    for program in programs:
        program.communicate(timeout=DEADLINE_S)
    busy = container.slice_.driver.container("pod").busy_ns[0]
    assert 100 * busy / (container.clock.now_ns - start) == pytest.approx(40, abs=5)


def test_throttled_time_and_launches_are_told(timed: MakeTimed) -> None:
    container = timed(25)
    container.share("cuLaunchKernel", 1000, 108)
    use = region.read(container.slice_.region).devices[0]
    assert use.launches == container.slice_.driver.container("pod").launches
    assert use.throttled_ns > 5 * 10**9


def test_the_agents_stop_word_holds_launches_and_runs_out_by_itself(timed: MakeTimed) -> None:
    container = timed(0)
    until = container.clock.now_ns + 5 * 10**9
    region.block(container.slice_.region, until)
    told = container.slice_.run(container.command("cuLaunchKernel", 1000, 108, "async"), container.changes)
    launches, _, elapsed = (int(word) for word in told.splitlines()[0].split())
    assert container.clock.now_ns > until
    assert launches > 9000
    assert elapsed == pytest.approx(SECONDS * 10**9, rel=0.15)


def test_two_containers_on_one_card_get_their_parts(library: Path, tmp_path: Path) -> None:
    cores = {"low": 25, "high": 50}
    with ExitStack() as stack:
        containers = [Container(name, (1024,)) for name in cores]
        driver = stack.enter_context(Driver.create(tmp_path / "state", [Card()], containers))
        clock = stack.enter_context(Clock(tmp_path / "clock", parties=2))
        programs = []
        for name, percent in cores.items():
            file = tmp_path / f"region-{name}"
            region.create(file, [DeviceLimit(card_uuid(0), 1024 * MIB, percent)])
            container = Timed(Slice(driver, name, file, tmp_path), clock)
            programs.append(container.start("cuLaunchKernel", 1000, 108, 4 * SECONDS))
        told = [program.communicate(timeout=DEADLINE_S)[0].splitlines() for program in programs]
        shares = [_percent(lines[1]) for lines in told]
    assert shares == [pytest.approx(percent, abs=5) for percent in cores.values()]
