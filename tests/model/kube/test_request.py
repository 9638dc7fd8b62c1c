"""Amounts of pods and nodes: one table row a rule, each with the case that a wrong formula gets wrong."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.kube.manifests import asking, node, pod, sidecar
from volcano_py.scheduler.model.kube.objects import ObjectError, Pod
from volcano_py.scheduler.model.kube.request import (
    DEFAULT_CPU_MILLI,
    DEFAULT_MEMORY_BYTES,
    MOST,
    amount,
    node_allocatable,
    nonzero_request,
    pod_request,
    storage_bytes,
)

GI = 1024**3


def test_nothing_asked_is_an_empty_request() -> None:
    assert pod_request(pod()) == {}
    assert pod_request(pod({"name": "c"}, asking(cpu=0))) == {}


def test_base_units_follow_the_resource() -> None:
    asked = {
        "cpu": "250m",
        "memory": "1Gi",
        "ephemeral-storage": "1k",
        "hugepages-2Mi": "4Mi",
        "nvidia.com/gpu": 2,
    }
    assert pod_request(pod({"resources": {"requests": asked}})) == {
        "cpu": 250,
        "memory": GI,
        "ephemeral-storage": 1000,
        "hugepages-2Mi": 4 * 1024**2,
        "nvidia.com/gpu": 2000,
    }


@pytest.mark.parametrize(
    ("containers", "init", "cpu"),
    [
        pytest.param([1, 2], [], 3, id="app containers add up"),
        pytest.param([0.1], [6], 6, id="pitfall: a larger init container counts for the pod's whole life"),
        pytest.param([4], [3, 2], 4, id="init containers run one after another"),
        pytest.param([4], [("sidecar", 4)], 8, id="pitfall: a sidecar runs beside the app containers"),
        pytest.param([1], [("sidecar", 2), 5], 7, id="an init container runs beside earlier sidecars"),
        pytest.param([1], [5, ("sidecar", 2)], 5, id="a later sidecar has not started yet"),
        pytest.param(
            [1], [("sidecar", 2), 5, ("sidecar", 3), 3], 8, id="each init with the sidecars before it"
        ),
        pytest.param([3], [("sidecar", 2), 1, ("sidecar", 3), 1], 8, id="app containers with all sidecars"),
        pytest.param([], [("sidecar", 2), ("sidecar", 3)], 5, id="sidecars start one after another and stay"),
    ],
)
def test_effective_request(containers: list[float], init: list[Any], cpu: int) -> None:
    inits = [sidecar(cpu=it[1]) if isinstance(it, tuple) else asking(cpu=it) for it in init]
    made = pod(*(asking(cpu=it) for it in containers), initContainers=inits)
    assert pod_request(made) == {"cpu": cpu * 1000}


def test_sidecars_count_for_cards_too() -> None:
    memory = {"volcano.sh/gpu-memory": 4}
    made = pod(
        {"resources": {"limits": memory}},
        initContainers=[{"restartPolicy": "Always", "resources": {"limits": memory}}],
    )
    assert pod_request(made) == {"volcano.sh/gpu-memory": 8000}


def test_each_resource_has_its_own_peak() -> None:
    made = pod(asking(cpu=1, memory="3Gi"), initContainers=[asking(cpu=4, memory="1Gi")])
    assert pod_request(made) == {"cpu": 4000, "memory": 3 * GI}


@pytest.mark.parametrize(
    ("requests", "limits", "request_"),
    [
        ({}, {"cpu": 2}, {"cpu": 2000}),
        ({"cpu": 1}, {"cpu": 2}, {"cpu": 1000}),
        ({"cpu": 1}, {"memory": 2}, {"cpu": 1000, "memory": 2}),
        ({"cpu": 0}, {"cpu": 2}, {}),
    ],
)
def test_limits_stand_in_for_requests(requests: Any, limits: Any, request_: dict[str, int]) -> None:
    assert pod_request(pod({"resources": {"requests": requests, "limits": limits}})) == request_


def test_overhead_is_added_to_the_peak() -> None:
    made = pod(asking(cpu=1), initContainers=[asking(cpu=3)], overhead={"cpu": "250m", "memory": 7})
    assert pod_request(made) == {"cpu": 3250, "memory": 7}


@pytest.mark.parametrize(
    ("level", "request_"),
    [
        pytest.param({"requests": {"cpu": 9}}, {"cpu": 9000, "memory": 5}, id="stated, larger"),
        pytest.param({"requests": {"cpu": 1}}, {"cpu": 1000, "memory": 5}, id="stated, smaller"),
        pytest.param(
            {"limits": {"cpu": 9}}, {"cpu": 2000, "memory": 5}, id="limit only: what containers ask"
        ),
        pytest.param(
            {"limits": {"hugepages-2Mi": "8Mi"}},
            {"cpu": 2000, "memory": 5, "hugepages-2Mi": 8 * 1024**2},
            id="limit only, nobody asks: the limit",
        ),
        pytest.param({"limits": {"memory": 9}}, {"cpu": 2000, "memory": 5}, id="one limit leaves the other"),
        pytest.param(
            {"requests": {"nvidia.com/gpu": 9}}, {"cpu": 2000, "memory": 5}, id="no pod-level resource"
        ),
    ],
)
def test_pod_level_resources_stand_in_for_containers(level: Any, request_: dict[str, int]) -> None:
    assert pod_request(pod(asking(cpu=2, memory=5), resources=level)) == request_


def test_huge_pages_of_a_pod_are_its_limit() -> None:
    made = pod(
        {"resources": {"limits": {"hugepages-2Mi": "4Mi"}}}, resources={"limits": {"hugepages-2Mi": "8Mi"}}
    )
    assert pod_request(made) == {"hugepages-2Mi": 8 * 1024**2}


def test_overhead_comes_on_top_of_pod_level_resources() -> None:
    assert pod_request(pod(asking(cpu=2), resources={"requests": {"cpu": 4}}, overhead={"cpu": 1})) == {
        "cpu": 5000
    }


INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
OVER = {**INFEASIBLE, "status": "False"}
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


@pytest.mark.parametrize(
    ("actual", "allocated", "extra", "cpu"),
    [
        pytest.param(3, 1, {}, 3000, id="still runs with more than it asks now"),
        pytest.param(1, 3, {}, 3000, id="was granted more than it runs with"),
        pytest.param(1, 1, {}, 2000, id="asks for more than it has"),
        pytest.param(None, 3, {}, 3000, id="only the grant is reported"),
        pytest.param(1, 1, {"conditions": [INFEASIBLE]}, 1000, id="the larger ask can't be met"),
        pytest.param(1, 1, {"conditions": [OVER]}, 2000, id="no longer infeasible"),
        pytest.param(1, 1, {"conditions": [DEFERRED]}, 2000, id="the larger ask is waited for"),
        pytest.param(1, 1, {"resize": "Infeasible"}, 1000, id="the field before the condition"),
        pytest.param(None, None, {"conditions": [INFEASIBLE]}, 2000, id="nothing reported: the spec"),
    ],
)
def test_in_place_resize(actual: int | None, allocated: int | None, extra: dict[str, Any], cpu: int) -> None:
    status: dict[str, Any] = {"name": "c"}
    if actual is not None:
        status["resources"] = {"requests": {"cpu": actual}}
    if allocated is not None:
        status["allocatedResources"] = {"cpu": allocated}
    made = pod(asking("c", cpu=2), status={"containerStatuses": [{"name": "other"}, status], **extra})
    assert pod_request(made) == {"cpu": cpu}


def test_only_sidecars_among_init_containers_resize() -> None:
    statuses = [
        {"name": "init", "allocatedResources": {"cpu": 9}},
        {"name": "sidecar", "allocatedResources": {"cpu": 3}},
    ]
    made = pod(
        asking(cpu=1),
        initContainers=[asking("init", cpu=2), sidecar(cpu=1)],
        status={"initContainerStatuses": statuses},
    )
    assert pod_request(made) == {"cpu": 4000}


def fault(made: Pod) -> list[str]:
    with pytest.raises(ObjectError) as caught:
        pod_request(made)
    return [problem.field for problem in caught.value.problems]


@pytest.mark.parametrize(
    "bad", ["abc", "", "-1", -1, True, [1], {"a": 1}, "1e30", 10**30, "9223372036854775808"]
)
def test_bad_amounts_name_their_field(bad: Any) -> None:
    assert fault(pod(asking(), asking(memory=bad))) == ["spec.containers[1].resources.requests.memory"]
    assert fault(pod(initContainers=[{"resources": {"limits": {"nvidia.com/gpu": bad}}}])) == [
        "spec.initContainers[0].resources.limits[nvidia.com/gpu]"
    ]
    assert fault(pod(overhead={"cpu": bad})) == ["spec.overhead.cpu"]
    assert fault(pod(resources={"requests": {"cpu": bad}})) == ["spec.resources.requests.cpu"]
    status = {"containerStatuses": [{"name": "x"}, {"name": "c", "allocatedResources": {"cpu": bad}}]}
    assert fault(pod(asking("c"), status=status)) == ["status.containerStatuses[1].allocatedResources.cpu"]


def test_all_bad_amounts_of_a_container_are_named() -> None:
    assert fault(pod(asking(cpu="x", memory="y", pods=1))) == [
        "spec.containers[0].resources.requests.cpu",
        "spec.containers[0].resources.requests.memory",
    ]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (
            {"containers": [asking(memory=MOST), asking(memory=1)]},
            "spec.containers[1].resources.requests.memory",
        ),
        ({"initContainers": [sidecar(memory=MOST)] * 2}, "spec.initContainers[1].resources.requests.memory"),
        ({"containers": [asking(memory=MOST)], "overhead": {"memory": 1}}, "spec.overhead.memory"),
        ({"containers": [asking(memory=MOST + 1)]}, "spec.containers[0].resources.requests.memory"),
        ({"containers": [asking(memory=2**63)]}, "spec.containers[0].resources.requests.memory"),
    ],
)
def test_more_than_can_be_added_up_is_refused(spec: dict[str, Any], field: str) -> None:
    assert fault(pod(*spec.pop("containers", []), **spec)) == [field]


def test_the_largest_sum_is_fine() -> None:
    assert pod_request(pod(asking(memory=MOST - 1), asking(memory=1))) == {"memory": MOST}


def test_a_request_may_be_changed_by_its_receiver() -> None:
    made = pod(asking(cpu=1))
    pod_request(made)["cpu"] = 5
    assert pod_request(made) == {"cpu": 1000}


@pytest.mark.parametrize(
    ("containers", "init", "spec", "expected"),
    [
        pytest.param([asking()], [], {}, (DEFAULT_CPU_MILLI, DEFAULT_MEMORY_BYTES), id="asks nothing"),
        pytest.param([asking(cpu=0, memory=0)], [], {}, (0, 0), id="zero is an answer"),
        pytest.param([asking(cpu=1)], [], {}, (1000, DEFAULT_MEMORY_BYTES), id="asks one of two"),
        pytest.param(
            [asking(cpu=1), asking(memory=5)], [], {}, (1100, DEFAULT_MEMORY_BYTES + 5), id="by container"
        ),
        pytest.param(
            [asking(cpu=1)], [sidecar(memory=5)], {}, (1100, DEFAULT_MEMORY_BYTES + 5), id="sidecars too"
        ),
        pytest.param(
            [asking(limits={"cpu": 2})], [], {}, (2000, DEFAULT_MEMORY_BYTES), id="limits are an answer"
        ),
        pytest.param(
            [asking(), asking()],
            [],
            {"resources": {"requests": {"cpu": 3}}},
            (3000, 2 * DEFAULT_MEMORY_BYTES),
            id="pod-level answer",
        ),
        pytest.param(
            [asking(memory=5), asking()],
            [],
            {"resources": {"requests": {"cpu": 3}}},
            (3000, 5),
            id="with pod-level resources, what some container asks isn't padded",
        ),
    ],
)
def test_nonzero_request(containers: Any, init: Any, spec: dict[str, Any], expected: tuple[int, int]) -> None:
    assert nonzero_request(pod(*containers, initContainers=init, **spec)) == expected


def test_node_offers_its_allocatable() -> None:
    amounts = {"cpu": "3500m", "memory": "2Gi", "pods": "110"}
    assert node_allocatable(node(allocatable=amounts, capacity={"cpu": 4})) == {
        "cpu": 3500,
        "memory": 2 * GI,
        "pods": 110_000,
    }
    assert node_allocatable(node(capacity={"cpu": 4})) == {"cpu": 4000}
    assert node_allocatable(node()) == {}


def test_every_bad_amount_of_a_node_is_named() -> None:
    with pytest.raises(ObjectError) as caught:
        node_allocatable(
            node(allocatable={"cpu": "-4", "memory": "much", "pods": 3, "nvidia.com/gpu": "1Xi"})
        )
    assert [problem.field for problem in caught.value.problems] == [
        "status.allocatable.cpu",
        "status.allocatable.memory",
        "status.allocatable[nvidia.com/gpu]",
    ]


def test_single_amounts() -> None:
    assert amount("cpu", "1.5", "x") == 1500
    assert storage_bytes("1.5Ki", "x") == 1536
    with pytest.raises(ObjectError, match=r"^spec\.size: "):
        storage_bytes(2**63, "spec.size")


small = st.integers(0, 9)


@given(st.lists(small, max_size=4), st.lists(st.tuples(st.booleans(), small), max_size=5))
def test_effective_request_is_the_peak_over_time(apps: list[int], init: list[tuple[bool, int]]) -> None:
    """Plays the pod's life step by step; the request is the most that runs at once."""
    peak, running = 0, 0
    for stays, cpu in init:
        peak = max(peak, running + cpu)
        running += cpu if stays else 0
    peak = max(peak, running + sum(apps))
    inits = [sidecar(cpu=cpu) if stays else asking(cpu=cpu) for stays, cpu in init]
    made = pod(*(asking(cpu=cpu) for cpu in apps), initContainers=inits)
    assert pod_request(made).get("cpu", 0) == peak * 1000
