"""Every vendor's declaration: registered cards are read, chosen ones recorded, and records read again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.deviceshare.cards import NOW, make_pod
from volcano_py.crds.cards.errors import WireError
from volcano_py.crds.cards.register import CardReport, encode_hami
from volcano_py.plugins.deviceshare.backend import Backend
from volcano_py.plugins.deviceshare.backends import BACKENDS, enflame
from volcano_py.plugins.deviceshare.backends.gpushare import GPUSHARE
from volcano_py.plugins.deviceshare.catalogue import STANDARD, Catalogue
from volcano_py.plugins.deviceshare.mig import core_geometry, label_of, mask_of
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


PLAIN = [backend for backend in BACKENDS if not (backend.sizes or backend.most_cores)]
"""Cards that are asked for by number; scenarios/deviceshare/parts has the forms of those in parts."""


@pytest.mark.parametrize("backend", PLAIN, ids=lambda backend: backend.vendor)
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "not the capacity of cards"),
        ('{"devices":[{"index":"0","capacity":6}],"profiles":{"6g":"6"}}', "names no parts"),
        (
            '{"devices":[{"index":"0","capacity":"x"}],"profiles":{"6g.48gb":"6"}}',
            "'x' is no number of slices",
        ),
        ('{"devices":[{"index":"0","capacity":-1}],"profiles":{"6g.48gb":"6"}}', "-1 is no number of slices"),
        ('{"devices":[{"capacity":1}],"profiles":{"6g.99999999999gb":"6"}}', "names no parts"),
    ],
)
def test_what_enflame_says_of_its_cards_may_be_garbage(text: str, said: str) -> None:
    with pytest.raises(WireError, match=said):
        enflame.decode(text)


def test_what_enflame_says_of_its_cards() -> None:
    text = (
        '{"devices":[{"index":"0","minor":"4","capacity":6},{"index":"1","capacity":"6"}],'
        '"profiles":{"3g.24gb":"b","1g.8gb":"a","6g.48GB":"c","odd":"d"}}'
    )
    cards = [(card.index, card.slots, dict(card.custom)["minor"]) for card in enflame.decode(text)]
    assert cards == [(0, 6, 4), (1, 6, 1)]
    chip = enflame.cut(text)
    assert [(part.size, part.memory_mib, part.ident) for part in chip.templates] == [
        (1, 8192, "a"),
        (3, 24576, "b"),
        (6, 49152, "c"),
    ]
    assert (chip.cores, chip.memory_mib) == (6, 49152)


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_cores_are_told_by_their_bits(cores: int) -> None:
    geometry = core_geometry(cores)
    masks = [mask_of(option.label) for option in geometry.options]
    assert len(set(masks)) == cores * (cores + 1) // 2
    assert [label_of(mask) for mask in masks] == [option.label for option in geometry.options]
    for at, option in enumerate(geometry.options):
        assert masks[at].bit_count() == option.cores
        beside = [bool(masks[at] & other) for other in masks]
        assert [bool(option.excludes >> other & 1) for other in range(len(masks))] == beside


@pytest.mark.parametrize("mask", [0, -1, 5, 0b1011])
def test_bits_that_are_no_neighbours_mean_nothing(mask: int) -> None:
    assert label_of(mask) == ""
