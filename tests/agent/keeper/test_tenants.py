"""Who holds slices, from what is on disk and what the API server says of pods."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from volcano_py.shim.agent.pods import Pod
from volcano_py.shim.agent.slices import Owner, Share
from volcano_py.shim.agent.tenants import Hold, Tenant, tenants_of

MIB = 1 << 20
OWNER = Owner(
    id="s1",
    sequence=1,
    resource="nvidia.com/gpu",
    ids=("GPU-0-1",),
    limited=True,
    confirmed=True,
    pod_uid="u1",
    namespace="ns",
    pod="train-0",
    container="main",
    priority=0,
    shares=(Share("GPU-0", 4096, 50),),
)


def pod(*statuses: dict[str, str], annotations: dict[str, str] | None = None) -> dict[str, Pod]:
    metadata = {"name": "train-0", "namespace": "ns", "uid": "u1", "annotations": annotations or {}}
    made = msgspec.convert({"metadata": metadata, "status": {"containerStatuses": statuses}}, Pod)
    return {"u1": made}


def found(owners: list[Owner], pods: dict[str, Pod]) -> tuple[Tenant, ...]:
    return tenants_of(owners, pods, lambda owner: Path("/slices") / owner.id / "region")


RUNS = {"name": "main", "containerID": "containerd://c1"}


def test_a_running_container_with_all_that_is_known_of_it() -> None:
    notes = {"volcano.sh/queue-name": "ml", "scheduling.k8s.io/group-name": "train"}
    (told,) = found([OWNER], pod({"name": "side", "containerID": "containerd://c0"}, RUNS, annotations=notes))
    assert told == Tenant(
        "u1",
        "c1",
        "ns",
        "train-0",
        "main",
        {"GPU-0": Hold(4096 * MIB, 50)},
        queue="ml",
        group="train",
        priority=0,
        region=Path("/slices/s1/region"),
    )


@pytest.mark.parametrize(
    ("owner", "statuses"),
    [
        pytest.param(OWNER, [{"name": "main"}], id="not started"),
        pytest.param(OWNER, [{"name": "other", "containerID": "containerd://c1"}], id="another container"),
        pytest.param(msgspec.structs.replace(OWNER, confirmed=False), [RUNS], id="only supposed"),
        pytest.param(msgspec.structs.replace(OWNER, pod_uid="u2"), [RUNS], id="a pod that is gone"),
    ],
)
def test_nobody_is_held_to_what_may_be_anothers(owner: Owner, statuses: list[dict[str, str]]) -> None:
    assert found([owner], pod(*statuses)) == ()


def test_init_containers_and_sidecars_have_slices_too() -> None:
    pods = pod()
    status = {"initContainerStatuses": [RUNS]}
    pods["u1"] = msgspec.structs.replace(pods["u1"], status=msgspec.convert(status, type(pods["u1"].status)))
    assert [each.container_id for each in found([OWNER], pods)] == ["c1"]


def test_slices_of_two_resources_are_one_holder() -> None:
    other = msgspec.structs.replace(OWNER, id="s2", sequence=2, shares=(Share("GPU-1", 1, 0),))
    (told,) = found([other, OWNER], pod(RUNS))
    assert set(told.holds) == {"GPU-0", "GPU-1"}


def test_of_one_card_the_latest_counts() -> None:
    other = msgspec.structs.replace(OWNER, id="s2", sequence=2, shares=(Share("GPU-0", 1, 0),))
    (told,) = found([other, OWNER], pod(RUNS))
    assert told.holds == {"GPU-0": Hold(MIB, 0)}
    assert told.region == Path("/slices/s2/region")


def test_who_gets_whole_cards_has_no_region() -> None:
    (told,) = found([msgspec.structs.replace(OWNER, limited=False)], pod(RUNS))
    assert told.region is None
