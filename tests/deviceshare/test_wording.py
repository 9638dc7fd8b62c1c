"""What people read of cards: units, one name for both spellings, lost work in cards."""

from __future__ import annotations

import pytest

from tests.clusters import group, node, pod
from tests.deviceshare.cards import NOW, ask, card_engine, card_node
from volcano_py.scheduler.framework.contract import lost_text
from volcano_py.scheduler.model.wording import amounts_text, figure, noun

RECORD = "hami.io/vgpu-devices-allocated"


@pytest.mark.parametrize(
    ("mib", "text"),
    [
        (0, "0"),
        (600, "600Mi"),
        (16_000, "16000Mi"),
        (81_920, "80Gi"),
        (573_440, "560Gi"),
        (218_453, "213.33Gi"),
        (640_000 * 1024, "625Ti"),
        (10**12 - 1, "931.32Pi"),
    ],
)
def test_memory_of_cards_has_a_unit(mib: int, text: str) -> None:
    state = card_engine(card_node("n1", 1000)).state
    assert figure(state, "nvidia.com/gpumem", mib * 1000) == text


def test_both_spellings_are_told_once() -> None:
    state = card_engine(card_node("n1", 1000)).state
    amounts = {
        "cpu": 500,
        "nvidia.com/gpumem": 2_048_000,
        "volcano.sh/vgpu-memory": 2_048_000,
        "nvidia.com/gpucores": 150_000,
        "nvidia.com/gpu": 5_500,
    }
    assert amounts_text(state, amounts) == "500m cpu, 5.5 card slots, 150% card cores, 2Gi card memory"


def test_where_no_node_registers_cards_names_are_as_asked() -> None:
    state = card_engine(node("n1", amounts={"nvidia.com/gpu": "8"})).state
    assert (noun(state, "nvidia.com/gpu"), figure(state, "nvidia.com/gpu", 5_500)) == (
        "nvidia.com/gpu",
        "5500m",
    )


def test_odd_amounts_are_rounded() -> None:
    state = card_engine(node("n1")).state
    told = [
        figure(state, "memory", 366_503_875_925),
        figure(state, "cpu", 123_456_789),
        figure(state, "cpu", 42_666),
    ]
    assert told == ["341.33Gi", "123456.8", "42666m"]


@pytest.mark.parametrize(
    ("record", "started", "text"),
    [
        ("n1-GPU-0,NVIDIA,1000,100:n1-GPU-1,NVIDIA,1000,100:;", NOW - 10, "20 card-seconds"),
        ("n1-GPU-0,NVIDIA,250,10:;", NOW - 7200, "0.5 card-hours"),
        ("n1-GPU-0,NVIDIA,1000,100:;", NOW - 5000 * 3600, "5000 card-hours"),
    ],
)
def test_lost_work_is_counted_in_cards(record: str, started: float, text: str) -> None:
    running = ask("a", on="n1", notes={RECORD: record}, gpu=1, gpumem=250)
    engine = card_engine(card_node("n1", 1000, 1000), *running)
    task = engine.state.tasks.index["ml/a-0"]
    engine.state.tasks.started[task] = started
    assert lost_text(engine.open(NOW), task) == text


def test_resources_that_no_node_has_are_named_in_the_refusal() -> None:
    typo = pod("a-0", "a", None, requests={"nvidia.com/gpus": "1", "memry": "1"})
    engine = card_engine(card_node("n1", 1000), group("a", phase="Inqueue"), typo)
    assert engine.cycle(NOW).refusals["ml/a-0"].message == (
        "0/1 nodes are available: 1 Insufficient memry, 1 Insufficient nvidia.com/gpus. "
        'And no node offers memry (did you mean "memory"?); '
        'no node offers nvidia.com/gpus (did you mean "nvidia.com/gpu"?).'
    )


def test_a_share_of_much_memory_is_told_without_powers_of_ten() -> None:
    state = card_engine(card_node("n1", 1000)).state
    assert figure(state, "memory", 5_000_000 * 1024**3 + 1) == "4882.8Ti"
