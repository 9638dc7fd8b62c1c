"""vcctl-py card: who sits on which card."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.e2e.objects import group
from tests.vcctl.person import Person
from tests.vcctl.test_answers import running
from volcano_py.cli.vcctl.card_view import COLOURS, Look, bar, cells_of, picture

CARDS = "GPU-a,10,16384,100,NVIDIA-A100,0,true:GPU-b,10,16384,100,NVIDIA-A100,0,false:"


def on_cards(person: Person, name: str, queue: str, *parts: str) -> None:
    """A running pod whose record gives it *parts* (``uuid,MiB,percent``), one a container's share."""
    record = "".join(
        f"{uuid},NVIDIA,{mib},{cores}:" for uuid, mib, cores in (part.split(",") for part in parts)
    )
    first = parts[0].split(",")
    asks = {
        "cpu": "1",
        "nvidia.com/gpu": str(len(parts)),
        "nvidia.com/gpumem": first[1],
        "nvidia.com/gpucores": first[2],
    }
    notes = {"hami.io/vgpu-node": "n0", "hami.io/vgpu-devices-allocated": f"{record};"}
    running(person, name, "n0", queue, "1", annotations=notes, requests=asks)


def test_who_sits_on_which_card(person: Person) -> None:
    person.cluster.nodes(1, annotations={"hami.io/node-nvidia-register": CARDS})
    person.says("queue", "create", "lab")
    on_cards(person, "small", "lab", "GPU-a,2048,10")
    on_cards(person, "wide", "lab", "GPU-a,6144,40", "GPU-b,6144,40")

    first, second = person.data("card", "n0")["cards"]
    assert (first["uuid"], first["usedMemoryMiB"], first["freeMemoryMiB"]) == ("GPU-a", 8192, 8192)
    assert (first["usedCores"], first["freeCores"], first["usedSlots"], first["slots"]) == (50, 50, 2, 10)
    assert [(pod["pod"], pod["memoryMiB"], pod["cores"]) for pod in first["pods"]] == [
        ("wide-0", 6144, 40),
        ("small-0", 2048, 10),
    ]
    assert first["pods"][0] == {
        "namespace": person.space,
        "pod": "wide-0",
        "containers": ["main"],
        "queue": "lab",
        "memoryMiB": 6144,
        "cores": 40,
        "slots": 1,
        "status": "Running",
        "interruptible": True,
    }
    assert [pod["pod"] for pod in second["pods"]] == ["wide-0"]
    assert not second["healthy"]

    lines = person.says("card", "n0").splitlines()
    assert lines[0] == "card 0  NVIDIA-A100  Healthy  2/10 pods  GPU-a"
    assert "aaaaaaaaaaaaaaabbbbb" in lines[1]
    assert lines[1].endswith("8192/16384 MiB")
    assert f"  a {person.space}/wide-0 (main)  6144 MiB  40 %  queue lab  Running" in lines
    assert "8192 MiB  50 %  8 more pods" in lines[5]
    assert lines[-1].endswith("it takes none while it is unhealthy")
    assert "aaaaaaaaaaaaaaaaaaaa" in person.says("card", "n0", "--by", "queue")


def test_who_ended_sits_on_no_card(person: Person) -> None:
    person.cluster.nodes(1, annotations={"hami.io/node-nvidia-register": CARDS})
    on_cards(person, "done", "default", "GPU-a,2048,10")
    over = {"status": {"phase": "Succeeded"}}
    person.cluster.patch("Pod", f"{person.space}/done-0", over, sub="status")
    assert person.data("card", "n0")["cards"][0]["pods"] == []


def test_nodes_without_cards_and_nodes_that_are_none(person: Person) -> None:
    person.cluster.nodes(2)
    assert person.says("card", "n1") == "n1 reports no cards.\n"
    assert person.data("cards", "n1") == {"node": "n1", "cards": []}
    assert "Node n9 does not exist\n  there are n0, n1" in person.refused("card", "n9")
    person.cluster.create(group(person.space, "lone", 1))
    refused = person.refused("explain", "podgroup", "none", "-n", person.space)
    assert f"PodGroup none does not exist in namespace {person.space}" in refused
    assert refused.endswith("there is lone\n")


# -- drawn --------------------------------------------------------------------------------------


def pod(name: str, memory: int, cores: int, queue: str = "q") -> dict[str, Any]:
    return {
        "namespace": "ns",
        "pod": name,
        "containers": ["main"],
        "queue": queue,
        "memoryMiB": memory,
        "cores": cores,
        "slots": 1,
        "status": "Running",
    }


def card(*pods: dict[str, Any], memory: int = 100) -> dict[str, Any]:
    used, cores = sum(one["memoryMiB"] for one in pods), sum(one["cores"] for one in pods)
    return {
        "card": 0,
        "uuid": "GPU-a",
        "type": "A100",
        "mode": "mig",
        "healthy": True,
        "memoryMiB": memory,
        "usedMemoryMiB": used,
        "freeMemoryMiB": memory - used,
        "cores": 100,
        "coreUnit": "%",
        "usedCores": cores,
        "freeCores": 100 - cores,
        "slots": 7,
        "usedSlots": len(pods),
        "pods": [*pods],
    }


def test_cores_that_are_counted_are_not_called_percent(person: Person) -> None:
    """A template of an Ascend card is so many of its AI cores."""
    register = '[{"id":"A-0","count":4,"devmem":65536,"devcore":20,"type":"Ascend910B3","health":true}]'
    person.cluster.nodes(1, annotations={"hami.io/node-register-Ascend910B3": register})
    (card,) = person.data("card", "n0")["cards"]
    assert (card["cores"], card["freeCores"], card["coreUnit"]) == (20, 20, "cores")
    assert "0/20 cores" in person.says("card", "n0")
    assert "0/20 cores" in person.says("top", "cards")


def test_a_picture() -> None:
    lines = [line.plain for line in picture([card(pod("a", 50, 25), pod("b", 25, 0, ""))], Look())]
    assert lines == [
        "card 0  A100  mig  Healthy  2/7 pods  GPU-a",
        "  memory aaaaaaaaaaaaaaaaaaaabbbbbbbbbb..........  75/100 MiB",
        "  cores  aaaaaaaaaa..............................  25/100 %",
        "  a ns/a (main)  50 MiB  25 %  queue q  Running",
        "  b ns/b (main)  25 MiB  0 %  Running",
        "  . free  25 MiB  75 %  5 more pods",
    ]


def test_a_pod_has_one_colour_on_all_cards() -> None:
    coloured = Look(coloured=True, plain=False)
    lines = [*picture([card(pod("a", 50, 25), pod("b", 25, 0)), card(pod("b", 25, 0))], coloured)]
    styles = {str(span.style) for line in lines if "ns/b" in line.plain for span in line.spans} & {*COLOURS}
    assert styles == {COLOURS[1]}
    assert lines[1].plain.count("█") == 30


@pytest.mark.parametrize("by", ["pod", "queue"])
def test_by_what_has_a_colour(by: str) -> None:
    lines = [*picture([card(pod("a", 50, 0), pod("b", 50, 0))], Look(by=by))]
    assert lines[1].plain.count("b") == {"pod": 20, "queue": 0}[by]


PARTS = st.lists(st.integers(0, 200), max_size=60).map(lambda amounts: list(enumerate(amounts)))


@given(PARTS, st.integers(0, 300), st.integers(1, 50))
def test_whoever_has_something_is_seen_and_no_bar_is_too_long(
    parts: list[tuple[int, int]], whole: int, width: int
) -> None:
    cells = cells_of(parts, whole, width)
    assert sum(count for _, count in cells) <= width
    assert all(count > 0 for _, count in cells)
    assert [number for number, _ in cells] == [number for number, amount in parts if amount][:width]
    assert len(bar(parts, whole, Look(), width)) == width
