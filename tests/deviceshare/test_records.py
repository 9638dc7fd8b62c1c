"""Records of pods: written, read back, and read when others wrote them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.deviceshare.cards import container, hami, make_node, make_pod
from volcano_py.plugins.deviceshare.asks import Role
from volcano_py.plugins.deviceshare.backends.nvidia import NVIDIA
from volcano_py.plugins.deviceshare.holdings import slices_of
from volcano_py.plugins.deviceshare.reading import card_request
from volcano_py.plugins.deviceshare.records import RecordError, annotations_for, decode
from volcano_py.plugins.deviceshare.register import cards_of
from volcano_py.plugins.deviceshare.slices import holds_of
from volcano_py.plugins.deviceshare.source import DeviceShareSource
from volcano_py.scheduler.model.cards import CardHold, CardSpec, Slice
from volcano_py.scheduler.model.kube.objects import Pod

CARDS = cards_of(make_node(**{"hami.io/node-nvidia-register": hami(*[10000] * 4)}))
FAMILIES = NVIDIA.families
INIT = "hami.io/vgpu-devices-allocated"
IDS = "volcano.sh/vgpu-ids-new"


def cards_in(family: str) -> list[CardSpec]:
    return [replace(card, family=family) for card in CARDS]


def encoded(pod: Pod, slices: list[Slice], family: str) -> str:
    notes = annotations_for(pod, slices, "n1", cards_in(family), 0.0)
    return notes[FAMILIES[family].keys.allocated]


counts = st.lists(st.integers(0, 2), min_size=1, max_size=3)


@given(st.sampled_from(sorted(FAMILIES)), counts, counts, st.lists(st.booleans(), min_size=3, max_size=3))
def test_what_is_written_is_read_back(
    family: str, apps: list[int], init: list[int], sidecar: list[bool]
) -> None:
    pod = make_pod(
        *[container(f"a{i}", gpu=count, gpumem=5) for i, count in enumerate(apps)],
        init=tuple(
            container(f"i{i}", sidecar=sidecar[i], gpu=count, gpumem=5) for i, count in enumerate(init)
        ),
    )
    request, _ = card_request(pod)
    if request is None:
        return
    slices = [
        Slice(ask.container, at, f"GPU-{at}", 100 * at + 7, at)
        for ask in request.asks
        for at in range(ask.count)
    ]
    notes = annotations_for(pod, slices, "n1", cards_in(family), 12.9)
    keys = FAMILIES[family].keys
    assert notes[keys.node] == "n1"
    assert notes[keys.time] == "12"
    assert notes[keys.to_allocate] == notes[keys.allocated]
    noted = Pod(pod.metadata.__class__("p", annotations=notes), pod.spec)
    pairs = decode(noted, FAMILIES[family], request.asks)
    read, lost = slices_of(pairs, CARDS)
    assert not lost
    assert sorted(read, key=str) == sorted(slices, key=str)


def test_every_container_has_a_segment() -> None:
    pod = make_pod(
        container("a"), container("b", gpu=1), init=(container("i"), container("s", sidecar=True, gpu=1))
    )
    slices = [Slice("s", 0, "GPU-0", 5, 0), Slice("b", 1, "GPU-1", 6, 50)]
    assert encoded(pod, slices, "hami.io") == ";GPU-0,NVIDIA,5,0:;;GPU-1,NVIDIA,6,50:;"
    assert encoded(pod, slices, "volcano.sh") == ";GPU-1,NVIDIA,6,50:;GPU-0,NVIDIA,5,0:"


def read(text: str, pod: Pod, key: str) -> list[tuple[str, str]]:
    request, _ = card_request(pod)
    assert request is not None
    keys = next(form for form in FAMILIES.values() if form.keys.allocated == key)
    noted = Pod(pod.metadata.__class__("p", annotations={key: text}), pod.spec)
    return [(name, part.card) for name, part in decode(noted, keys, request.asks)]


def test_records_without_empty_segments_are_read() -> None:
    """The GPU container behind a container without cards is not taken for an init container."""
    pod = make_pod(container("a", gpu=1, gpumem=5), init=(container("i"),))
    assert read("GPU-3,NVIDIA,5,0:;", pod, INIT) == [("a", "GPU-3")]
    assert read(";GPU-3,NVIDIA,5,0:;", pod, INIT) == [("a", "GPU-3")]
    two = make_pod(container("a"), container("b", number=1), container("c", number=1))
    assert read("GPU-0,NVIDIA,5,0:;GPU-1,NVIDIA,5,0:", two, IDS) == [("b", "GPU-0"), ("c", "GPU-1")]
    assert read(";GPU-0,NVIDIA,5,0:;GPU-1,NVIDIA,5,0:", two, IDS) == [("b", "GPU-0"), ("c", "GPU-1")]


def test_shares_that_fit_no_container_are_booked_without_one() -> None:
    pod = make_pod(container("a", gpu=1, gpumem=5))
    assert read("GPU-0,NVIDIA,5,0:GPU-1,NVIDIA,5,0:;", pod, INIT) == [("", "GPU-0"), ("", "GPU-1")]


def test_a_mig_instance_is_its_card() -> None:
    assert read("GPU-0[1-2],NVIDIA,5,0:", make_pod(container("a", number=1)), IDS) == [("a", "GPU-0")]


@pytest.mark.parametrize(
    "text", ["nonsense", "GPU-0,NVIDIA,x,0:", ",NVIDIA,5,0:", "GPU-0,NVIDIA,-5,0:", ";;"]
)
def test_garbage_is_an_error(text: str) -> None:
    with pytest.raises(RecordError):
        read(text, make_pod(container("a", gpu=1)), INIT)


def test_holds_weigh_init_containers_in() -> None:
    roles = {"i": Role.INIT, "s": Role.SIDECAR, "a": Role.APP}
    slices = [
        Slice("i", 0, "", 100, 10),
        Slice("s", 0, "", 30, 5),
        Slice("a", 0, "", 40, 20),
        Slice("a", 1, "", 7, 0),
    ]
    assert holds_of(slices, roles, {}, 0) == (CardHold(0, 100, 25, 2), CardHold(1, 7, 0, 1))


def test_two_containers_on_one_card_are_both_booked() -> None:
    pod = make_pod(
        container("a", number=1, memory=5000),
        container("b", number=1, memory=5000),
        on="n",
        notes={IDS: "GPU-0,NVIDIA,5000,0:;GPU-0,NVIDIA,5000,0:"},
    )
    choice = DeviceShareSource().recorded(pod, CARDS)
    assert choice is not None
    assert choice.holds == (CardHold(0, 10000, 0, 2),)
    assert choice.problems == ()


def test_a_record_of_zero_memory_holds_the_card() -> None:
    """The container runs without a limit, whatever the record's author thought."""
    pod = make_pod(container("a", gpu=1, gpumem=5), on="n", notes={INIT: "GPU-2,NVIDIA,0,0:;"})
    choice = DeviceShareSource().recorded(pod, CARDS)
    assert choice is not None
    assert choice.holds == (CardHold(2, 10000, 0, 1),)


@pytest.mark.parametrize("notes", [{}, {INIT: "nonsense"}])
def test_an_unknown_holding_is_booked_on_every_card(notes: dict[str, Any]) -> None:
    pod = make_pod(container("a", gpu=1, gpumem=600, gpucores=30), on="n", notes=notes)
    choice = DeviceShareSource().recorded(pod, CARDS)
    assert choice is not None
    assert choice.holds == tuple(CardHold(at, 600, 30, 1) for at in range(4))
    assert "booked on every card" in choice.problems[0].message


def test_a_card_that_is_gone_is_named_and_keeps_its_charge() -> None:
    pod = make_pod(container("a", gpu=1, gpumem=600), on="n", notes={INIT: "GPU-9,NVIDIA,600,0:;"})
    choice = DeviceShareSource().recorded(pod, CARDS)
    assert choice is not None
    assert choice.holds == ()
    assert choice.charge is not None
    assert dict(choice.charge)["nvidia.com/gpumem"] == 600_000
    assert "GPU-9 is not on the node" in choice.problems[0].message


def test_a_node_that_reports_no_cards_leaves_the_charge_as_recorded() -> None:
    """Whole cards were charged by the size of the card that was given, and still are."""
    pod = make_pod(container("a", gpu=1, gpucores=10), on="n", notes={INIT: "GPU-9,NVIDIA,600,10:;"})
    choice = DeviceShareSource().recorded(pod, ())
    assert choice is not None
    assert (choice.slices, choice.holds, choice.problems) == ((), (), ())
    assert dict(choice.charge or ())["nvidia.com/gpumem"] == 600_000


def test_the_starting_order_counts_not_that_of_the_record() -> None:
    """The init container ends before the sidecar starts, though Volcano's record names it last."""
    init = (container("i", number=1, memory=70), container("s", sidecar=True, number=1, memory=60))
    record = "GPU-0,NVIDIA,10,0:;GPU-0,NVIDIA,60,0:;GPU-0,NVIDIA,70,0:"
    pod = make_pod(container("a", number=1, memory=10), init=init, on="n", notes={IDS: record})
    choice = DeviceShareSource().recorded(pod, CARDS)
    assert choice is not None
    assert choice.holds == (CardHold(0, 70, 0, 2),)
    assert choice.charge is not None
    assert dict(choice.charge)["volcano.sh/vgpu-memory"] == 70_000
