"""What queues are charged for cards, and what nodes are said to offer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clusters import node, queue
from tests.deviceshare.cards import NOW, ask, card_engine, card_node, hami, make_node
from volcano_py.plugins.deviceshare.register import cards_of
from volcano_py.plugins.deviceshare.source import DeviceShareSource
from volcano_py.scheduler.engine import Engine


def charged(engine: Engine, name: str = "default") -> dict[str, int]:
    state = engine.state
    found = state.queues.named(name)
    assert found is not None
    return {
        key: amount // 1000
        for key, amount in state.vocabulary.amounts(state.queues.allocated[found.row]).items()
    }


BOTH = {"nvidia.com/gpu", "volcano.sh/vgpu-number"}, {"nvidia.com/gpumem", "volcano.sh/vgpu-memory"}


@pytest.mark.parametrize("limits", [{"gpu": 2, "gpumem": 300}, {"number": 2, "memory": 300}])
def test_memory_is_charged_for_every_card_under_both_names(limits: dict[str, Any]) -> None:
    engine = card_engine(card_node("n1", 1000, 1000), *ask("a", **limits))
    engine.cycle(NOW)
    amounts = charged(engine)
    assert {amounts[name] for name in BOTH[0]} == {2}
    assert {amounts[name] for name in BOTH[1]} == {600}


def test_a_percentage_is_charged_by_the_card_that_was_chosen() -> None:
    wish = {"nvidia.com/use-gpuuuid": "n1-GPU-0"}
    engine = card_engine(card_node("n1", 1000, 4000), *ask("a", notes=wish, gpu=1, percent=50))
    klass = engine.state.classes[0]
    column = engine.state.vocabulary.column("nvidia.com/gpumem")
    assert klass.charge[column] == 2_000_000
    engine.cycle(NOW)
    assert charged(engine)["nvidia.com/gpumem"] == 500


def test_the_largest_card_may_come_after_the_pod() -> None:
    """Charges do not depend on the order in which objects arrive."""
    documents = [card_node("n1", 1000), card_node("n2", 4000), *ask("a", gpu=1, percent=50)]
    orders = (documents, documents[::-1], [documents[3], documents[1], documents[2], documents[0]])
    pending = []
    for order in orders:
        state = card_engine(*order).state
        found = state.queues.named("default")
        assert found is not None
        pending.append(state.vocabulary.amounts(state.queues.pending[found.row]))
    assert pending[0]["nvidia.com/gpumem"] == 2_000_000
    assert pending[1] == pending[2] == pending[0]


def test_plain_clusters_are_charged_what_they_have() -> None:
    plain = node("n1", "64", "512Gi", amounts={"nvidia.com/gpu": "2"})
    engine = card_engine(plain, *ask("a", gpu=2))
    engine.cycle(NOW)
    assert charged(engine) == {"nvidia.com/gpu": 2, "pods": 1}


def test_totals_carry_both_names() -> None:
    total = card_engine(card_node("n1", 1000, 4000, family="volcano.sh")).state
    amounts = total.vocabulary.amounts(total.total())
    assert amounts["nvidia.com/gpumem"] == amounts["volcano.sh/vgpu-memory"] == 5_000_000
    assert amounts["nvidia.com/gpu"] == amounts["volcano.sh/vgpu-number"] == 20_000
    assert amounts["nvidia.com/gpucores"] == 200_000


def test_the_rare_spellings_share_a_column() -> None:
    state = card_engine(queue("q", capability={"nvidia.com/gpu-mem": "5"})).state
    assert state.vocabulary.column("nvidia.com/gpu-mem") == state.vocabulary.column("nvidia.com/gpumem")


def test_a_node_offers_its_shares_under_each_name_but_those_the_kubelet_has_nothing_left_of() -> None:
    source = DeviceShareSource()
    cards = cards_of(make_node(**{"hami.io/node-nvidia-register": hami(1000, 1000)}))
    stated = {"cpu": 4000, "nvidia.com/gpu": 20_000, "volcano-py.io/accelerator": 20_000}
    offered = source.offers(stated, cards)
    assert offered["volcano.sh/vgpu-number"] == offered["nvidia.com/gpu"] == 20_000
    assert offered["nvidia.com/gpumem"] == 2_000_000
    assert "volcano-py.io/accelerator" not in offered
    offered = source.offers({**stated, "volcano.sh/vgpu-number": 0}, cards)
    assert (offered["volcano.sh/vgpu-number"], offered["nvidia.com/gpu"]) == (0, 20_000)


def test_a_node_whose_plugin_is_away_is_none_the_smaller() -> None:
    """Queues would lose what is theirs, and be reclaimed from, while an agent starts again."""
    source = DeviceShareSource()
    cards = cards_of(make_node(**{"hami.io/node-nvidia-register": hami(1000, 1000)}))
    offered = source.offers({"nvidia.com/gpu": 0, "volcano.sh/vgpu-number": 0}, cards)
    assert (offered["volcano.sh/vgpu-number"], offered["nvidia.com/gpu"]) == (20_000, 20_000)
