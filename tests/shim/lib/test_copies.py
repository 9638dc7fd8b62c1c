"""Several libraries in front of one program: each finds libc's own lookups, not the other's."""

import shutil

import pytest

from tests.shim.harness import OUT_OF_MEMORY, Slice, agree
from tests.shim.stub import build


@pytest.mark.parametrize("way", ["direct", "dlsym", "default", "dlvsym", "proc2"])
def test_a_second_copy_neither_loops_nor_counts_twice(pod: Slice, way: str) -> None:
    copies = [pod.folder / name / "libvgpu.so" for name in ("one", "other")]
    for copy in copies:
        copy.parent.mkdir()
        shutil.copy2(build.OUTPUT / "libvgpu.so", copy)
    with pod.probe(way, {"LD_PRELOAD": ":".join(map(str, copies))}) as probe:
        assert probe.start().take("a", 600) == 0
        assert probe.take("b", 600) == OUT_OF_MEMORY
        agree(pod)
