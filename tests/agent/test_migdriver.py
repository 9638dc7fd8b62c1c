"""Cutting cards through NVML, on the stub driver's model of A100 and H100. Each case has a process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.shim.scripts import says
from tests.shim.stub.state import Card, Driver, card_uuid

A100, H100 = "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"
FIRST = card_uuid(0)
FAILS = 999
BEGIN = """
import json, sys
from pathlib import Path
from volcano_py.shim.agent.instances import Wish
from volcano_py.shim.agent.migdriver import MigDriver
from volcano_py.shim.agent.nvml import Driver, DriverError
driver = Driver()
driver.open()
cards = driver.cards()[0]
cutter = MigDriver(Path({capabilities!r}), Path("/dev/nvidia-caps"))
def wish(profile, start, size, card=0):
    return Wish(cards[card].uuid, profile, start, size)
def tried(work, *arguments):
    try:
        return work(*arguments)
    except DriverError as error:
        print(str(error).rpartition(": ")[2])
def there():
    found = []
    import pynvml
    handle = pynvml.nvmlDeviceGetHandleByUUID(cards[0].uuid)
    for at in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            found.append(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, at)))
        except pynvml.NVMLError_NotFound:
            pass
    return sorted(found)
"""


def write_capabilities(folder: Path, minor: int = 0) -> None:
    """What the kernel module tells of every instance that a card could have."""
    for number in range(15):
        whole = folder / f"gpu{minor}" / "mig" / f"gi{number}"
        (whole / "ci0").mkdir(parents=True)
        for at, file in enumerate((whole / "access", whole / "ci0" / "access")):
            file.write_text(f"DeviceFileMinor: {100 * minor + 2 * number + at + 3}\nDeviceFileMode: 444\n")


@pytest.fixture
def state(tmp_path: Path) -> Any:
    write_capabilities(tmp_path / "capabilities")
    with Driver.create(tmp_path / "state", [Card(memory_mib=81920, mig_mode=1)]) as made:
        yield made


def run(place: Path, state: Driver, script: str) -> list[str]:
    lines = says(state, BEGIN.format(capabilities=str(place / "capabilities")) + script)
    return [line for line in lines if "ended an instance that nobody has" not in line]


@pytest.mark.parametrize(
    ("name", "whole"), [(A100, ("7g.80gb", 80896)), (H100, ("7g.80gb", 81152))], ids=["a100", "h100"]
)
def test_a_card_tells_what_it_can_be_cut_into(tmp_path: Path, name: str, whole: tuple[str, int]) -> None:
    with Driver.create(tmp_path / "state", [Card(name=name, mig_mode=1), Card(mig_mode=0)]) as state:
        script = "for each in cutter.profiles(cards[0].uuid):\n"
        script += "    print(json.dumps([each.name, each.memory_mib, each.cores, each.placements]))\n"
        script += "print(cards[0].mig, cards[1].mig)"
        *told, modes = run(tmp_path, state, script)
    profiles = {name: rest for name, *rest in map(json.loads, told)}
    assert modes == "True False"
    assert profiles.keys() == {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}
    assert profiles[whole[0]][:2] == [whole[1], 100]
    assert profiles["1g.10gb"][2] == [[start, 1] for start in range(7)]
    assert profiles["3g.40gb"][2] == [[0, 4], [4, 4]]
    assert profiles["2g.20gb"][2] == [[0, 2], [2, 2], [4, 2]]


GEOMETRIES: list[list[tuple[str, int, int]]] = [
    [("1g.10gb", at, 1) for at in range(7)],
    [("3g.40gb", 0, 4), ("3g.40gb", 4, 4)],
    [("4g.40gb", 0, 4), ("3g.40gb", 4, 4)],
    [("2g.20gb", 0, 2), ("2g.20gb", 2, 2), ("2g.20gb", 4, 2), ("1g.10gb", 6, 1)],
    [("1g.20gb", at, 2) for at in (0, 2, 4, 6)],
    [("7g.80gb", 0, 8)],
]


def test_every_geometry_is_made_and_ended_one_after_the_other(tmp_path: Path, state: Driver) -> None:
    script = f"""
for geometry in {GEOMETRIES!r}:
    made = [cutter.make(wish(*each), 0) for each in geometry]
    assert sorted(each.uuid for each in made) == there(), (made, there())
    assert len({{each.nodes for each in made}}) == len(made)
    for each in made:
        cutter.end(each)
        cutter.end(each)  # one that is gone is fine
    assert there() == []
made = cutter.make(wish("1g.10gb", 3, 1), 0)
print(made.gpu_instance, made.compute_instance, *made.nodes)
"""
    nodes = "/dev/nvidia-caps/nvidia-cap23 /dev/nvidia-caps/nvidia-cap24"
    assert run(tmp_path, state, script) == [f"10 0 {nodes}"]


def test_what_is_there_is_taken_as_it_is(tmp_path: Path, state: Driver) -> None:
    """Also by an agent that starts again, and where the one before it died between its two steps."""
    script = """
one = cutter.make(wish("2g.20gb", 2, 2), 0)
assert cutter.make(wish("2g.20gb", 2, 2), 0) == one
import pynvml
handle = pynvml.nvmlDeviceGetHandleByUUID(cards[0].uuid)
whole = pynvml.nvmlDeviceGetGpuInstanceById(handle, one.gpu_instance)
pynvml.nvmlComputeInstanceDestroy(pynvml.nvmlGpuInstanceGetComputeInstanceById(whole, 0))
assert there() == []
assert cutter.make(wish("2g.20gb", 2, 2), 0) == one
print(there() == [one.uuid])
"""
    assert run(tmp_path, state, script) == ["True"]


def test_who_is_in_the_way_stays_while_somebody_has_it(tmp_path: Path, state: Driver) -> None:
    script = """
one = cutter.make(wish("3g.40gb", 0, 4), 0)
held = {one.wish}
tried(cutter.make, wish("7g.80gb", 0, 8), 0, held)
tried(cutter.make, wish("1g.10gb", 3, 1), 0, held)
tried(cutter.make, one.wish, 0, held)
print(there() == [one.uuid])
beside = cutter.make(wish("1g.10gb", 4, 1), 0, held)
last = cutter.make(wish("7g.80gb", 0, 8), 0)
print(there() == [last.uuid])
"""
    assert run(tmp_path, state, script) == [
        "a 3g.40gb at 0 is in the way",
        "a 3g.40gb at 0 is in the way",
        "the 3g.40gb at 0 is another pod's",
        "True",
        "True",
    ]


def test_an_instance_that_a_program_uses_ends_later(tmp_path: Path, state: Driver) -> None:
    run(tmp_path, state, 'cutter.make(wish("1g.10gb", 0, 1), 0)')
    again = 'one = cutter.make(wish("1g.10gb", 0, 1), 0)\n'
    state.raw.card[0].migs[0].users = 1
    script = (
        again + 'tried(cutter.end, one)\ntried(cutter.make, wish("7g.80gb", 0, 8), 0)\nprint(len(there()))'
    )
    assert run(tmp_path, state, script) == ["In use by another client", "In use by another client", "1"]
    state.raw.card[0].migs[0].users = 0
    assert run(tmp_path, state, again + "cutter.end(one)\nprint(there())") == ["[]"]


@pytest.mark.parametrize("step", ["nvmlGpuInstanceCreateComputeInstance", "nvmlComputeInstanceGetInfo_v2"])
def test_what_can_not_be_made_whole_leaves_nothing(tmp_path: Path, state: Driver, step: str) -> None:
    """It would keep its place from everybody, and no slice would speak of it."""
    state.fail(step, FAILS)
    assert len(run(tmp_path, state, 'tried(cutter.make, wish("1g.10gb", 0, 1), 0)')) == 1
    assert all(mig.size == 0 for mig in state.raw.card[0].migs)


def test_an_instance_without_device_nodes_is_none(tmp_path: Path, state: Driver) -> None:
    (tmp_path / "capabilities" / "gpu0" / "mig" / "gi7" / "access").unlink()
    (told,) = run(tmp_path, state, 'tried(cutter.make, wish("1g.10gb", 0, 1), 0)')
    assert "gi7/access" in told
    assert all(mig.size == 0 for mig in state.raw.card[0].migs)


def test_what_no_card_has_is_said(tmp_path: Path, state: Driver) -> None:
    script = """
tried(cutter.make, wish("5g.60gb", 0, 4), 0)
tried(cutter.make, wish("2g.20gb", 1, 2), 0)
tried(cutter.make, wish("2g.20gb", 0, 1), 0)
"""
    told = run(tmp_path, state, script)
    assert told == [f"card {FIRST} has no profile 5g.60gb", "Invalid Argument", "Invalid Argument"]


def test_a_card_that_is_not_in_mig_mode_is_not_cut(tmp_path: Path) -> None:
    with Driver.create(tmp_path / "state", [Card(mig_mode=0)]) as state:
        told = run(tmp_path, state, 'tried(cutter.make, wish("1g.10gb", 0, 1), 0)')
    assert told == ["Not Supported"]


def test_another_instance_under_the_same_number_is_not_ended(tmp_path: Path, state: Driver) -> None:
    """Numbers are used again: a slice that is removed late must not end what came after its instance."""
    script = """
import msgspec
one = cutter.make(wish("1g.10gb", 0, 1), 0)
stale = msgspec.structs.replace(one, start=3)
cutter.end(stale)
print(there() == [one.uuid])
"""
    assert run(tmp_path, state, script) == ["True"]
