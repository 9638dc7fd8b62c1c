"""The core limit where its measurements are poor: kernels of seconds, in the stub driver's time."""

from pathlib import Path

import pytest

from tests.shim.harness import LIBRARY, one_slice
from tests.shim.stub import build
from tests.shim.stub.state import Card, Clock

SECONDS = 200


@pytest.mark.parametrize("cores", [25, 50])
@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("wave_us", [500_000, 5_000_000])
def test_kernels_of_seconds_get_their_share_too(
    library: Path, tmp_path: Path, cores: int, mode: str, wave_us: int
) -> None:
    """Waited for or queued: what ran unseen is found out, and no queue is filled before anything is known."""
    with (
        one_slice(tmp_path, (1024,), cards=[Card()], cores=cores) as slice_,
        Clock(tmp_path / "clock") as clock,
    ):
        preload = f"{build.build() / 'libclock.so'}:{LIBRARY}"
        told = slice_.run(
            [build.build() / "spin", "cuLaunchKernel", str(wave_us), "108", str(SECONDS), mode],
            {"STUB_CLOCK": str(clock.path), "LD_PRELOAD": preload},
        )
    _, busy, elapsed = (int(word) for word in told.splitlines()[0].split())
    assert 100 * busy / elapsed == pytest.approx(cores, abs=5)
