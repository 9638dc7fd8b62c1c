"""The library on the host: what runs with it never notices an upgrade."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

from volcano_py.shim.agent.install import InstallError, RegionFault, install


def test_a_file_that_is_mapped_is_never_touched(tmp_path: Path) -> None:
    """Copying a new library over the old one ended every process that had it mapped."""
    library, hook = tmp_path / "libvgpu.so", tmp_path / "vgpu"
    library.write_bytes(b"first")
    first = hook / install(library, hook)
    with first.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as running:
        before = first.stat()
        assert hook / install(library, hook) == first
        assert (first.stat().st_ino, first.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        library.write_bytes(b"second")
        second = hook / install(library, hook)
        assert second != first
        assert second.read_bytes() == b"second"
        assert (first.stat().st_ino, bytes(running)) == (before.st_ino, b"first")


def test_half_a_file_of_an_agent_that_died_is_made_whole(tmp_path: Path) -> None:
    library, hook = tmp_path / "libvgpu.so", tmp_path / "vgpu"
    library.write_bytes(b"content")
    name = install(library, hook)
    (hook / "ld.so.preload").write_text("/usr/lo")
    (hook / name).write_bytes(b"con")
    assert install(library, hook) == name
    assert (hook / name).read_bytes() == b"content"
    assert (hook / "ld.so.preload").read_text() == "/usr/local/vgpu/libvgpu.so\n"
    assert not [path for path in hook.iterdir() if path.name.startswith(".")]


def test_a_library_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="libvgpu"):
        install(tmp_path / "libvgpu.so", tmp_path / "vgpu")


def test_the_word_on_broken_regions_follows_the_setting(tmp_path: Path) -> None:
    library, hook = tmp_path / "libvgpu.so", tmp_path / "vgpu"
    library.write_bytes(b"content")
    for fault in (RegionFault.CLOSED, RegionFault.OPEN, RegionFault.CLOSED):
        install(library, hook, fault)
        assert (hook / "region-fault").read_text() == f"{fault.value}\n"
