"""What init containers held of cards is free once all of them have ended well, and not before."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.clusters import Document, group, pod
from tests.deviceshare.cards import NOW, bound, card_engine, card_node
from volcano_py.crds.cards.instances import INSTANCES, InstanceEntry, Placement, encode_instances
from volcano_py.scheduler.engine import Engine
from volcano_py.simulator.card_shorthand import node_cards

RECORD = "hami.io/vgpu-devices-allocated"


def running(record: str, *init: dict[str, Any]) -> Document:
    """A pod on n1 whose app holds 200 MiB; *init* are its init containers, *record* all they hold."""
    return pod(
        "x-0",
        "x",
        None,
        on="n1",
        requests={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "200"},
        annotations={RECORD: record},
        initContainers=list(init),
    )


def loads(name: str, mib: int, **more: Any) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(mib)}
    return {"name": name, "image": "busybox", "resources": {"limits": limits}, **more}


def ended(document: Document, *names: str, code: int = 0) -> Document:
    """*document* once the init containers *names* have ended with *code*."""
    later = copy.deepcopy(document)
    later["status"]["initContainerStatuses"] = [
        {"name": name, "state": {"terminated": {"exitCode": code}}} for name in names
    ]
    return later


def used(engine: Engine) -> list[int]:
    books: list[int] = engine.state.cards.used_memory[0].tolist()
    return books


def test_their_slices_are_free_when_all_have_ended() -> None:
    made = running(
        "n1-GPU-0,NVIDIA,900,0:;n1-GPU-1,NVIDIA,700,0:;n1-GPU-0,NVIDIA,200,0:;",
        loads("i", 900),
        loads("j", 700),
    )
    engine = card_engine(card_node("n1", 1000, 1000), group("x", phase="Running"), made)
    assert used(engine) == [900, 700]
    engine.apply(ended(made, "i"))
    assert used(engine) == [900, 700]
    engine.apply(ended(made, "i", "j", code=1))
    assert used(engine) == [900, 700]
    engine.apply(ended(made, "i", "j"))
    assert used(engine) == [200, 0]
    again = card_engine(card_node("n1", 1000, 1000), group("x", phase="Running"), ended(made, "i", "j"))
    assert used(again) == [200, 0], "a restart reads the same"


def test_a_neighbour_gets_what_is_free_then() -> None:
    made = running("n1-GPU-0,NVIDIA,900,0:;n1-GPU-0,NVIDIA,200,0:;", loads("i", 900))
    waiting = pod("b-0", "b", None, requests={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "800"})
    engine = card_engine(
        card_node("n1", 1000), group("x", phase="Running"), made, group("b", phase="Inqueue"), waiting
    )
    assert "ml/b-0" in engine.cycle(NOW).refusals
    engine.apply(ended(made, "i"))
    assert bound(engine.cycle(NOW))["b-0"] == [("n1", "n1-GPU-0", 800, 0)]


def test_sidecars_hold_on() -> None:
    made = running(
        "n1-GPU-0,NVIDIA,300,0:;n1-GPU-0,NVIDIA,600,0:;n1-GPU-0,NVIDIA,200,0:;",
        loads("s", 300, restartPolicy="Always"),
        loads("i", 600),
    )
    engine = card_engine(card_node("n1", 1000), group("x", phase="Running"), ended(made, "i"))
    assert used(engine) == [500]


@pytest.mark.parametrize("over", [False, True])
def test_an_instance_stays_for_the_pods_life(over: bool) -> None:
    """MIG instances are not given back one by one."""
    notes, amounts = node_cards("n1", {"memory": 81920, "mode": "mig", "instances": "a100"})
    made = running("n1-0,NVIDIA,9728,15:;n1-0,NVIDIA,9728,15:;", loads("i", 9000))
    entries = [InstanceEntry(at, 0, "n1-0", "1g.10gb", Placement(6 - at, 1)) for at in range(2)]
    made["metadata"]["annotations"][INSTANCES] = encode_instances(entries)
    node = card_node("n1")
    node["metadata"]["annotations"] = notes
    node["status"]["allocatable"] |= amounts
    engine = card_engine(node, group("x", phase="Running"), ended(made, "i") if over else made)
    assert int(engine.state.cards.used_parts[0, 0]).bit_count() == 2
