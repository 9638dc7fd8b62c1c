"""Old files of the quota library go when nobody could mount them any more, and not before."""

from __future__ import annotations

import asyncio
import mmap
from dataclasses import replace
from pathlib import Path

import msgspec

from tests.agent.node import FAST, GPU, node, part, until
from volcano_py.shim.agent.install import install
from volcano_py.shim.agent.libraries import Libraries
from volcano_py.shim.agent.slices import OWNER, Owner, Slices

SOON = replace(FAST, libraries=0.0)


def test_an_old_library_goes_with_the_last_slice_that_has_it(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, paces=SOON) as n1:
            admitted = await n1.run(await n1.sliced("old", part("GPU-0")))
            first = Path(n1.owners()[0]["library"])
            await n1.stop()
            await n1.kubelet_loses()
            n1.options.library.write_bytes(b"newer")
            await n1.start()
            second = await n1.run(await n1.sliced("new", part("GPU-0")))
            assert {path.name for path in n1.options.hook.glob("libvgpu.so.*")} == {
                str(first),
                n1.agent._library,
            }
            await n1.kubelet.start_container(admitted, "main")
            await n1.delete("old")
            n1.kubelet.forget(admitted)
            gone = n1.options.hook / first
            await until(lambda: not gone.exists(), "the old file is gone")
            await n1.kubelet.start_container(second, "main")
            assert (n1.options.hook / n1.agent._library).exists()

    asyncio.run(case())


def test_a_file_goes_only_after_the_grace(tmp_path: Path) -> None:
    _, libraries, old = three(tmp_path)
    assert libraries.collect(1000.0) == []
    assert libraries.collect(1099.0) == []
    assert libraries.collect(1100.0) == [old]
    assert libraries.collect(2000.0) == []


def test_the_grace_begins_again_when_a_slice_has_the_file(tmp_path: Path) -> None:
    slices, libraries, old = three(tmp_path)
    assert libraries.collect(1000.0) == []
    owner = slices.make(owner_with(old))
    assert libraries.collect(1200.0) == []
    slices.remove(owner)
    assert libraries.collect(1300.0) == []
    assert libraries.collect(1399.0) == []
    assert libraries.collect(1400.0) == [old]


def test_a_file_that_a_process_has_mapped_stays(tmp_path: Path) -> None:
    _, libraries, old = three(tmp_path)
    libraries.collect(0.0)
    with (tmp_path / "vgpu" / old).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        assert libraries.collect(1000.0) == []
    assert libraries.collect(1001.0) == [old]


def test_a_slice_that_does_not_tell_its_library_keeps_them_all(tmp_path: Path) -> None:
    slices, libraries, old = three(tmp_path)
    untold = slices.make(owner_with(""))
    libraries.collect(0.0)
    assert libraries.collect(1000.0) == []
    slices.remove(untold)
    unread = slices.place / "another"
    unread.mkdir()
    (unread / OWNER).write_bytes(b"{")
    assert libraries.collect(2000.0) == []
    assert libraries.collect(3000.0) == []
    (unread / OWNER).unlink()
    unread.rmdir()
    libraries.collect(4000.0)
    assert libraries.collect(5000.0) == [old]


def test_files_of_others_stay(tmp_path: Path) -> None:
    _, libraries, old = three(tmp_path)
    others = ["libvgpu.so", "libvgpu.so.bak", "libvgpu.so.1", "ld.so.preload"]
    for name in others:
        (tmp_path / "vgpu" / name).write_text("x")
    libraries.collect(0.0)
    assert libraries.collect(1000.0) == [old]
    assert all((tmp_path / "vgpu" / name).exists() for name in others)


def three(place: Path) -> tuple[Slices, Libraries, str]:
    """No slices, an old file and the current one, with a grace of 100 s; the old one's name."""
    library, hook = place / "libvgpu.so", place / "vgpu"
    library.write_bytes(b"old")
    old = install(library, hook)
    library.write_bytes(b"current")
    current = install(library, hook)
    slices = Slices(hook / "slices")
    slices.load()
    return slices, Libraries(hook, current, slices, 100.0), old


def owner_with(library: str) -> Owner:
    """An allocation whose container mounts *library*."""
    blank = Owner(
        id="", sequence=0, resource=GPU, ids=("GPU-0-0",), limited=True, pod_uid="u", namespace="n", pod="p",
        container="main",
    )  # fmt: skip
    return msgspec.structs.replace(blank, library=library)
