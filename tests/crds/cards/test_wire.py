"""Registers, link scores and records: fixtures in the words of HAMi's and Volcano's plugins, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.crds.cards.errors import WireError
from volcano_py.crds.cards.names import NVIDIA, ResourceNames
from volcano_py.crds.cards.records import HAMI, VOLCANO, Part, decode, encode
from volcano_py.crds.cards.register import (
    CardReport,
    MigProfile,
    decode_hami,
    decode_volcano,
    encode_hami,
    encode_volcano,
)
from volcano_py.crds.cards.scores import decode_scores, encode_scores

HAMI_JSON = (
    '[{"id":"GPU-5a1d","count":10,"devmem":81559,"devcore":100,"type":"NVIDIA-A100-SXM4-80GB",'
    '"mode":"hami-core","health":true},'
    '{"id":"GPU-77b0","index":1,"count":7,"devmem":81559,"devcore":100,"type":"NVIDIA-A100-SXM4-80GB",'
    '"numa":1,"mode":"mig","migProfiles":[{"name":"3g.40gb","memoryMB":40192,"core":43,"sliceCount":4,'
    '"placements":[{"start":0,"size":4},{"start":4,"size":4}]}]}]'
)
HAMI_CARDS = (
    CardReport("GPU-5a1d", 0, 10, 81559, 100, "NVIDIA-A100-SXM4-80GB"),
    CardReport(
        "GPU-77b0",
        1,
        7,
        81559,
        100,
        "NVIDIA-A100-SXM4-80GB",
        numa=1,
        mode="mig",
        healthy=False,
        mig=(MigProfile("3g.40gb", 40192, 43, 4, ((0, 4), (4, 4))),),
    ),
)
VOLCANO_TEXT = "GPU-5a1d,10,81559,NVIDIA-A100,true,hami-core:GPU-77b0,10,40960,NVIDIA-A100,false,mig:"
VOLCANO_CARDS = (
    CardReport("GPU-5a1d", 0, 10, 81559, 100, "NVIDIA-A100", numa=-1),
    CardReport("GPU-77b0", 1, 10, 40960, 100, "NVIDIA-A100", numa=-1, mode="mig", healthy=False),
)


def test_hamis_json_both_ways() -> None:
    """Zero values are left out: index 0, NUMA node 0, and a health that is false."""
    assert decode_hami(HAMI_JSON) == HAMI_CARDS
    assert encode_hami(HAMI_CARDS) == HAMI_JSON


def test_volcanos_text_both_ways() -> None:
    assert decode_volcano(VOLCANO_TEXT) == VOLCANO_CARDS
    assert encode_volcano(VOLCANO_CARDS) == VOLCANO_TEXT


def test_hamis_older_text_is_read() -> None:
    one, other = decode_hami("GPU-0,10,10240,100,A100,1,true:GPU-1,5,10240,50,A100,0,false,3,mig:")
    assert one == CardReport("GPU-0", 0, 10, 10240, 100, "A100", numa=1)
    assert other == CardReport("GPU-1", 3, 5, 10240, 50, "A100", mode="mig", healthy=False)


def test_further_numbers_of_a_card_are_kept() -> None:
    text = '[{"id":"a","count":1,"devmem":1,"health":true,"custominfo":{"NetworkID":1,"note":"x"}}]'
    assert decode_hami(text)[0].custom == (("NetworkID", 1),)
    assert '"custominfo":{"NetworkID":1}' in encode_hami(decode_hami(text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[{", "not a list of cards"),
        ('{"id":"a"}', "has 1 fields"),
        ('[{"id":"","count":1,"devmem":1}]', "no id"),
        ('[{"id":"a","count":1}]', "memory must be above 0"),
        ('[{"id":"a","count":1,"devmem":9999999999999}]', "memory must be above 0"),
        ('[{"id":"a","devmem":1}]', "count must be above 0"),
        ("a,1,2,3:", "has 4 fields"),
        ("a,1,1,1,t,0,true:a,1,1,1,t,0,true:", "listed twice"),
        ("a,1,x,1,t,0,true:", "'x' is not a number"),
    ],
)
def test_garbage_in_a_register_is_named(text: str, said: str) -> None:
    with pytest.raises(WireError, match=said):
        decode_hami(text)


cards = st.builds(
    CardReport,
    uuid=st.uuids().map(lambda uuid: f"GPU-{uuid}"),
    index=st.integers(0, 15),
    slots=st.integers(1, 100),
    memory_mib=st.integers(1, 200_000),
    cores=st.integers(1, 400),
    type=st.sampled_from(["NVIDIA-A100", "Tesla T4"]),
    numa=st.integers(-1, 3),
    mode=st.sampled_from(["hami-core", "mig", "mps"]),
    healthy=st.booleans(),
)


@given(st.lists(cards, max_size=4, unique_by=lambda card: card.uuid))
def test_any_cards_come_back(reports: list[CardReport]) -> None:
    assert decode_hami(encode_hami(reports)) == tuple(reports)
    told = [(card.uuid, card.slots, card.memory_mib, card.type, card.healthy, card.mode) for card in reports]
    assert [
        (card.uuid, card.slots, card.memory_mib, card.type, card.healthy, card.mode)
        for card in decode_volcano(encode_volcano(reports))
    ] == told


RECORD = ((), (Part("GPU-5a1d", "NVIDIA", 4096, 50), Part("GPU-77b0", "NVIDIA", 4096, 50)))


def test_a_record_in_both_forms() -> None:
    """HAMi ends each container's segment, Volcano joins them."""
    parts = "GPU-5a1d,NVIDIA,4096,50:GPU-77b0,NVIDIA,4096,50:"
    assert encode(RECORD, terminated=True) == f";{parts};"
    assert encode(RECORD, terminated=False) == f";{parts}"
    assert decode(f";{parts};") == decode(f";{parts}") == RECORD


def test_an_instance_names_its_card() -> None:
    [[part]] = decode("GPU-5a1d[1-2],NVIDIA,10240,0:")
    assert (part.uuid, part.card) == ("GPU-5a1d[1-2]", "GPU-5a1d")


def test_nothing_is_no_segment() -> None:
    assert decode("") == ()
    assert decode(";;") == ((), ())


@pytest.mark.parametrize("text", ["what", "a,NVIDIA,x,0:", ",NVIDIA,5,0:", "a,NVIDIA,-5,0:", "a,b,1,2,3:"])
def test_garbage_in_a_record_is_named(text: str) -> None:
    with pytest.raises(WireError, match="is not uuid,type,memory,cores"):
        decode(text)


def test_keys_of_both_families() -> None:
    assert HAMI.to_allocate == "hami.io/vgpu-devices-to-allocate"
    assert (VOLCANO.allocated, VOLCANO.to_allocate) == (
        "volcano.sh/vgpu-ids-new",
        "volcano.sh/devices-to-allocate",
    )


def test_link_scores_both_ways() -> None:
    text = (
        '[{"uuid":"a","score":{"b":50,"c":10}},{"uuid":"b","score":{"a":50}},{"uuid":"c","score":{"a":10}}]'
    )
    assert decode_scores(text) == {("a", "b"): 50, ("a", "c"): 10}
    assert encode_scores({("b", "a"): 50, ("a", "c"): 10}) == text


def test_a_link_that_the_two_sides_judge_differently_counts_nothing() -> None:
    assert decode_scores('[{"uuid":"a","score":{"b":50,"c":5}},{"uuid":"b","score":{"a":40}}]') == {}
    with pytest.raises(WireError, match="link scores"):
        decode_scores('{"a":1}')


def test_names_of_nvidia_cards() -> None:
    assert NVIDIA.books == (
        ("nvidia.com/gpu", "volcano.sh/vgpu-number"),
        ("nvidia.com/gpumem", "volcano.sh/vgpu-memory"),
        ("nvidia.com/gpucores", "volcano.sh/vgpu-cores"),
    )
    assert NVIDIA.aliases == {
        "nvidia.com/gpu-mem": "nvidia.com/gpumem",
        "nvidia.com/gpucompute": "nvidia.com/gpucores",
    }
    assert "nvidia.com/gpumem-percentage" in set(NVIDIA)
    assert list(ResourceNames(("a/b",))) == ["a/b"]
