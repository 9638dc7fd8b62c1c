"""Registers of nodes, in all three forms, and garbage."""

from __future__ import annotations

import pytest

from tests.deviceshare.cards import hami, make_node, volcano
from volcano_py.plugins.deviceshare.register import cards_of
from volcano_py.scheduler.model.kube.cluster import NodeStatus
from volcano_py.scheduler.model.kube.errors import ObjectError
from volcano_py.scheduler.model.kube.objects import Node

HAMI = "hami.io/node-nvidia-register"
VOLCANO = "volcano.sh/node-vgpu-register"


def test_json_takes_missing_health_for_unhealthy() -> None:
    text = '[{"id":"GPU-0","count":10,"devmem":24576,"devcore":100,"type":"A100","numa":1,"health":true},'
    text += '{"id":"GPU-1","count":10,"devmem":24576,"devcore":100,"type":"A100"}]'
    first, second = cards_of(make_node(**{HAMI: text}))
    assert (first.uuid, first.memory_mib, first.cores, first.slots) == ("GPU-0", 24576, 100, 10)
    assert (first.type, first.family, first.mode, first.numa) == ("A100", "hami.io", "hami-core", 1)
    assert first.healthy
    assert not second.healthy
    assert second.numa == 0


def test_volcanos_text() -> None:
    text = "GPU-0,10,10240,NVIDIA-A100,true,hami-core:GPU-1,4,8192,NVIDIA-T4,false,mig:"
    first, second = cards_of(make_node(**{VOLCANO: text}))
    assert (first.family, first.slots, first.memory_mib, first.cores) == ("volcano.sh", 10, 10240, 100)
    assert (second.uuid, second.type, second.healthy, second.mode) == ("GPU-1", "NVIDIA-T4", False, "mig")


def test_older_text_of_both_lengths() -> None:
    text = "GPU-0,10,10240,100,A100,1,true:GPU-1,5,10240,50,A100,0,false,1,mig:"
    first, second = cards_of(make_node(**{HAMI: text}))
    assert (first.mode, first.numa, first.healthy) == ("hami-core", 1, True)
    assert (second.mode, second.cores, second.healthy) == ("mig", 50, False)


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        (HAMI, "[{", "not a list of cards"),
        (HAMI, '[{"id":5}]', "not a list of cards"),
        (HAMI, '[{"id":"","count":1,"devmem":1}]', "no id"),
        (HAMI, '[{"id":"a","count":1}]', "memory must be above 0"),
        (HAMI, '[{"id":"a","count":1,"devmem":9999999999999}]', "memory must be above 0"),
        (HAMI, "a,1,2,3:", "has 4 fields"),
        (VOLCANO, "GPU-0,10,10240,A100:", "has 4 fields"),
        (VOLCANO, "GPU-0,ten,10240,A100,true,hami-core:", "'ten' is not a number"),
        (VOLCANO, "GPU-0,10,-5,A100,true,hami-core:", "memory must be above 0"),
        (VOLCANO, volcano(1) + volcano(1), "listed twice"),
    ],
)
def test_garbage_is_refused_by_name(key: str, text: str, said: str) -> None:
    with pytest.raises(ObjectError, match=said) as refused:
        cards_of(make_node(**{key: text}))
    assert refused.value.problems[0].field == f"metadata.annotations[{key}]"


def test_no_register_is_no_cards() -> None:
    assert cards_of(make_node()) == ()
    assert cards_of(make_node(**{VOLCANO: ""})) == ()


def test_cordoned_cards_take_nothing_new() -> None:
    cards = cards_of(make_node(**{HAMI: hami(10, 20), "hami.io/device-cordon": "GPU-1, GPU-7"}))
    assert [card.healthy for card in cards] == [True, False]


def test_cards_of_a_plugin_that_offers_nothing_take_nothing() -> None:
    node = make_node(**{HAMI: hami(10)})
    gone = Node(node.metadata, status=NodeStatus(allocatable={"nvidia.com/gpu": "0"}))
    there = Node(node.metadata, status=NodeStatus(allocatable={"nvidia.com/gpu": "10"}))
    assert [card.healthy for card in cards_of(gone)] == [False]
    assert [card.healthy for card in cards_of(there)] == [True]


@pytest.mark.parametrize(
    ("handshake", "there"),
    [
        ("Deleted_2026-01-02 03:04:05", False),  # as our agent and HAMi write it
        ("Deleted_2026.01.02 03:04:05", False),  # as HAMi did
        ("Requesting_2026-01-02 03:04:05", True),  # HAMi's scheduler asks, and its plugin never answers
        ("Reported_2026.01.02 03:04:05", True),
        ("", True),
    ],
)
def test_cards_of_a_plugin_that_said_it_goes_take_nothing(handshake: str, there: bool) -> None:
    hamis, volcanos = "hami.io/node-handshake", "volcano.sh/node-vgpu-handshake"
    for notes in ({HAMI: hami(10), hamis: handshake}, {VOLCANO: volcano(1), volcanos: handshake}):
        cards = cards_of(make_node(**notes))
        assert {card.healthy for card in cards} == {there}
