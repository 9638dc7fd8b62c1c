"""A card's utilization is what the slice's own processes use of it; that of neighbours isn't shown."""

import time

from tests.shim.harness import DEADLINE_S, Probe, Slice

SCRIPT = (
    "import pynvml as n\n"
    "n.nvmlInit()\n"
    "rates = n.nvmlDeviceGetUtilizationRates(n.nvmlDeviceGetHandleByIndex(0))\n"
    "print(rates.gpu, rates.memory)\n"
)


def test_the_rate_of_neighbours_is_not_shown(pod: Slice, probe: Probe) -> None:
    """A neighbour launches a kernel of minutes: the card is busy, and the slice is not."""
    with pod.probe(changes={"LD_PRELOAD": "", "STUB_CONTAINER": ""}) as stranger:
        stranger.start()
        assert stranger.ask("launch cuLaunchKernel 100000000 108 1") == ["0"]
        assert wait_until_busy(pod, {"LD_PRELOAD": ""})
        assert pod.python(SCRIPT) == "0 0"
        stranger.kill()


def test_the_own_rate_is_shown(pod: Slice, probe: Probe) -> None:
    assert probe.ask("launch cuLaunchKernel 100000000 108 1") == ["0"]
    assert wait_until_busy(pod, {})
    probe.kill()


def wait_until_busy(pod: Slice, changes: dict[str, str]) -> bool:
    """Whether NVML says, in time, that the card is half busy or more."""
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        if int(pod.python(SCRIPT, changes).split()[0]) >= 50:
            return True
    return False
