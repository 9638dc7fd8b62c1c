"""Every vendor's declaration: registered cards are read, chosen ones recorded, and records read again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.deviceshare.cards import NOW, make_pod
from volcano_py.crds.cards.register import CardReport, encode_hami
from volcano_py.plugins.deviceshare.backend import Backend
from volcano_py.plugins.deviceshare.backends import BACKENDS
from volcano_py.plugins.deviceshare.backends.gpushare import GPUSHARE
from volcano_py.plugins.deviceshare.catalogue import STANDARD, Catalogue
from volcano_py.plugins.deviceshare.records import annotations_for
from volcano_py.plugins.deviceshare.register import cards_of
from volcano_py.plugins.deviceshare.source import DeviceShareSource
from volcano_py.scheduler.model.cards import CardSpec, Slice
from volcano_py.scheduler.model.kube.cluster import NodeStatus
from volcano_py.scheduler.model.kube.meta import ObjectMeta
from volcano_py.scheduler.model.kube.objects import Node, Pod
from volcano_py.scheduler.model.kube.pod import Container, Resources

METAX = '[{"uuid":"c-0","totalDevCount":4,"totalVRam":65536,"healthy":true},'
METAX += '{"uuid":"c-1","totalDevCount":4,"totalVRam":65536,"healthy":true}]'


def node_of(backend: Backend) -> Node:
    """A node with two cards of *backend*, as its plugin tells of them."""
    if backend.counted is not None:
        amounts: dict[str, Any] = {backend.counted.resource: str(2 * backend.counted.each)}
        if backend.counted.memory:
            amounts[backend.counted.memory] = "256"
        return Node(ObjectMeta("n"), status=NodeStatus(allocatable=amounts))
    register = backend.registers[0]
    reports = [CardReport(f"c-{at}", at, 4, 65536, 100, backend.word) for at in range(2)]
    text = METAX if register.key.startswith("metax") else encode_hami(reports)
    return Node(ObjectMeta("n", annotations={register.key: text}))


def pod_of(backend: Backend, notes: dict[str, str], on: str = "") -> Pod:
    asked = Container("c", resources=Resources(limits={backend.names.count[0]: "2"}))
    return make_pod(asked, on=on, notes=notes)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.vendor)
def test_registered_chosen_recorded_and_read_back(backend: Backend) -> None:
    cards = cards_of(node_of(backend))
    assert [card.vendor for card in cards] == [backend.vendor] * 2
    slices = [Slice("c", at, card.uuid, card.memory_mib, card.cores) for at, card in enumerate(cards)]
    notes = annotations_for(pod_of(backend, {}), slices, "n", cards, NOW)
    keys = backend.families["hami.io"].keys
    first, second = [f"{card.uuid},{backend.word},{card.memory_mib}," for card in cards]
    assert notes[keys.allocated].startswith(first)
    assert second in notes[keys.allocated]
    assert notes["hami.io/vgpu-node"] == "n"
    choice = DeviceShareSource().recorded(pod_of(backend, notes, on="n"), cards)
    assert choice is not None
    assert choice.problems == ()
    assert [(part.uuid, part.memory_mib, part.cores) for part in choice.slices] == [
        (card.uuid, card.memory_mib, card.cores) for card in cards
    ]


def test_no_name_means_two_things() -> None:
    names = [name for backend in BACKENDS for name in backend.names]
    assert len(names) == len(set(names))
    keys = [register.key for backend in BACKENDS for register in backend.registers]
    assert len(keys) == len(set(keys))
    assert len(STANDARD.backends) == len(BACKENDS)


def test_absurd_amounts_are_no_cards() -> None:
    amounts = {"enflame.com/gcu": "1000000"}
    node = Node(ObjectMeta("n"), status=NodeStatus(allocatable=amounts))
    with pytest.raises(ValueError, match="at most 64"):
        cards_of(node)


def test_an_ask_of_one_vendor_takes_no_card_of_another() -> None:
    nvidia = next(backend for backend in BACKENDS if backend.vendor == "nvidia")
    cards: list[CardSpec] = list(cards_of(node_of(nvidia)))
    hygon = next(backend for backend in BACKENDS if backend.vendor == "hygon")
    assert DeviceShareSource().recorded(pod_of(hygon, {}, on="n"), cards) is None


@pytest.mark.parametrize(
    ("vendor", "key"), [("mthreads", "mthreads.com/gpu-index"), ("kunlun", "BAIDU_COM_DEVICE_IDX")]
)
def test_plugins_that_take_numbers_are_told_those_of_the_last_container(vendor: str, key: str) -> None:
    """As HAMi writes them; that of Moore Threads looks for pods by the node's name."""
    backend = next(backend for backend in BACKENDS if backend.vendor == vendor)
    cards = cards_of(node_of(backend))
    asked = Resources(limits={backend.names.count[0]: "1"})
    pod = make_pod(Container("a", resources=asked), Container("b", resources=asked), Container("c"))
    slices = [Slice(name, at, cards[at].uuid, 512, 4) for at, name in enumerate("ab")]
    notes = annotations_for(pod, slices, "n", cards, NOW)
    assert notes[key] == "1"
    assert notes.get("mthreads.com/predicate-node", "n") == "n"
    assert (vendor == "mthreads") == ("mthreads.com/predicate-node" in notes)


def test_cards_that_volcanos_older_plugin_calls_unwell_take_nothing_new() -> None:
    amounts = {"volcano.sh/gpu-number": "3", "volcano.sh/gpu-memory": "300"}
    notes = {"volcano.sh/gpu-unhealthy-ids": "0,2"}
    node = Node(ObjectMeta("n", annotations=notes), status=NodeStatus(allocatable=amounts))
    catalogue = Catalogue([*BACKENDS, GPUSHARE])
    assert [card.healthy for card in cards_of(node, catalogue)] == [False, True, False]
