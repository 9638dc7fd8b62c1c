"""Broken regions, and containers without ours: closed unless told otherwise, with a word that says why."""

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.shim.harness import (
    DEADLINE_S,
    FAMILIES,
    OUT_OF_MEMORY,
    Probe,
    Slice,
    agree,
    can_unshare,
    one_slice,
)
from tests.shim.stub import build
from tests.shim.stub.state import MIB, Card, card_uuid
from volcano_py.shim.agent import region


def truncate(file: Path) -> None:
    os.truncate(file, 1000)


def empty(file: Path) -> None:
    os.truncate(file, 0)


def break_magic(file: Path) -> None:
    _write(file, 0, b"VPYQUOTB")


def raise_version(file: Path) -> None:
    _write(file, 8, struct.pack("<I", 99))


def break_header(file: Path) -> None:
    _write(file, 24, struct.pack("<I", 12))


def break_limits(file: Path) -> None:
    _write(file, 128 + 64 + 64, struct.pack("<Q", 1 << 40))


def choose_no_limits(file: Path) -> None:
    _write(file, 64, struct.pack("<I", 7))


def remove(file: Path) -> None:
    file.unlink()


def put_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def put_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _write(file: Path, offset: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(offset)
        opened.write(data)


BREAKS = [
    truncate,
    empty,
    break_magic,
    raise_version,
    break_header,
    break_limits,
    choose_no_limits,
    remove,
    put_a_folder,
    put_a_pipe,
]


def probe_with_errors(slice_: Slice, changes: dict[str, str] | None = None) -> Iterator[Probe]:
    """A probe whose standard error is kept in the slice's folder."""
    with (slice_.folder / "errors").open("w") as errors:
        words: list[str | Path] = [build.build() / "probe", "dlsym", slice_.folder / "none"]
        (slice_.folder / "none").write_text("")
        with Probe(slice_.start(words, changes, stderr=errors.fileno())) as probe:
            yield probe


@pytest.mark.parametrize("break_it", BREAKS)
def test_a_broken_region_grants_nothing_and_says_why(pod: Slice, break_it: Callable[[Path], None]) -> None:
    break_it(pod.region)
    for probe in probe_with_errors(pod):
        assert probe.code("init") == 0
        probe.tell("retain 0")
        assert int(probe.hear()[0]) in (0, OUT_OF_MEMORY)
        assert probe.code("create a 0 1 2") == OUT_OF_MEMORY
        for family in FAMILIES:
            assert int(probe.ask(f"take b {family} {2 * MIB}")[0]) != 0, family
    said = (pod.folder / "errors").read_text()
    assert str(pod.region) in said
    assert "refused" in said
    assert len(said.splitlines()) == 1
    assert pod.driver.container("pod").peak_bytes[0] == 0


@pytest.mark.parametrize("break_it", BREAKS)
def test_open_only_when_so_configured(pod: Slice, break_it: Callable[[Path], None]) -> None:
    break_it(pod.region)
    pod.driver.container("pod").limit_bytes[0] = 0
    for probe in probe_with_errors(pod, {"VOLCANO_PY_REGION_FAULT": "open"}):
        assert probe.start().take("a", 2048) == 0
    assert "without limits" in (pod.folder / "errors").read_text()


@pytest.mark.parametrize("break_it", [break_limits, choose_no_limits])
def test_limits_broken_under_a_running_program_close_it(pod: Slice, break_it: Callable[[Path], None]) -> None:
    for probe in probe_with_errors(pod):
        assert probe.start().take("a", 100) == 0
        break_it(pod.region)
        region_before = pod.held()
        _write(pod.region, 128 + 4, struct.pack("<I", 77))
        assert probe.take("b", 2) == OUT_OF_MEMORY
        assert probe.code("give a") == 0
        assert region_before == 100 * MIB
        assert pod.held() == 0


def test_garbage_in_places_that_nobody_owns_costs_nobody_anything(pod: Slice) -> None:
    slots, used = 6400, region.SIZE - 16 * 1024 * 8
    for slot in (3, 700, 1023):
        _write(pod.region, slots + 256 * slot, struct.pack("<I", 4242))
        _write(pod.region, used + 8 * slot, struct.pack("<Q", 900 * MIB))
    _write(pod.region, 68, struct.pack("<I", 1024))
    with pod.probe() as probe:
        assert probe.start().take("a", 1024) == 0
        assert int(probe.ask("info 0")[1]) == 0


@pytest.mark.parametrize("count", [150, pytest.param(20000, marks=pytest.mark.long)])
def test_no_bytes_break_a_process(pod: Slice, count: int) -> None:
    good = pod.folder / "good"
    shutil.copy(pod.region, good)
    told = pod.run(
        [build.build() / "fuzz", good, pod.region, str(count), str(count)], deadline_s=600 + count / 10
    )
    assert int(told.split()[-1]) < count


@pytest.mark.parametrize("count", [20000, pytest.param(2_000_000, marks=pytest.mark.long)])
def test_no_bytes_are_believed_that_a_checksum_covers(count: int) -> None:
    sources = [build.PROGRAMS / "fuzz_region.c", build.ROOT / "shim" / "lib" / "region.c"]
    flags = (f"-I{sources[1].parent}", "-U_GNU_SOURCE")  # the library's files define it themselves
    program = build.build_sanitized("fuzz_region", "address,undefined", sources, *flags)
    done = subprocess.run(
        [program, str(count), str(count)],
        capture_output=True,
        text=True,
        timeout=600 + count / 1000,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.fixture
def hami(library: Path, tmp_path: Path) -> Iterator[Slice]:
    """A container as HAMi's device plugin starts it: variables, and no region of ours."""
    with one_slice(tmp_path, (512, 256)) as slice_:
        slice_.region.unlink()
        slice_.extra |= {
            "CUDA_DEVICE_MEMORY_LIMIT_0": "512m",
            "CUDA_DEVICE_MEMORY_LIMIT_1": "256m",
            "CUDA_DEVICE_MEMORY_SHARED_CACHE": str(tmp_path / "cache"),
        }
        yield slice_


def bare_environment(slice_: Slice) -> dict[str, str]:
    """The container's variables without ours."""
    environment = slice_.environment()
    del environment["VOLCANO_PY_REGION"]
    return environment


def hami_probe(slice_: Slice) -> Probe:
    """A probe in a container of HAMi's."""
    (slice_.folder / "none").write_text("")
    process = subprocess.Popen(
        [build.build() / "probe", "dlsym", slice_.folder / "none"],
        env=bare_environment(slice_),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Probe(process)


def test_under_hamis_plugin_the_environment_is_the_slice(hami: Slice) -> None:
    with hami_probe(hami) as one, hami_probe(hami) as other:
        one.start(1).start(0)
        other.start(1).start(0)
        assert one.ask("info 1")[2:] == [str(512 * MIB), "0", str(256 * MIB)]
        assert one.take("a", 400) == 0
        assert other.take("b", 200) == OUT_OF_MEMORY
        assert other.take("b", 112) == 0
        assert other.code("create c 1 1 256") == 0
        assert one.code("create c 1 1 2") == OUT_OF_MEMORY
        assert hami.driver.violations == 0
    made = region.read(hami.folder / "cache.quota")
    assert not made.made_by_agent
    assert [device.limit_bytes for device in made.devices[:3]] == [512 * MIB, 256 * MIB, 0]


def test_a_region_that_the_library_makes_has_its_room_on_the_disk(hami: Slice) -> None:
    with hami_probe(hami) as probe:
        probe.start()
    assert (hami.folder / "cache.quota").stat().st_blocks * 512 >= region.SIZE


@pytest.mark.parametrize(
    ("text", "mib"), [("1g", 1024), ("524288k", 512), ("536870912", 512), ("0512m", 512)]
)
def test_hamis_spellings_of_an_amount(hami: Slice, text: str, mib: int) -> None:
    hami.extra["CUDA_DEVICE_MEMORY_LIMIT_0"] = text
    with hami_probe(hami) as probe:
        assert probe.start().ask("info 0")[2] == str(mib * MIB)


def test_our_region_is_believed_and_the_environment_is_not(pod: Slice) -> None:
    changes = {"CUDA_DEVICE_MEMORY_LIMIT_0": "16g", "CUDA_DEVICE_MEMORY_LIMIT": "16g"}
    with pod.probe(changes=changes) as probe:
        assert probe.start().ask("info 0")[2] == str(1024 * MIB)
        assert probe.take("a", 1030) == OUT_OF_MEMORY


def test_without_any_slice_the_library_is_not_in_the_way(pod: Slice) -> None:
    pod.driver.container("pod").limit_bytes[0] = 0
    (pod.folder / "none").write_text("")
    process = subprocess.Popen(
        [build.build() / "probe", "dlsym", pod.folder / "none"],
        env=bare_environment(pod),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with Probe(process) as probe:
        assert probe.start().take("a", 16000) == 0
        assert probe.ask("info 0")[2] == str(16384 * MIB)


def test_without_any_slice_a_thread_can_still_be_cancelled(pod: Slice) -> None:
    """In our functions it can't be; the first call finds out that there is nothing to do in them."""
    script = (
        "import ctypes as c\n"
        "before = c.c_int(9)\n"
        "assert c.CDLL('libcuda.so.1').cuInit(0) == 0\n"
        "c.CDLL(None).pthread_setcancelstate(0, c.byref(before))\n"
        "print(before.value)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script],
        env=bare_environment(pod),
        stdout=subprocess.PIPE,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert told.stdout == "0\n"


def test_mps_in_the_environment_changes_nothing(pod: Slice, tmp_path: Path) -> None:
    (tmp_path / "mps").mkdir()
    changes = {"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path / "mps")}
    with pod.probe(changes=changes) as one, pod.probe(changes=changes) as other:
        assert one.start().take("a", 600) == 0
        assert other.start().take("b", 600) == OUT_OF_MEMORY
        agree(pod)


def test_a_program_that_closes_every_file_is_still_counted(pod: Slice) -> None:
    told = pod.python(
        "import ctypes, os\n"
        "cuda, context, at = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p(), ctypes.c_uint64()\n"
        "cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)\n"
        "cuda.cuCtxSetCurrent(context)\n"
        "print(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(600 << 20)), flush=True)\n"
        "os.closerange(3, 65536)\n"
        "print(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(600 << 20)))\n"
        "print(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(400 << 20)))\n"
    )
    assert told.split() == ["0", "2", "0"]
    assert pod.driver.violations == 0


@pytest.mark.skipif(not can_unshare("-rmpf", "true"), reason="no permission to make PID namespaces")
def test_containers_whose_pids_are_alike(library: Path, tmp_path: Path) -> None:
    """Each program is pid 1 of its namespace; contexts, which NVML tells by the host's pids, are counted."""
    with one_slice(tmp_path, (1024,), cards=[Card(card_uuid(0), context_mib=200)]) as slice_:
        (tmp_path / "none").write_text("")
        words: list[str | Path] = [
            "unshare",
            "-rmpf",
            "--kill-child",
            build.build() / "probe",
            "dlsym",
            tmp_path / "none",
        ]
        with Probe(slice_.start(words)) as one, Probe(slice_.start(words)) as other:
            one.start()
            other.start()
            assert one.take("a", 300) == 0
            agree(slice_)
            assert slice_.held() == 700 * MIB
            assert other.take("b", 400) == OUT_OF_MEMORY
            assert other.take("b", 300) == 0
            assert [process.pid for process in region.read(slice_.region).processes] == [1, 1]


def test_a_private_copy_of_the_driver_is_held_too(pod: Slice) -> None:
    """A runtime in a namespace of its own (dlmopen) finds a copy of the library in there."""
    for mib, code, held in ((1026, OUT_OF_MEMORY, 0), (1000, 0, 1000)):
        with pod.start([build.build() / "bypass", str(mib)]) as program:
            assert program.stdout is not None
            assert program.stdout.readline() == f"{code}\n"
            agree(pod)
            assert pod.held() == held * MIB
            program.communicate("\n", timeout=DEADLINE_S)
    assert pod.driver.violations == 0


def test_what_the_library_cannot_hold_the_driver_shows_to_the_agent(pod: Slice) -> None:
    """A program without the library goes past it (docs/shim.md)."""
    with pod.start([build.build() / "bypass", "1500"], preload=False) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "0\n"
        held = {holder.pid: holder.used_bytes[0] for holder in pod.driver.holders()}
        assert held == {program.pid: 1500 * MIB}
        program.communicate("\n", timeout=DEADLINE_S)
    assert pod.driver.violations == 1
