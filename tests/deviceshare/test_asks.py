"""What a pod asks of cards: every spelling, default and mistake."""

from __future__ import annotations

from typing import Any

import pytest

from tests.deviceshare.cards import container, make_pod
from volcano_py.plugins.deviceshare.asks import CardRequest, ContainerAsk, Role, peak
from volcano_py.plugins.deviceshare.reading import card_request
from volcano_py.scheduler.model.kube.errors import ObjectError
from volcano_py.scheduler.model.kube.objects import Pod


def asked(pod: Pod) -> CardRequest:
    request, _ = card_request(pod)
    assert request is not None
    return request


def only(pod: Pod) -> ContainerAsk:
    (ask,) = asked(pod).asks
    return ask


@pytest.mark.parametrize(
    ("limits", "count", "memory", "percent", "cores"),
    [
        ({"gpu": 2, "gpumem": 3000, "gpucores": 30}, 2, 3000, 0, 30),
        ({"gpu": 2, "gpu_mem": 3000, "gpucompute": 30}, 2, 3000, 0, 30),
        ({"number": 2, "memory": 3000, "cores": 30}, 2, 3000, 0, 30),
        ({"number": 1, "vpercent": 40}, 1, 0, 40, 0),
        ({"gpu": 1, "percent": 40}, 1, 0, 40, 0),
        ({"memory": 3000}, 1, 3000, 0, 0),
        ({"gpu": 1}, 1, 0, 100, 100),
        ({"number": 1}, 1, 0, 100, 0),
        ({"gpu": 1, "percent": 0}, 1, 0, 100, 100),
        ({"number": 1, "memory": 0}, 1, 0, 100, 0),
        ({"gpu": 1, "gpumem": "16Gi"}, 1, 16 * 2**30, 0, 0),
        ({"gpu": 1, "gpumem": 4294967296}, 1, 4294967296, 0, 0),
    ],
)
def test_spellings_and_defaults(
    limits: dict[str, Any], count: int, memory: int, percent: int, cores: int
) -> None:
    ask = only(make_pod(container(**limits)))
    assert (ask.count, ask.memory_mib, ask.percent, ask.cores) == (count, memory, percent, cores)


@pytest.mark.parametrize(("card", "percent", "expected"), [(32768, 10, 3276), (32768, 1, 327), (50, 1, 1)])
def test_a_percentage_is_never_nothing(card: int, percent: int, expected: int) -> None:
    assert only(make_pod(container(gpu=1, percent=percent))).memory_on(card) == expected


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({"gpu": 1, "percent": 101}, "spec.containers[0].resources.limits[nvidia.com/gpumem-percentage]"),
        ({"number": 1, "cores": 101}, "spec.containers[0].resources.limits[volcano.sh/vgpu-cores]"),
        ({"gpu": 1, "gpumem": -1}, "spec.containers[0].resources.limits[nvidia.com/gpumem]"),
        ({"gpu": "500m"}, "spec.containers[0].resources.limits[nvidia.com/gpu]"),
        ({"gpu": 1, "number": 2}, "spec.containers[0].resources.limits[volcano.sh/vgpu-number]"),
        ({"gpu": 9_000_000, "gpumem": 9_000_000_000}, "spec.containers[0].resources"),
    ],
)
def test_what_is_out_of_range_names_its_field(limits: dict[str, Any], field: str) -> None:
    with pytest.raises(ObjectError) as refused:
        card_request(make_pod(container(**limits)))
    assert refused.value.problems[0].field == field


def test_a_pod_with_a_node_is_read_as_well_as_possible() -> None:
    request, problems = card_request(make_pod(container(gpu=1, percent=150, gpucores=120), on="n1"))
    assert request is not None
    assert (request.asks[0].percent, request.asks[0].cores) == (100, 100)
    assert len(problems) == 2


def test_memory_wins_over_percentage_and_says_so() -> None:
    request, problems = card_request(make_pod(container(gpu=1, gpumem=4096, percent=50)))
    assert request is not None
    assert (request.asks[0].memory_mib, request.asks[0].percent) == (4096, 0)
    assert problems[0].field.endswith("[nvidia.com/gpumem-percentage]")
    assert "ignored" in problems[0].message


def test_who_names_no_count_is_told_that_no_card_will_come() -> None:
    """The kubelet hands out cards by the name of the count, which HAMi's admission would have added."""
    request, (told,) = card_request(make_pod(container(), container("b", gpumem=4096)))
    assert request is not None
    assert request.asks[0].count == 1
    assert told.field == "spec.containers[1].resources"
    assert told.message.startswith("no nvidia.com/gpu or volcano.sh/vgpu-number is asked for")


def test_no_share_is_no_ask() -> None:
    assert card_request(make_pod(container(gpu=0, gpumem=4096))) == (None, ())
    assert card_request(make_pod(container(cpu=1))) == (None, ())


def test_roles_follow_the_restart_policy() -> None:
    init = (container("i", gpu=1, gpumem=1), container("s", sidecar=True, gpu=1, gpumem=2))
    request = asked(make_pod(container("a", gpu=1, gpumem=3), init=init))
    assert [(ask.container, ask.role) for ask in request.asks] == [
        ("i", Role.INIT),
        ("s", Role.SIDECAR),
        ("a", Role.APP),
    ]


def test_peak_is_the_largest_moment() -> None:
    """An init container holds beside the sidecars started before it, never beside the others."""
    assert peak([(Role.INIT, 10), (Role.SIDECAR, 4), (Role.INIT, 7), (Role.APP, 5)]) == 11
    assert peak([(Role.INIT, 10), (Role.INIT, 10), (Role.APP, 3)]) == 10
    assert peak([(Role.SIDECAR, 4), (Role.APP, 5), (Role.APP, 5)]) == 14


def test_selection_of_types_uuids_and_modes() -> None:
    notes = {
        "nvidia.com/use-gputype": "A100, h100",
        "nvidia.com/nouse-gputype": "40GB",
        "nvidia.com/use-gpuuuid": "GPU-1",
        "volcano.sh/vgpu-nouse-gpuuuid": "GPU-2",
        "nvidia.com/vgpu-mode": "mig,hami-core",
    }
    select = asked(make_pod(container(gpu=1, gpumem=1), notes=notes)).selection
    assert select.accepts_type("NVIDIA-A100-80GB")
    assert not select.accepts_type("NVIDIA-A100-40gb")
    assert not select.accepts_type("Tesla T4")
    assert select.accepts_uuid("GPU-1")
    assert not select.accepts_uuid("GPU-2")
    assert select.accepts_mode("hami-core")
    assert not select.accepts_mode("mps")


def test_volcanos_mode_must_be_equal() -> None:
    select = asked(make_pod(container(gpu=1), notes={"volcano.sh/vgpu-mode": "mig,hami-core"})).selection
    assert not select.accepts_mode("mig")


def test_policies_of_the_pod() -> None:
    notes = {"hami.io/gpu-scheduler-policy": "mutex,spread,round", "hami.io/node-scheduler-policy": "binpack"}
    request, problems = card_request(make_pod(container(gpu=1), notes=notes))
    assert request is not None
    assert (request.card_order, request.untouched, request.node_order) == ("spread", True, "binpack")
    assert "'round' has no effect" in problems[0].message


@pytest.mark.parametrize(
    ("pod", "plain"),
    [
        (make_pod(container(gpu=2)), True),
        (make_pod(container(number=2)), False),
        (make_pod(container(gpu=2, gpumem=5)), False),
        (make_pod(container(gpu=2), notes={"nvidia.com/use-gputype": "A100"}), False),
        (make_pod(container(gpu=1), container("b", gpu=1, gpucores=5)), False),
    ],
)
def test_only_whole_nvidia_cards_are_plain(pod: Pod, plain: bool) -> None:
    assert bool(asked(pod).bare) is plain
