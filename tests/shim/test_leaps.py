"""Threads that leave a call in the middle, by a jump or cancelled; and signal handlers that call."""

import signal

import pytest

from tests.shim.harness import OUT_OF_MEMORY, Probe, Slice, agree
from tests.shim.stub import build
from tests.shim.test_processes import until


@pytest.mark.parametrize(
    ("how", "slow", "handlers"),
    [("jump", -1, -1), ("call", 0, OUT_OF_MEMORY), ("aside", 0, OUT_OF_MEMORY), ("cancel", 0, -1)],
)
def test_who_leaves_a_call_in_the_middle_is_held_from_then_on(
    pod: Slice, how: str, slow: int, handlers: int
) -> None:
    """What it had reserved is freed again where the driver, as NVML tells, never gave it."""
    slow_call = pod.driver.fail("cuMemAllocManaged", 0, delay_us=2_000_000 if how == "cancel" else 60_000_000)
    with Probe(pod.start([build.build() / "leaper", how])) as leaper:
        until(lambda: slow_call.calls == 1)
        if how == "cancel":
            leaper.tell("")
        else:
            leaper.process.send_signal(signal.SIGUSR1)
        told = [int(word) for word in leaper.hear()]
        assert told == [slow, handlers, OUT_OF_MEMORY, OUT_OF_MEMORY, 0]
        agree(pod)
        assert pod.held() == (600 if how == "jump" else 1000) << 20
        leaper.tell("")
