"""Every vendor beside HAMi's own functions: what they read of nodes and asks, and what they write on pods.

``hami.json`` holds what HAMi gave for these inputs. Where we decide otherwise it is said here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.deviceshare.cards import NOW, make_pod
from volcano_py.plugins.deviceshare.backend import Backend
from volcano_py.plugins.deviceshare.backends import BACKENDS
from volcano_py.plugins.deviceshare.reading import card_request
from volcano_py.plugins.deviceshare.records import annotations_for
from volcano_py.plugins.deviceshare.register import cards_of
from volcano_py.plugins.deviceshare.source import DeviceShareSource
from volcano_py.scheduler.model.cards import CardSpec, Slice
from volcano_py.scheduler.model.kube.cluster import NodeStatus
from volcano_py.scheduler.model.kube.meta import ObjectMeta
from volcano_py.scheduler.model.kube.objects import Node
from volcano_py.scheduler.model.kube.pod import Container, Resources

Case = dict[str, Any]
VENDORS: Final[dict[str, Case]] = json.loads((Path(__file__).parent / "hami.json").read_text())["vendors"]
BY_WORD: Final = {backend.word: backend for backend in BACKENDS}
OURS: Final = frozenset({"hami.io/vgpu-node", "hami.io/vgpu-time", "hami.io/bind-phase", "hami.io/bind-time"})
"""What HAMi's scheduler writes itself, whatever the vendor."""
ROUNDED: Final = ("XPU", "GCU", "Ascend910C")
"""Asks for these are rounded by the sizes in which they are given, by HAMi here or in its admission."""
every = pytest.mark.parametrize("word", VENDORS)


def backend_of(word: str) -> Backend:
    return BY_WORD[word]


def cards(word: str) -> tuple[CardSpec, ...]:
    case = VENDORS[word]
    meta = ObjectMeta("n", annotations=case["annotations"])
    return cards_of(Node(meta, status=NodeStatus(allocatable=case["allocatable"])))


def asking(name: str, limits: dict[str, str]) -> Container:
    return Container(name, resources=Resources(limits=limits))


@every
def test_a_node_has_the_cards_that_hami_reads(word: str) -> None:
    """Of Ascend cards the table of chips tells the cores, and whole cards have one share."""
    theirs = VENDORS[word]["devices"]
    found = cards(word)
    assert [[card.uuid, card.memory_mib, card.numa, card.healthy] for card in found] == [
        [uuid, memory, numa, health] for uuid, _, _, memory, _, numa, health in theirs
    ]
    counted = backend_of(word).counted
    if counted is None or counted.slots > 1:
        assert [card.slots for card in found] == [count for _, _, count, *_ in theirs]
    if backend_of(word).chip is None:
        assert [card.cores for card in found] == [cores for *_, cores, _, _ in theirs]


@pytest.mark.parametrize(
    ("word", "limits", "ask"),
    [
        (word, each["limits"], each["ask"])
        for word, case in VENDORS.items()
        if word not in ROUNDED
        for each in case["asks"]
    ],
)
def test_asks_are_read_as_hami_reads_them(word: str, limits: dict[str, str], ask: list[int]) -> None:
    request, _ = card_request(make_pod(asking("c", limits)))
    assert request is not None
    (mine,) = request.asks
    count, memory, percent, cores = ask
    if request.bare and backend_of(word).whole_by_count:
        cores = 100  # HAMi's admission writes it
    if word == "kunlun":
        cores = 100  # whole cards
    assert (mine.count, mine.memory_mib, mine.cores) == (count, memory, cores)
    if not memory:
        assert mine.percent == (percent or 100)


@every
def test_a_pod_is_told_what_hami_tells_it(word: str) -> None:
    case, found = VENDORS[word], cards(word)
    count = backend_of(word).names.count[0]
    inits = (asking("i", {}),)
    apps = [asking("a", {}), asking("b", {count: "2"}), asking("d", {}), asking("c", {count: "1"})]
    pod = make_pod(*apps, init=inits)
    slices = [
        Slice(name, at, found[at].uuid, found[at].memory_mib, found[at].cores) for name, at in case["given"]
    ]
    written = annotations_for(pod, slices, "n", found, NOW)
    told = {key: text for key, text in written.items() if key not in OURS and "predicate" not in key}
    assert told == case["notes"]
    back = DeviceShareSource().recorded(make_pod(*apps, init=inits, on="n", notes=case["notes"]), found)
    assert back is not None
    assert [part.uuid for part in back.slices] == [found[at].uuid for _, at in case["given"]]
    if word != "Ascend910C":  # which come in pairs, so that one is none
        assert [part.container for part in back.slices] == [name for name, _ in case["given"]]
