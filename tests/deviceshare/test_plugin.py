"""The plugin in the engine: whole cases, most of them from what went wrong elsewhere."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.clusters import Document, group, node, pod
from tests.deviceshare.cards import NOW, ask, bound, card_engine, card_node, hami
from volcano_py.crds.schedulerconfig import Arguments, ConfigError, parse_scheduler_config
from volcano_py.plugins.deviceshare import DeviceSharePlugin
from volcano_py.plugins.deviceshare.placement import POLICIES
from volcano_py.scheduler.engine import Engine

RECORD = "hami.io/vgpu-devices-allocated"


def refusal(engine: Engine, name: str) -> str:
    return engine.cycle(NOW).refusals[f"ml/{name}-0"].message


def cards(engine: Engine, name: str) -> list[str]:
    return [part[1] for part in bound(engine.cycle(NOW))[f"{name}-0"]]


# -- either spelling, either node --------------------------------------------------------------


@pytest.mark.parametrize("family", ["hami.io", "volcano.sh"])
@pytest.mark.parametrize(
    "limits",
    [
        {"gpu": 1, "gpumem": 4000},
        {"number": 1, "memory": 4000},
        {"gpu": 1, "gpu_mem": 4000},
        {"memory": 4000},
    ],
)
def test_either_spelling_fits_either_node(family: str, limits: dict[str, Any]) -> None:
    engine = card_engine(card_node("n1", 10000, family=family), *ask("a", **limits))
    ((_, _, memory, cores),) = bound(engine.cycle(NOW))["a-0"]
    assert (memory, cores) == (4000, 0)


def test_whole_cards_of_a_node_without_registered_cards_are_counted() -> None:
    plain = node("n1", "64", "512Gi", amounts={"nvidia.com/gpu": "2"})
    engine = card_engine(plain, *ask("a", gpu=1), *ask("b", gpu=1), *ask("c", gpu=1))
    result = engine.cycle(NOW)
    assert bound(result) == {"a-0": [], "b-0": []}
    assert "Insufficient nvidia.com/gpu" in result.refusals["ml/c-0"].message


def test_slices_need_registered_cards() -> None:
    plain = node("n1", "64", "512Gi", amounts={"nvidia.com/gpu": "2"})
    engine = card_engine(plain, *ask("a", gpu=1, gpumem=5))
    assert "no card slices registered" in refusal(engine, "a")


def test_whole_cards_beside_slices() -> None:
    """Of two cards one is sliced: one whole card is left, however many shares the node counts."""
    engine = card_engine(
        card_node("n1", 10000, 10000), *ask("a", gpu=1, gpumem=10), *ask("b", gpu=1), *ask("c", gpu=1)
    )
    result = engine.cycle(NOW)
    assert [part[1:] for part in bound(result)["b-0"]] == [("n1-GPU-1", 10000, 100)]
    assert "ml/c-0" in result.refusals


def test_an_unreadable_register_is_no_plain_node() -> None:
    """Its shares must not be handed out as whole cards; its CPU may be."""
    broken = node("n1", "64", "512Gi", annotations={"hami.io/node-nvidia-register": "[{"})
    broken["status"]["allocatable"]["nvidia.com/gpu"] = "10"
    engine = card_engine(broken, *ask("a", gpu=1), *ask("b", cpu=1))
    result = engine.cycle(NOW)
    assert bound(result) == {"b-0": []}
    assert "not a list of cards" in engine.state.doubts["Node n1"][0].message


# -- reasons -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "notes", "reason"),
    [
        ({"gpu": 1, "gpumem": 9000}, {}, "card memory (largest free slice 8000Mi, asked 9000Mi)"),
        ({"gpu": 1, "gpumem": "16Gi"}, {}, "the number is in MiB and takes no unit"),
        ({"gpu": 2, "gpumem": 7500}, {}, "asked 7500Mi on each of 2 cards"),
        ({"number": 1}, {}, "asked a whole card"),
        ({"gpu": 3, "gpumem": 10}, {}, "container asks 3 cards, node has 2"),
        ({"gpu": 1, "gpumem": 10, "gpucores": 90}, {}, "card cores (most free 80%, asked 90%)"),
        ({"gpu": 1, "gpumem": 10, "gpucores": 100}, {}, "card cores (most free 80%, asked 100%)"),
        (
            {"gpu": 1, "gpumem": 10},
            {"nvidia.com/use-gputype": "H100"},
            "no card of type h100 (there is NVIDIA-A100)",
        ),
        ({"gpu": 1, "gpumem": 10}, {"nvidia.com/use-gpuuuid": "GPU-9"}, "no card called GPU-9"),
        ({"gpu": 1, "gpumem": 10}, {"hami.io/gpu-scheduler-policy": "mutex"}, "asked for exclusive use"),
    ],
)
def test_reasons_name_the_obstacle(limits: dict[str, Any], notes: dict[str, str], reason: str) -> None:
    held = [
        *ask("x", on="n1", notes={RECORD: "n1-GPU-0,NVIDIA,2000,20:;"}, gpu=1, gpumem=2000, gpucores=20),
        *ask("y", on="n1", notes={RECORD: "n1-GPU-1,NVIDIA,3000,30:;"}, gpu=1, gpumem=3000, gpucores=30),
    ]
    engine = card_engine(card_node("n1", 10000, 10000), *held, *ask("a", notes=notes, **limits))
    assert reason in refusal(engine, "a")


def test_unhealthy_and_cordoned_cards_are_said_to_be() -> None:
    closed = card_node("n1", 10000, annotations={"hami.io/device-cordon": "n1-GPU-0"})
    assert "unhealthy, cordoned" in refusal(card_engine(closed, *ask("a", gpu=1, gpumem=10)), "a")


def test_a_uuid_is_honoured() -> None:
    wish = {"nvidia.com/use-gpuuuid": "n1-GPU-2", "nvidia.com/nouse-gpuuuid": "n1-GPU-0"}
    engine = card_engine(card_node("n1", 1000, 1000, 1000), *ask("a", notes=wish, gpu=1, gpumem=10))
    assert cards(engine, "a") == ["n1-GPU-2"]


def test_cards_in_mig_mode_take_no_slice() -> None:
    cut = card_node("n1", 1000)
    notes = cut["metadata"]["annotations"]
    notes["hami.io/node-nvidia-register"] = notes["hami.io/node-nvidia-register"].replace("hami-core", "mig")
    assert "in MIG mode" in refusal(card_engine(cut, *ask("a", gpu=1, gpumem=10)), "a")


# -- books -------------------------------------------------------------------------------------


def test_the_same_event_again_books_nothing_again() -> None:
    running = ask("a", on="n1", notes={RECORD: "n1-GPU-0,NVIDIA,4096,0:;"}, gpu=1, gpumem=4096)
    engine = card_engine(card_node("n1", 10240), *running, *running, running[1])
    assert engine.state.cards.used_memory[0, 0] == 4096
    engine.delete("Pod", "ml/a-0")
    assert not engine.state.cards.used_memory.any()
    assert not engine.state.cards.used_slots.any()


def test_decided_cards_stay_booked_until_the_cluster_has_heard() -> None:
    """An event of the pod as it was before its binding must not take the cards off the books."""
    first = ask("a", gpu=1, gpumem=6000)
    engine = card_engine(card_node("n1", 10000, 10000), *first)
    assert "a-0" in bound(engine.cycle(NOW))
    touched = copy.deepcopy(first[1])
    touched["metadata"]["labels"] = {"seen": "yes"}
    engine.apply(touched)
    assert engine.state.cards.used_memory[0].tolist() == [6000, 0]


def test_decided_cards_follow_their_identity() -> None:
    """The node lists its cards in another order before the binding is seen."""
    engine = card_engine(card_node("n1", 1000, 2000), *ask("a", gpu=1, gpumem=1500))
    assert cards(engine, "a") == ["n1-GPU-1"]
    turned = card_node("n1", 1000, 2000)
    turned["metadata"]["annotations"]["hami.io/node-nvidia-register"] = (
        "["
        + ",".join(reversed(hami(1000, 2000, prefix="n1-GPU")[1:-1].replace("}, {", "}|{").split("|")))
        + "]"
    )
    engine.apply(turned)
    assert engine.state.cards.memory[0].tolist() == [2000, 1000]
    assert engine.state.cards.used_memory[0].tolist() == [1500, 0]


def test_a_card_that_returns_is_still_held() -> None:
    running = ask("a", on="n1", notes={RECORD: "n1-GPU-0,NVIDIA,600,0:;"}, gpu=1, gpumem=600)
    engine = card_engine(card_node("n1", 1000), *running)
    other = card_node("n1", 1000)
    other["metadata"]["annotations"]["hami.io/node-nvidia-register"] = hami(1000, prefix="new")
    engine.apply(other)
    assert engine.state.cards.used_memory[0].tolist() == [0]
    assert "n1-GPU-0 is not on the node" in engine.state.doubts["Pod ml/a-0"][0].message
    engine.apply(card_node("n1", 1000))
    assert engine.state.cards.used_memory[0].tolist() == [600]


def test_a_pod_without_a_record_frees_no_card() -> None:
    engine = card_engine(
        card_node("n1", 1000, 1000), *ask("x", on="n1", gpu=1, gpumem=600), *ask("a", gpu=1, gpumem=500)
    )
    assert "largest free slice 400Mi" in refusal(engine, "a")
    assert "no record" in engine.state.doubts["Pod ml/x-0"][0].message


def test_a_finished_pod_gives_its_cards_back() -> None:
    running = ask("a", on="n1", notes={RECORD: "n1-GPU-0,NVIDIA,600,100:;"}, gpu=1, gpumem=600, gpucores=100)
    engine = card_engine(card_node("n1", 1000), *running, *ask("b", gpu=1))
    assert "ml/b-0" in engine.cycle(NOW).refusals
    ended = copy.deepcopy(running[1])
    ended["status"]["phase"] = "Succeeded"
    engine.apply(ended)
    assert cards(engine, "b") == ["n1-GPU-0"]


def test_exclusive_use_outlives_the_init_phase() -> None:
    """The card of a pod with an init container that has ended takes no neighbour."""
    held = pod(
        "x-0",
        "x",
        None,
        on="n1",
        requests={"nvidia.com/gpu": "1"},
        annotations={RECORD: ";n1-GPU-0,NVIDIA,1000,100:;"},
        initContainers=[{"name": "i", "image": "busybox"}],
    )
    engine = card_engine(
        card_node("n1", 1000), group("x", phase="Running"), held, *ask("b", gpu=1, gpumem=10)
    )
    assert "ml/b-0" in engine.cycle(NOW).refusals


# -- orders and policies -----------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "node_name"), [("binpack", "n1"), ("spread", "n2")])
def test_packing_and_spreading_reach_nodes(policy: str, node_name: str) -> None:
    held = ask("x", on="n1", notes={RECORD: "n1-GPU-0,NVIDIA,500,0:;"}, gpu=1, gpumem=500)
    documents = [card_node("n1", 1000), card_node("n2", 1000), *held]
    engine = card_engine(*documents, *ask("a", gpu=1, gpumem=100), SchedulePolicy=policy)
    ((chosen, _, _, _),) = bound(engine.cycle(NOW))["a-0"]
    assert chosen == node_name


def test_a_pod_may_wish_another_order() -> None:
    held = ask("x", on="n1", notes={RECORD: "n1-GPU-0,NVIDIA,500,0:;"}, gpu=1, gpumem=500)
    wish = {"hami.io/node-scheduler-policy": "binpack", "hami.io/gpu-scheduler-policy": "spread"}
    documents = [card_node("n1", 1000, 1000), card_node("n2", 1000, 1000), *held]
    engine = card_engine(*documents, *ask("a", notes=wish, gpu=1, gpumem=100), SchedulePolicy="spread")
    assert cards(engine, "a") == ["n1-GPU-1"]


@pytest.mark.parametrize("policy", ["binpack", "spread", *POLICIES])
def test_every_policy_fills_the_cluster_within_its_cards(policy: str) -> None:
    """40 pods of several kinds on cards of two sizes; nothing is booked beyond a card."""
    documents: list[Document] = [card_node("n1", 1000, 1000), card_node("n2", 3000, 3000, 3000, 3000)]
    kinds: list[dict[str, Any]] = [
        {"gpu": 1, "gpumem": 333},
        {"number": 1, "vpercent": 50},
        {"gpu": 2, "gpumem": 900},
        {"gpu": 1},
        {"cpu": 1},
    ]
    for at in range(40):
        documents += ask(f"p{at:02d}", **kinds[at % len(kinds)])
    engine = card_engine(*documents, SchedulePolicy=policy)
    result = engine.cycle(NOW)
    within_cards(engine)
    assert len(bound(result)) >= 14
    again = card_engine(*documents, SchedulePolicy=policy).cycle(NOW)
    assert again.decisions == result.decisions


def within_cards(engine: Engine) -> None:
    table = engine.state.cards
    assert (table.used_memory <= table.memory).all()
    assert (table.used_cores <= table.cores).all()
    assert (table.used_slots <= table.slots).all()
    held = np.zeros_like(table.used_memory)
    for task, choice in engine.state.tasks.slices.items():
        for hold in choice.holds:
            held[engine.state.tasks.node[task], hold.card] += hold.memory_mib
    assert (held == table.used_memory).all()


limits = st.one_of(
    st.fixed_dictionaries({"gpu": st.integers(1, 3), "gpumem": st.integers(1, 1200)}),
    st.fixed_dictionaries({"number": st.integers(1, 2), "vpercent": st.integers(0, 100)}),
    st.fixed_dictionaries(
        {"gpu": st.integers(1, 2), "gpumem": st.integers(1, 500), "gpucores": st.integers(0, 100)}
    ),
    st.fixed_dictionaries({"gpu": st.integers(1, 2)}),
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([500, 1000]), min_size=1, max_size=3), min_size=1, max_size=3),
    st.lists(limits, min_size=1, max_size=12),
    st.sampled_from(["binpack", "spread", "best-fit"]),
)
def test_bookings_never_exceed_a_card(
    nodes: list[list[int]], asks: list[dict[str, Any]], policy: str
) -> None:
    documents = [card_node(f"n{at}", *memories, slots=3) for at, memories in enumerate(nodes)]
    for at, wanted in enumerate(asks):
        documents += ask(f"p{at:02d}", **wanted)
    engine = card_engine(*documents, SchedulePolicy=policy)
    first = engine.cycle(NOW)
    within_cards(engine)
    engine.settle(NOW)
    second = engine.cycle(NOW)
    within_cards(engine)
    assert not second.decisions, "what fits was found in the first cycle"
    assert len(bound(first)) + len(second.refusals) == len(asks)
    exclusive = [
        (hold.card, int(engine.state.tasks.node[task]))
        for task, choice in engine.state.tasks.slices.items()
        for hold in choice.holds
        if hold.cores == 100
    ]
    for card, row in exclusive:
        assert engine.state.cards.used_slots[row, card] == 1


def test_history_replaces_the_pods_seen() -> None:
    past = [{"cpuMilli": 1000, "cards": 1, "cardMilli": 500, "count": 9}]
    engine = card_engine(
        card_node("n1", 1000), *ask("a", gpu=1, gpumem=10), SchedulePolicy="expected-fill", typicalAsks=past
    )
    assert "a-0" in bound(engine.cycle(NOW))


# -- arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("deviceshare.SchedulePolicy", "pack", "must be one of binpack, spread, topology-aware, random"),
        ("deviceshare.ScheduleWeight", -1, "must not be negative"),
        ("deviceshare.ScheduleWeight", "ten", "must be a number"),
        ("deviceshare.Nonsense", 1, "unknown argument"),
        ("deviceshare.typicalAsks", [{"cards": -1}], "cards must be a whole number"),
        ("deviceshare.typicalAsks", [{"gpus": 1}], "must have the keys"),
        ("deviceshare.NodeLockEnable", "perhaps", "true or false"),
        ("deviceshare.AscendMindClusterVNPUEnable", True, "run HAMi's ascend-device-plugin"),
        ("deviceshare.GPUExclusiveRules", [["app", "x"]], "mappings of labels"),
        ("deviceshare.DeviceConfig", ["nvidia"], "must be a mapping"),
        ("deviceshare.DeviceConfig", {"vnpus": [{"chipName": "910X"}]}, "is no chip with commonWord"),
        ("deviceshare.DeviceConfig", {"nvidia": {"knownMigGeometries": [1]}}, "models and allowedGeometries"),
    ],
)
def test_wrong_arguments_stop_the_start(key: str, value: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        DeviceSharePlugin(Arguments("plugin deviceshare", {key: value}))
    assert key in str(refused.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("deviceshare.GPUSharingEnable", True),
        ("deviceshare.GPUNumberEnable", True),
        ("deviceshare.NodeLockEnable", True),
        ("deviceshare.AscendHAMiVNPUEnable", True),
        ("deviceshare.AscendMindClusterVNPUEnable", False),
        ("deviceshare.KnownGeometriesCMName", "volcano-vgpu-device-config"),
        ("deviceshare.KnownGeometriesCMNamespace", "volcano-system"),
        ("deviceshare.GPUExclusiveRules", [{"app": "x"}]),
    ],
)
def test_what_volcano_takes_is_taken(key: str, value: object) -> None:
    DeviceSharePlugin(Arguments("plugin deviceshare", {key: value}))


def test_switched_off_cards_are_plain_resources() -> None:
    config = {
        "actions": "allocate",
        "tiers": [{"plugins": [{"name": "deviceshare", "arguments": {"deviceshare.VGPUEnable": False}}]}],
    }
    engine = Engine(parse_scheduler_config(config))
    for document in (card_node("n1", 1000), *ask("a", gpu=1, gpumem=10)):
        engine.apply(document)
    assert "Insufficient nvidia.com/gpumem" in engine.cycle(NOW).refusals["ml/a-0"].message
