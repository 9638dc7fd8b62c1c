"""Looks and figures over made-up cards and a made-up host: what is told, and what no longer is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pynvml
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.agent.cgroup.hosts import new_ids
from volcano_py.shim.agent import region
from volcano_py.shim.agent.keeper import Keeper, Watch
from volcano_py.shim.agent.metrics import SliceMetrics
from volcano_py.shim.agent.overuse import Kind
from volcano_py.shim.agent.policy import MIB, Answer, Overuse, Policy
from volcano_py.shim.agent.readings import CardFacts, CardProcess, Reading
from volcano_py.shim.agent.region_layout import RegionLayout
from volcano_py.shim.agent.tenants import Hold, Tenant

GPU, OTHER = "GPU-0", "GPU-1"
FACTS = CardFacts(0, "A100", 900 * MIB, 1000 * MIB, 70)


@dataclass
class Scene:
    """A made-up node: folders for the kernel, ``cards`` for the driver, ``tenants`` for the kubelet.

    Figures are read at ``now``, or at the time of the last look.
    """

    folder: Path
    cards: list[Reading] = field(default_factory=list)
    tenants: list[Tenant] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    now: float = 0.0

    def __post_init__(self) -> None:
        (self.folder / "cgroup").mkdir()
        (self.folder / "cgroup" / "cgroup.controllers").touch()
        (self.folder / "dev").mkdir()
        self.process(1, "/init.scope")

    def process(self, pid: int, cgroup: str) -> None:
        """Process *pid* of the host, there since the boot."""
        folder = self.folder / "proc" / str(pid)
        folder.mkdir(parents=True)
        (folder / "cgroup").write_text(f"0::{cgroup}\n")
        (folder / "stat").write_text(f"{pid} (x) S {' '.join(['0'] * 18)} 5 0\n")
        (folder / "status").write_text(f"Tgid:\t{pid}\nNSpid:\t{pid}\t7\n")

    def tenant(self, name: str, pid: int, *, cards: Sequence[str] = (GPU,)) -> Tenant:
        """A running container with one process and 100 MiB of each of *cards*."""
        uid, identity = new_ids()
        folder = self.folder / "cgroup" / "kubepods" / f"pod{uid}" / identity
        folder.mkdir(parents=True)
        (folder / "cgroup.events").write_text("populated 1\nfrozen 0\n")
        (folder / "cgroup.freeze").write_text("0\n")
        (folder / "cgroup.procs").write_text(f"{pid}\n")
        self.process(pid, f"/kubepods/pod{uid}/{identity}")
        holds = {card: Hold(100 * MIB, 50) for card in cards}
        made = Tenant(uid, identity, "ns", name, "main", holds, queue="ml")
        self.tenants.append(made)
        return made

    def keeper(self, policy: Policy | None = None) -> Keeper:
        async def tell(tenant: Tenant, reason: str, text: str) -> None:
            self.told.append(f"{reason} {tenant.name} {text}")

        watch = Watch(
            policy or Policy(),
            cgroups=self.folder / "cgroup",
            proc=self.folder / "proc",
            devices=self.folder / "dev",
        )
        return Keeper(watch, lambda: self.tenants, tell, lambda: tuple(self.cards))

    def figures(self, keeper: Keeper, *, as_hami: bool = True) -> dict[str, dict[tuple[str, ...], float]]:
        """What Prometheus reads: by name, then by values of labels in the order of their names."""
        registry = CollectorRegistry()

        def clock() -> float:
            return self.now or keeper.look.at_s

        registry.register(SliceMetrics(keeper, "n1", lambda: self.troubles, as_hami=as_hami, clock=clock))
        found: dict[str, dict[tuple[str, ...], float]] = {}
        for family in text_string_to_metric_families(generate_latest(registry).decode()):
            assert family.documentation
            for sample in family.samples:
                values = tuple(value for _, value in sorted(sample.labels.items()))
                found.setdefault(sample.name, {})[values] = sample.value
        return found


def reading(uuid: str = GPU, *processes: CardProcess, index: int = 0, trouble: str = "") -> Reading:
    facts = None if trouble else replace(FACTS, index=index)
    return Reading(uuid, 10**9, processes, index, facts, trouble)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def one_round(keeper: Keeper) -> None:
    asyncio.run(keeper.round())


def test_who_ended_is_gone_from_the_figures(scene: Scene) -> None:
    first, second = scene.tenant("first", 10), scene.tenant("second", 20)
    scene.cards = [reading(GPU, CardProcess(10, 50 * MIB, 30), CardProcess(20, 7 * MIB, 5))]
    keeper = scene.keeper()
    one_round(keeper)
    told = scene.figures(keeper)
    labels = {name: (GPU, "main", "ns", "n1", name, "ml") for name in ("first", "second")}
    assert told["volcano_py_slice_memory_used_bytes"] == {
        labels["first"]: 50 * MIB,
        labels["second"]: 7 * MIB,
    }
    assert told["volcano_py_slice_cores_used_ratio"] == {labels["first"]: 0.3, labels["second"]: 0.05}

    scene.tenants = [second]
    scene.cards = [reading(GPU, CardProcess(20, 7 * MIB, 5))]
    one_round(keeper)
    text = str(scene.figures(keeper))
    assert "second" in text
    assert first.pod not in text


def test_a_card_that_does_not_answer_has_no_use_but_its_slices_have_limits(scene: Scene) -> None:
    scene.tenant("both", 10, cards=(GPU, OTHER))
    scene.cards = [reading(GPU, trouble="cut off"), reading(OTHER, CardProcess(10, 5 * MIB, None), index=1)]
    keeper = scene.keeper()
    one_round(keeper)
    told = scene.figures(keeper)
    assert {labels[0] for labels in told["volcano_py_slice_memory_limit_bytes"]} == {GPU, OTHER}
    assert {labels[0] for labels in told["volcano_py_slice_memory_used_bytes"]} == {OTHER}
    assert told.get("volcano_py_slice_cores_used_ratio", {}) == {}
    assert {labels[0] for labels in told["volcano_py_card_memory_used_bytes"]} == {OTHER}
    assert told["volcano_py_keeper_failures_total"] == {(): 1}


def test_a_look_of_long_ago_is_not_told(scene: Scene) -> None:
    scene.tenant("a", 10)
    scene.cards = [reading(GPU)]
    keeper = scene.keeper()
    assert not any("slice" in name for name in scene.figures(keeper))
    one_round(keeper)
    assert "volcano_py_slice_memory_limit_bytes" in scene.figures(keeper)
    scene.now = keeper.look.at_s + 11
    told = scene.figures(keeper)
    assert not any("slice" in name or "card" in name or "hami" in name for name in told)
    assert told["volcano_py_keeper_look_age_seconds"] == {(): 11}


def test_nothing_stands_for_no_limit(scene: Scene) -> None:
    made = scene.tenant("a", 10)
    scene.tenants = [replace(made, holds={GPU: Hold()})]
    scene.cards = [reading(GPU)]
    keeper = scene.keeper()
    one_round(keeper)
    told = scene.figures(keeper)
    for name in ("memory_limit_bytes", "cores_limit_ratio"):
        assert told.get(f"volcano_py_slice_{name}", {}) == {}


def test_hamis_names_mean_what_hamis_do(scene: Scene) -> None:
    scene.tenant("a", 10, cards=(OTHER, GPU))
    scene.cards = [reading(GPU, CardProcess(10, 50 * MIB, 30)), reading(OTHER, index=1)]
    keeper = scene.keeper()
    one_round(keeper)
    told = scene.figures(keeper)
    # container, device_uuid, namespace, pod, vdevice_index, zone
    assert told["hami_container_device_utilization_ratio"] == {
        ("main", GPU, "ns", "a", "1", "vGPU"): 30,
        ("main", OTHER, "ns", "a", "0", "vGPU"): 0,
    }
    # device_index, device_type, device_uuid, node, zone
    assert told["hami_host_gpu_utilization_ratio"][("0", "A100", GPU, "n1", "vGPU")] == 70
    assert not any(name.startswith("hami") for name in scene.figures(keeper, as_hami=False))


def test_an_unwell_card_and_who_shares_it(scene: Scene) -> None:
    scene.tenant("a", 10)
    scene.tenant("b", 20)
    scene.cards = [reading(GPU), reading(OTHER, index=1)]
    scene.troubles = [OTHER]
    keeper = scene.keeper()
    one_round(keeper)
    told = scene.figures(keeper)
    cards = {labels[0]: value for labels, value in told["volcano_py_card_healthy"].items()}
    slices = {labels[0]: value for labels, value in told["volcano_py_card_slices"].items()}
    assert (cards, slices) == ({GPU: 1, OTHER: 0}, {GPU: 2, OTHER: 0})


def test_what_the_library_counts(scene: Scene) -> None:
    file = scene.folder / "region"
    region.create(file, [region.DeviceLimit(GPU, 100 * MIB, 50)])
    scene.tenants = [replace(scene.tenant("a", 10), region=file)]
    scene.cards = [reading(GPU)]
    keeper = scene.keeper()
    one_round(keeper)
    assert set(scene.figures(keeper)["volcano_py_slice_refused_allocations_total"].values()) == {0}
    file.write_bytes(b"broken by the container")
    one_round(keeper)
    told = scene.figures(keeper)
    assert told.get("volcano_py_slice_refused_allocations_total", {}) == {}
    assert set(told["volcano_py_slice_memory_used_bytes"].values()) == {0}


def test_blocks_that_were_not_believed_count_once_a_container(scene: Scene) -> None:
    """Somebody wrote into the region of one; the other has none."""
    file = scene.folder / "region"
    region.create(file, [region.DeviceLimit(uuid, 100 * MIB, 50) for uuid in (GPU, OTHER)])
    content = bytearray(file.read_bytes())
    RegionLayout.from_buffer(content).control.disbelieved = 3
    file.write_bytes(content)
    scene.tenants = [
        replace(scene.tenant("a", 10, cards=(GPU, OTHER)), region=file),
        scene.tenant("b", 20),
    ]
    scene.cards = [reading(GPU), reading(OTHER, index=1)]
    keeper = scene.keeper()
    one_round(keeper)
    # container, namespace, node, pod, queue
    told = scene.figures(keeper)["volcano_py_container_disbelieved_blocks_total"]
    assert told == {("main", "ns", "n1", "a", "ml"): 3}


def test_a_driver_that_is_gone_is_no_end(scene: Scene) -> None:
    def gone() -> tuple[Reading, ...]:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)

    scene.tenant("a", 10)
    keeper = scene.keeper(Policy(Overuse(Answer.KILL, over_s=0)))
    keeper._cards = gone
    one_round(keeper)
    assert keeper.failures == 1
    assert scene.told == []


def test_a_process_whose_memory_is_not_told_is_no_proof_of_being_within(scene: Scene) -> None:
    scene.tenant("a", 10)
    keeper = scene.keeper(Policy(Overuse(Answer.EVENT, tolerance_mib=0, tolerance_percent=0, over_s=0)))
    scene.cards = [reading(GPU, CardProcess(10, 200 * MIB))]
    one_round(keeper)
    assert len(scene.told) == 1
    scene.cards = [reading(GPU, CardProcess(10, None))]
    one_round(keeper)
    assert len(scene.told) == 1
    scene.cards = [reading(GPU, CardProcess(10, 1 * MIB))]
    one_round(keeper)
    assert [line.split()[0] for line in scene.told] == ["CardMemoryOveruse", "CardMemoryOveruseEnded"]


def test_a_host_that_can_not_be_read_is_told_and_tried_again(scene: Scene) -> None:
    made = scene.tenant("a", 10)
    scene.cards = [reading(GPU, CardProcess(10, 1))]
    keeper = scene.keeper()
    (scene.folder / "proc" / "10" / "stat").unlink()
    (scene.folder / "proc" / "10" / "stat").mkdir()
    one_round(keeper)
    assert (keeper.rounds, keeper.failures) == (0, 1)
    (scene.folder / "proc" / "10" / "stat").rmdir()
    one_round(keeper)
    assert keeper.rounds == 1
    assert keeper.look.tenants == (made,)


def test_what_was_done_is_counted(scene: Scene) -> None:
    scene.tenant("a", 10)
    scene.cards = [reading(GPU, CardProcess(10, 200 * MIB))]
    keeper = scene.keeper(Policy(Overuse(Answer.EVENT, over_s=0, tolerance_mib=0)))
    one_round(keeper)
    acts = scene.figures(keeper)["volcano_py_keeper_acts_total"]
    assert acts == {(kind.name.lower(),): float(kind is Kind.TELL) for kind in Kind}


def test_a_silent_api_server_holds_nothing_up(scene: Scene) -> None:
    """Else nobody who is stopped would be let go meanwhile."""
    asked: list[str] = []

    async def never(tenant: Tenant, *_: str) -> None:
        asked.append(tenant.pod)
        await asyncio.Event().wait()

    async def rounds(keeper: Keeper) -> None:
        for _ in range(3):
            await keeper.round()

    for pod in range(60):
        scene.tenant(f"p{pod}", 10 + pod)
    scene.cards = [reading(GPU, *(CardProcess(10 + pod, 200 * MIB) for pod in range(60)))]
    keeper = scene.keeper(Policy(Overuse(Answer.EVENT, over_s=0, again_s=0, tolerance_mib=0)))
    keeper._tell = never
    asyncio.run(asyncio.wait_for(rounds(keeper), 60))
    assert keeper.rounds == 3
    assert len(asked) == 100  # of 180; the others are only logged


def test_what_fails_after_a_decision_does_not_undo_it(scene: Scene) -> None:
    scene.tenant("a", 10)
    scene.cards = [reading(GPU, CardProcess(10, 200 * MIB))]
    keeper = scene.keeper(Policy(Overuse(Answer.EVENT, over_s=0, tolerance_mib=0)))
    (scene.folder / "dev").rmdir()
    for _ in range(2):
        one_round(keeper)
    assert (keeper.rounds, keeper.failures, len(scene.told)) == (2, 2, 1)
