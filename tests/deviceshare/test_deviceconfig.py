"""HAMi's and Volcano's device configuration: what it says of amounts, and how asks are read by it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.deviceshare.cards import container, make_pod
from volcano_py.plugins.deviceshare.backends import BACKENDS
from volcano_py.plugins.deviceshare.catalogue import Catalogue
from volcano_py.plugins.deviceshare.deviceconfig import configured
from volcano_py.plugins.deviceshare.reading import card_request
from volcano_py.plugins.deviceshare.register import cards_of
from volcano_py.scheduler.model.kube.cluster import NodeStatus
from volcano_py.scheduler.model.kube.meta import ObjectMeta
from volcano_py.scheduler.model.kube.objects import Node
from volcano_py.scheduler.model.kube.pod import Container, Resources


def nvidia(section: dict[str, Any]) -> Catalogue:
    return configured(BACKENDS, {"nvidia": section}, ascend=True)


def asked(section: dict[str, Any], **limits: Any) -> tuple[int, int, int, str]:
    """(MiB, percent of the memory, cores, name of plain whole cards) of what a container asks."""
    request, _ = card_request(make_pod(container(**limits)), nvidia(section))
    assert request is not None
    (ask,) = request.asks
    return ask.memory_mib, ask.percent, ask.cores, request.bare


@pytest.mark.parametrize(
    ("section", "limits", "expected"),
    [
        ({"memoryFactor": 1024}, {"gpu": 1, "gpumem": 8}, (8192, 0, 0, "")),
        ({"memoryFactor": 0}, {"gpu": 1, "gpumem": 8}, (8, 0, 0, "")),
        ({"memoryFactor": 1024}, {"gpu": 1, "percent": 50}, (0, 50, 0, "")),
        ({"defaultMemory": 2000}, {"gpu": 1}, (2000, 0, 100, "")),
        ({"defaultMemory": 2000, "memoryFactor": 1024}, {"gpu": 1, "gpucores": 30}, (2000, 0, 30, "")),
        ({"defaultMemory": 2000}, {"gpu": 1, "percent": 50}, (0, 50, 0, "")),
        ({"defaultCores": 20}, {"gpu": 1, "gpumem": 8}, (8, 0, 20, "")),
        ({"defaultCores": 20}, {"gpu": 1, "gpumem": 8, "gpucores": 0}, (8, 0, 0, "")),
        ({"defaultCores": 20}, {"gpu": 1}, (0, 100, 100, "nvidia.com/gpu")),
    ],
)
def test_amounts_are_read_as_hami_reads_them(
    section: dict[str, Any], limits: dict[str, Any], expected: tuple[int, int, int, str]
) -> None:
    assert asked(section, **limits) == expected


def test_the_factor_of_hygon_counts_and_other_vendors_have_their_own() -> None:
    document = {"hygon": {"memoryFactor": 512}, "cambricon": {"memoryFactor": 7}}
    catalogue = configured(BACKENDS, document, ascend=True)
    for names, mib in (
        ("hygon.com/dcunum hygon.com/dcumem", 1024),
        ("cambricon.com/mlu cambricon.com/mlu.smlu.vmemory", 512),
    ):
        count, memory = names.split()
        pod = make_pod(Container("c", resources=Resources(limits={count: "1", memory: "2"})))
        request, _ = card_request(pod, catalogue)
        assert request is not None
        assert request.asks[0].memory_mib == mib


@pytest.mark.parametrize("key", ["memoryFactor", "gpuMemoryFactor"])
@pytest.mark.parametrize("value", ["1024", -1, 1.5, True, 2**40])
def test_an_amount_that_is_none_is_named(key: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"nvidia: {key} must be a whole number from 0 to"):
        configured(BACKENDS, {"nvidia": {key: value}}, ascend=True)


@pytest.mark.parametrize(("factor", "memory"), [(0, 9728), (1, 9728), (1000, 9), (1024, 9), (None, 9728)])
def test_volcanos_factor_counts_for_instances_and_not_for_asks(factor: int | None, memory: int) -> None:
    """The plugin reports cards in its units, asks and records are in them, and only instances are in MiB."""
    section = {"gpuMemoryFactor": factor}
    (geometry,) = (each for each in nvidia(section).geometries if each.fits("A100-SXM4-80GB"))
    assert geometry.groups[0][1][0].memory_mib == memory
    assert asked(section, gpu=1, gpumem=8) == (8, 0, 0, "")


@pytest.mark.parametrize(
    ("document", "vendor"),
    [
        ({"metax": {"resourceCountName": "x/count"}}, "metax"),
        (
            {
                "metax": {
                    "resourceVCountName": "x/count",
                    "resourceVMemoryName": "x/mem",
                    "resourceVCoreName": "x/c",
                }
            },
            "metax-shared",
        ),
        ({"kunlun": {"resourceCountName": "x/count"}}, "kunlun"),
        ({"kunlun": {"resourceVCountName": "x/count", "resourceVMemoryName": "x/mem"}}, "kunlun-shared"),
        ({"enflame": {"resourceNameGCU": "x/count"}}, "enflame"),
        (
            {
                "enflame": {
                    "resourceNameDRSGCU": "x/count",
                    "resourceNameGCUMemory": "x/mem",
                    "resourceNameGCUCore": "x/c",
                }
            },
            "enflame-shared",
        ),
        ({"vastai": {"resourceCountName": "x/count"}}, "vastai"),
        ({"biren": {"resourceCountName": "x/count"}}, "biren"),
        ({"iluvatars": [{"commonWord": "MR-V100", "resourceCountName": "x/count"}]}, "MR-V100"),
        ({"iluvatars": [{"commonWord": "BI-V999", "resourceCountName": "x/count"}]}, "BI-V999"),
    ],
)
def test_each_section_names_its_vendors_resources(document: dict[str, Any], vendor: str) -> None:
    catalogue = configured(BACKENDS, document, ascend=True)
    assert [backend.vendor for backend in catalogue.askings["x/count"].backends] == [vendor]
    names = catalogue.backends[vendor].names
    assert names.count[0] == "x/count"
    if "x/mem" in str(document):
        assert names.memory[0] == "x/mem"


def test_a_node_states_its_cards_under_the_name_that_is_configured() -> None:
    catalogue = configured(BACKENDS, {"enflame": {"resourceNameGCU": "x/gcu"}}, ascend=True)
    node = Node(ObjectMeta("n"), status=NodeStatus(allocatable={"x/gcu": "2"}))
    assert [card.uuid for card in cards_of(node, catalogue)] == ["n-GCU-0", "n-GCU-1"]


@pytest.mark.parametrize("value", ["what", [{"chipName": "MR-V100"}], [7]])
def test_chips_of_iluvatar_that_are_none_are_named(value: object) -> None:
    with pytest.raises(ValueError, match="iluvatars: "):
        configured(BACKENDS, {"iluvatars": value}, ascend=True)
