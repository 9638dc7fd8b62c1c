"""Whether a pod has room on its node; reasons and sentences as real kubelets write them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubelet.pods import view
from volcano_py.simulator.kubelet.admission import rejection, request_of, room_of

NODE: dict[str, Any] = {"cpu": "8", "memory": "16Gi", "pods": "2", "nvidia.com/gpu": "4"}


def container(**requests: str) -> dict[str, Any]:
    return {"name": "main", "image": "i", "resources": {"requests": requests}}


def asks(**requests: str) -> dict[str, int]:
    return dict(request_of(view(spec={"containers": [container(**requests)]})))


GPU_2 = dict(request_of(view(spec={"containers": [container(**{"nvidia.com/gpu": "2"})]})))


def why(request: dict[str, int], *others: dict[str, int]) -> tuple[str, str] | None:
    return rejection(request, others, room_of(NODE))


def test_what_fits_to_the_last_bit_may_start() -> None:
    assert why(asks(cpu="5", memory="6Gi"), asks(cpu="3", memory="10Gi")) is None


@pytest.mark.parametrize(
    ("request_", "others", "reason", "message"),
    [
        (
            asks(cpu="5001m"),
            [asks(cpu="3")],
            "OutOfcpu",
            "Pod was rejected: Node didn't have enough resource: cpu, "
            "requested: 5001, used: 3000, capacity: 8000",
        ),
        (
            asks(memory="1Gi"),
            [asks(memory="16Gi")],
            "OutOfmemory",
            "Pod was rejected: Node didn't have enough resource: memory, "
            "requested: 1073741824, used: 17179869184, capacity: 17179869184",
        ),
        (
            asks(),
            [asks(), asks()],
            "OutOfpods",
            "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2",
        ),
        (
            GPU_2,
            [{"nvidia.com/gpu": 3000}],
            "UnexpectedAdmissionError",
            "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
            "nvidia.com/gpu. Requested: 2, Available: 1, which is unexpected",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    request_: dict[str, int], others: list[dict[str, int]], reason: str, message: str
) -> None:
    assert why(request_, *others) == (reason, message)


def test_who_asks_for_nothing_of_what_is_short_may_start() -> None:
    assert why(asks(cpu="1"), {"memory": 10**15, "nvidia.com/gpu": 10**6}) is None


def test_what_a_node_does_not_report_is_not_looked_at() -> None:
    assert why({"nvidia.com/gpumem": 10**9}) is None


def test_an_init_container_counts_where_it_needs_more_and_a_sidecar_beside_all() -> None:
    sidecar = {**container(cpu="1"), "name": "side", "restartPolicy": "Always"}
    init = {**container(cpu="4", memory="1Gi"), "name": "init"}
    spec = {
        "initContainers": [sidecar, init],
        "containers": [container(cpu="2"), {"name": "b", "resources": {"limits": {"memory": "2Gi"}}}],
        "overhead": {"cpu": "100m"},
    }
    assert request_of(view(spec=spec)) == {"cpu": 5100, "memory": 2 << 30, "pods": 1000}


def test_amounts_of_the_whole_pod_take_the_place_of_its_containers() -> None:
    spec = {"containers": [container(cpu="2", memory="1Gi")], "resources": {"requests": {"cpu": "3"}}}
    assert request_of(view(spec=spec)) == {"cpu": 3000, "memory": 1 << 30, "pods": 1000}
