"""Ways out of a container's slice, in a container that has the library as the agent mounts it.

A mount namespace with ``/etc/ld.so.preload``, read-only, and the region at its place, as the kubelet's answer
lays them out. What is not held here is said in docs/shim.md.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.shim.harness import build_library, can_unshare
from tests.shim.scripts import lines_of
from tests.shim.stub import build
from tests.shim.stub.state import MIB, Card, Driver, card_uuid
from volcano_py.shim.agent import region

CARD_MIB = 4096
SLICE_MIB = 1024
NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
ENTER = """
set -e
mount --bind "$1/etc" /etc
mount -o remount,bind,ro /etc
mount -t tmpfs none /usr/local
mkdir /usr/local/vgpu
mount --bind "$1/vgpu" /usr/local/vgpu
shift
exec "$@"
"""


@dataclass
class Container:
    """What a container sees, below *folder*: a driver's libraries, and programs."""

    driver: Driver
    folder: Path

    def run(self, *command: str | Path, **environment: str) -> str:
        """What *command* prints in the container, as root."""
        found = self.driver.environment(self.folder)
        return "\n".join(
            lines_of(
                ["unshare", "--mount", "sh", "-c", ENTER, "sh", self.folder, *command],
                {"PATH": os.environ["PATH"], **found, **environment},
            )
        )


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    if not can_unshare("--mount", "mount", "-t", "tmpfs", "none", "/mnt"):
        pytest.skip("a mount namespace takes root with CAP_SYS_ADMIN")
    place = tmp_path / "container"
    (place / "vgpu" / "slice").mkdir(parents=True)
    shutil.copytree("/etc", place / "etc", symlinks=True, ignore_dangling_symlinks=True)
    (place / "etc" / "ld.so.preload").write_text("/usr/local/vgpu/libvgpu.so\n")
    shutil.copy(build_library(), place / "vgpu" / "libvgpu.so")
    built = build.build()
    for name in ("libcuda.so.1", "libnvidia-ml.so.1", "taker"):
        shutil.copy(built / name, place / name)
    limits = [region.DeviceLimit(card_uuid(0), SLICE_MIB * MIB, 0)]
    region.create(place / "vgpu" / "slice" / "region", limits)
    for folder in (place, *place.parents):  # other users come by here
        if folder.is_relative_to(tmp_path.parents[1]):
            folder.chmod(folder.stat().st_mode | 0o055)
    with Driver.create(place / "cards", [Card(memory_mib=CARD_MIB)]) as driver:
        (place / "cards").chmod(0o666)
        yield Container(driver, place)
        assert driver.violations == 0


def test_a_program_that_does_nothing_about_it_is_held(container: Container) -> None:
    assert container.run(container.folder / "taker", "libcuda.so.1") == str(SLICE_MIB)


@pytest.mark.parametrize("how", ["clear", "fork"])
def test_children_and_programs_without_an_environment_are_held(container: Container, how: str) -> None:
    held = container.run(container.folder / "taker", container.folder / "libcuda.so.1", how)
    assert held == {"clear": f"{SLICE_MIB}", "fork": f"{SLICE_MIB} 0"}[how]


def test_variables_change_nothing(container: Container) -> None:
    words = {"LD_PRELOAD": "", "CUDA_DISABLE_CONTROL": "true", "VOLCANO_PY_REGION": "/dev/null"}
    words |= {"CUDA_DEVICE_MEMORY_LIMIT_0": "0", "CUDA_DEVICE_MEMORY_LIMIT": "64g"}
    assert container.run(container.folder / "taker", "libcuda.so.1", **words) == str(SLICE_MIB)


def test_a_setuid_program_of_another_user_is_held(container: Container) -> None:
    program = container.folder / "taker"
    program.chmod(0o4755)
    assert container.run(*NOBODY, program, container.folder / "libcuda.so.1") == str(SLICE_MIB)


@pytest.mark.parametrize("namespace", [("--pid", "--fork"), ("--user", "--map-root-user")])
def test_namespaces_of_its_own_are_held(container: Container, namespace: tuple[str, ...]) -> None:
    command = ("unshare", *namespace, str(container.folder / "taker"), "libcuda.so.1")
    assert container.run(*command) == str(SLICE_MIB)


def test_a_copy_of_the_driver_under_another_name_is_held(container: Container) -> None:
    shutil.copy(container.folder / "libcuda.so.1", container.folder / "mine.so")
    assert container.run(container.folder / "taker", container.folder / "mine.so") == str(SLICE_MIB)


def test_the_region_can_be_broken_and_that_gets_nothing(container: Container) -> None:
    """Who cuts it short, or writes another limit into it, is refused all memory of the card."""
    file = "/usr/local/vgpu/slice/region"
    assert (
        container.run(
            "sh", "-c", f'truncate -s 100 {file}; exec "$0" libcuda.so.1', container.folder / "taker"
        )
        == "0"
    )


@pytest.mark.parametrize(("word", "taken"), [("closed\n", 0), ("open\n", CARD_MIB), ("", 0), (None, 0)])
def test_what_a_broken_region_means_is_the_agents_to_say(
    container: Container, word: str | None, taken: int
) -> None:
    """A pod that asks to have no limits then is not heard."""
    if word is not None:
        (container.folder / "vgpu" / "region-fault").write_text(word)
    breaks = 'truncate -s 100 /usr/local/vgpu/slice/region; exec "$0" libcuda.so.1'
    held = container.run(
        "sh", "-c", breaks, container.folder / "taker", VOLCANO_PY_REGION_FAULT="open" if taken == 0 else ""
    )
    assert held == str(taken)
