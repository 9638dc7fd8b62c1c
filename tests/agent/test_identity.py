"""Whose devices are they: the kubelet does not say at Allocate, and the agent never trusts a supposition."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.agent.kubelet import AdmissionError, Admitted, StartError
from tests.agent.node import GPU, VGPU, Document, NodeUnderTest, container, node, part, until
from volcano_py.crds.cards import records
from volcano_py.shim.agent.wire.deviceplugin_pb2 import ContainerAllocateResponse

MIB = 1 << 20
ALLOCATED = records.HAMI.allocated


def test_pods_taken_in_another_order_exchange_their_cards(tmp_path: Path) -> None:
    """Two asks of one size are in flight: the older is supposed, the younger is what the kubelet takes."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            old = await n1.sliced("old", part("GPU-0"))
            n1.kubelet.know(old)
            young = await n1.sliced("young", part("GPU-1"))
            taken = await n1.kubelet.admit(young)
            assert cards(taken.held["main", GPU]) == ["GPU-0"]
            await n1.kubelet.start_container(taken, "main")
            assert n1.region(taken).devices[0].uuid == "GPU-0"
            assert await holds(n1, "young") == ["GPU-0"]
            assert await holds(n1, "old") == ["GPU-1"]
            other = await n1.run(old)
            assert cards(other.held["main", GPU]) == ["GPU-1"]
            assert n1.region(other).devices[0].uuid == "GPU-1"
            await n1.until_note("old", records.HAMI.phase, "success")

    asyncio.run(case())


def test_exchanged_parts_keep_their_own_sizes(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            old = await n1.sliced("old", part("GPU-0", 1000, 10))
            n1.kubelet.know(old)
            young = await n1.sliced("young", part("GPU-1", 3000, 30))
            one, other = await n1.run(young), await n1.run(old)
            sizes = {
                n1.region(each).devices[0].uuid: n1.region(each).devices[0].limit_bytes // MIB
                for each in (one, other)
            }
            assert sizes == {"GPU-0": 3000, "GPU-1": 1000}
            assert await n1.note("young", ALLOCATED) == "GPU-0,NVIDIA,3000,30:;"

    asyncio.run(case())


def test_a_swap_that_does_not_fit_is_refused_with_a_reason(tmp_path: Path) -> None:
    """GPU-0 is nearly full: only the small one fits there, so the large one must not run on it."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            await n1.run(await n1.sliced("full", part("GPU-0", 15000, 10), part("GPU-1", 1, 10)))
            small = await n1.sliced("small", part("GPU-0", 1000, 10))
            n1.kubelet.know(small)
            large = await n1.sliced("large", part("GPU-1", 8000, 10))
            taken = await n1.kubelet.admit(large)
            assert cards(taken.held["main", GPU]) == ["GPU-0"]
            with pytest.raises(StartError, match="card GPU-0 would hold 23000 MiB of memory, it has 16384"):
                await n1.kubelet.start_container(taken, "main")
            event = (await until(n1.events, "an event"))[0]
            assert event["involvedObject"]["name"] == "large"
            assert event["reason"] == "CardDenied"
            assert "GPU-0 would hold" in event["message"]
            # The other one is served as if nothing had been.
            assert n1.region(await n1.run(small)).devices[0].limit_bytes == 1000 * MIB
            assert await holds(n1, "large") == ["GPU-1"]

    asyncio.run(case())


def test_a_kubelet_that_ignores_preferences_moves_the_record_where_it_fits(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            n1.kubelet.follows_preference = False
            for number in range(6):
                pod = await n1.sliced(f"p{number}", part(f"GPU-{number % 2}", 1000, 10))
                admitted = await n1.run(pod)
                given = cards(admitted.held["main", GPU])
                assert [device.uuid for device in n1.region(admitted).devices] == given
                assert await holds(n1, f"p{number}") == given

    asyncio.run(case())


def test_a_pod_past_the_scheduler_gets_no_card_and_harms_nobody(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            bare = await n1.bind("bare", {"containers": [container("main", {GPU: 2})]})
            with pytest.raises(AdmissionError, match="no pod of this node waits for 2 of nvidia"):
                await n1.kubelet.admit(bare)
            assert n1.owners() == []
            good = await n1.run(await n1.sliced("good", part("GPU-0"), part("GPU-1")))
            assert len(n1.region(good).devices) == 2

    asyncio.run(case())


def test_a_pod_past_the_scheduler_never_starts_with_the_slice_of_another(tmp_path: Path) -> None:
    """It is admitted in the place of the one that waits, and told apart before it runs."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            good = await n1.sliced("good", part("GPU-0"))
            bare = await n1.bind("bare", {"containers": [container("main", {GPU: 1})]})
            admitted = await n1.kubelet.admit(bare)
            with pytest.raises(StartError, match="default/bare gets no card: it has no record"):
                await n1.kubelet.start_container(admitted, "main")
            assert not Path(mount(admitted.answers["main"], "region")).exists()
            assert n1.region(await n1.run(good)).devices[0].uuid == "GPU-0"

    asyncio.run(case())


def test_a_record_that_cannot_be_read_is_that_pods_trouble(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            bad = await n1.sliced("bad", part("GPU-0"), **{ALLOCATED: "GPU-0,NVIDIA,lots,50:;"})
            with pytest.raises(AdmissionError, match=r"default/bad: hami\.io/vgpu-devices-allocated"):
                await n1.kubelet.admit(bad)
            await n1.run(await n1.sliced("good", part("GPU-0")))

    asyncio.run(case())


def test_a_finished_pod_that_is_still_pending_shadows_nobody(tmp_path: Path) -> None:
    """Its containers hold what they asked for, whatever phase its annotations are in."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            await n1.kubelet.admit(await n1.sliced("first", part("GPU-0", 1111)))
            second = await n1.run(await n1.sliced("second", part("GPU-0", 2222)))
            assert n1.region(second).devices[0].limit_bytes == 2222 * MIB

    asyncio.run(case())


def test_a_new_pod_of_an_old_name_is_another_pod(tmp_path: Path) -> None:
    """The kubelet still ends the first while the second waits: devices of one are never the other's."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            first = await n1.run(await n1.sliced("db-0", part("GPU-0", 1111)))
            await n1.delete("db-0")
            second = await n1.run(await n1.sliced("db-0", part("GPU-1", 2222)))
            assert n1.region(second).devices[0].limit_bytes == 2222 * MIB
            assert n1.region(first).devices[0].limit_bytes == 1111 * MIB

    asyncio.run(case())


def test_a_new_pod_of_an_old_name_is_found_where_the_watch_is_behind(tmp_path: Path) -> None:
    """The kubelet has heard of it already, and would refuse it for good."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            first = await n1.run(await n1.sliced("db-0", part("GPU-0", 1111)))
            await until(lambda: n1.agent._pods.objects, "the first one is followed")
            n1.agent._pods._take = lambda line: ""  # type: ignore[method-assign]
            await n1.delete("db-0")
            n1.kubelet.forget(first)
            second = await n1.run(await n1.sliced("db-0", part("GPU-1", 2222)))
            assert n1.region(second).devices[0].limit_bytes == 2222 * MIB

    asyncio.run(case())


def test_containers_of_a_pod_get_their_own_parts(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            spec = {
                "containers": [
                    container("one", {GPU: 1}),
                    container("none", {}),
                    container("two", {GPU: 1}),
                ]
            }
            segments = [[part("GPU-0", 1000)], [], [part("GPU-1", 2000)]]
            pod = await n1.bind("a", spec, n1.record(records.HAMI, segments))
            await runs_with(n1, pod, {"one": ("GPU-0", 1000), "two": ("GPU-1", 2000)})

    asyncio.run(case())


@pytest.mark.parametrize("keeps_checkpoint", [True, False])
def test_an_init_container_and_the_one_that_takes_its_devices_over(
    tmp_path: Path, keeps_checkpoint: bool
) -> None:
    """The kubelet gives both the same ids, and PodResources lists the second only."""

    async def case() -> None:
        async with node(tmp_path, keeps_checkpoint=keeps_checkpoint) as n1:
            spec = {
                "initContainers": [container("first", {GPU: 1})],
                "containers": [container("main", {GPU: 1})],
            }
            segments = [[part("GPU-0", 1000)], [part("GPU-0", 2000)]]
            pod = await n1.bind("a", spec, n1.record(records.HAMI, segments))
            await runs_with(n1, pod, {"first": ("GPU-0", 1000), "main": ("GPU-0", 2000)})

    asyncio.run(case())


def test_an_init_container_alone_is_known_by_the_checkpoint(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            spec = {
                "initContainers": [container("first", {GPU: 1})],
                "containers": [container("main", {})],
            }
            pod = await n1.bind("a", spec, n1.record(records.HAMI, [[part("GPU-0", 1000)], []]))
            await runs_with(n1, pod, {"first": ("GPU-0", 1000)})

    asyncio.run(case())


def test_without_a_checkpoint_nobody_is_guessed(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, keeps_checkpoint=False) as n1:
            spec = {
                "initContainers": [container("first", {GPU: 1})],
                "containers": [container("main", {})],
            }
            pod = await n1.bind("a", spec, n1.record(records.HAMI, [[part("GPU-0", 1000)], []]))
            admitted = await n1.kubelet.admit(pod)
            with pytest.raises(StartError, match="the kubelet tells no living pod that holds"):
                await n1.kubelet.start_container(admitted, "first")

    asyncio.run(case())


def test_records_of_volcano_begin_with_app_containers(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            spec = {
                "initContainers": [container("side", {VGPU: 1}, restartPolicy="Always")],
                "containers": [container("main", {VGPU: 1})],
            }
            segments = [[part("GPU-0", 2000)], [part("GPU-1", 1000)]]
            pod = await n1.bind("a", spec, n1.record(records.VOLCANO, segments))
            await runs_with(n1, pod, {"main": ("GPU-0", 2000), "side": ("GPU-1", 1000)}, VGPU)

    asyncio.run(case())


def test_a_card_never_holds_more_than_it_has_even_if_records_say_so(tmp_path: Path) -> None:
    """The scheduler's mistake ends at the agent: the second pod waits with the reason."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            await n1.run(await n1.sliced("a", part("GPU-0", 10000, 10)))
            admitted = await n1.kubelet.admit(await n1.sliced("b", part("GPU-0", 10000, 10)))
            with pytest.raises(StartError, match="GPU-0 would hold 20000 MiB of memory, it has 16384"):
                await n1.kubelet.start_container(admitted, "main")
            await n1.delete("a")
            await until(lambda: started(n1, admitted), "starts when the first is gone")

    async def started(n1: NodeUnderTest, admitted: Admitted) -> bool:
        try:
            await n1.kubelet.start_container(admitted, "main")
        except StartError:
            return False
        return True

    asyncio.run(case())


def test_a_whole_card_comes_without_limits(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            admitted = await n1.run(await n1.sliced("a", part("GPU-1", 16384, 100)))
            answer = admitted.answers["main"]
            assert dict(answer.envs) == {"NVIDIA_VISIBLE_DEVICES": "GPU-1"}
            assert list(answer.mounts) == []
            assert [each.host_path.rpartition("/")[2] for each in answer.devices] == ["nvidia1"]

    asyncio.run(case())


def test_cards_without_limits_are_never_a_slices(tmp_path: Path) -> None:
    """A slice is admitted in the place of a whole card; nothing would hold it there, so it does not start."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            n1.kubelet.know(await n1.sliced("whole", part("GPU-0", 16384, 100)))
            part_of = await n1.sliced("slice", part("GPU-1", 1000, 10))
            admitted = await n1.kubelet.admit(part_of)
            with pytest.raises(StartError, match="has limits, and was given cards without"):
                await n1.kubelet.start_container(admitted, "main")

    asyncio.run(case())


def test_a_restarted_container_gets_a_fresh_region(tmp_path: Path) -> None:
    """There is no new Allocate; what dead processes left in the region must not count for new ones."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            admitted = await n1.run(await n1.sliced("a", part("GPU-0")))
            path = Path(mount(admitted.answers["main"], "region"))
            before = path.stat().st_ino
            path.write_bytes(b"garbage of a tenant")
            await n1.kubelet.start_container(admitted, "main")
            assert n1.region(admitted).devices[0].limit_bytes == 4096 * MIB
            assert path.stat().st_ino != before

    asyncio.run(case())


async def runs_with(
    n1: NodeUnderTest, pod: Document, wanted: dict[str, tuple[str, int]], resource: str = GPU
) -> None:
    """The pod is admitted, all its containers start, and each has its card and MiB."""
    admitted = await n1.kubelet.admit(pod)
    for name, _, _ in admitted.containers:
        await n1.kubelet.start_container(admitted, name)
    found = {}
    for name in admitted.answers:
        (device,) = n1.region(admitted, name).devices
        found[name] = (device.uuid, device.limit_bytes // MIB)
        assert cards(admitted.held[name, resource]) == [device.uuid]
    assert found == wanted


async def holds(n1: NodeUnderTest, name: str) -> list[str]:
    """Cards of a pod by its record."""
    text = await n1.note(name, ALLOCATED)
    return [each.uuid for segment in records.decode(text) for each in segment]


def cards(ids: list[str]) -> list[str]:
    """The cards that ids are of."""
    return sorted(each.rpartition("-")[0] for each in ids)


def mount(answer: ContainerAllocateResponse, ending: str) -> str:
    """The host's side of a mount."""
    return next(each.host_path for each in answer.mounts if each.container_path.endswith(ending))


def test_no_limit_of_memory_is_all_of_the_card_and_never_zero(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path) as n1:
            admitted = await n1.run(await n1.sliced("a", part("GPU-0", 0, 50)))
            assert n1.region(admitted).devices[0].limit_bytes == 16384 * MIB
            assert admitted.answers["main"].envs["CUDA_DEVICE_MEMORY_LIMIT_0"] == "16384m"

    asyncio.run(case())


def test_a_pod_that_the_kubelet_does_not_know_yet_is_not_meant(tmp_path: Path) -> None:
    """It was bound earlier, and the kubelet hears of it later."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            await n1.sliced("old", part("GPU-0"))
            young = await n1.run(await n1.sliced("young", part("GPU-1")))
            assert cards(young.held["main", GPU]) == ["GPU-1"]
            assert await holds(n1, "old") == ["GPU-0"]

    asyncio.run(case())
