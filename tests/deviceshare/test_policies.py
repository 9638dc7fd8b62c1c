"""What the placement policies are told: kinds of pods on nodes, typical asks, and cards named before."""

from __future__ import annotations

import numpy as np

from tests.clusters import node
from tests.deviceshare.cards import NOW, SPELLINGS, ask, card_engine, card_node
from volcano_py.plugins.deviceshare import DeviceSharePlugin
from volcano_py.plugins.deviceshare.facts import CardFacts
from volcano_py.plugins.deviceshare.kinds import KindBook
from volcano_py.plugins.deviceshare.mix import Mix, PastAsk
from volcano_py.plugins.deviceshare.placement import CardAsk
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.framework.view import NodeView
from volcano_py.scheduler.model.cards import CardChoice, CardHold

RECORD = "hami.io/vgpu-devices-allocated"


def held(name: str, card: int, memory: int) -> list[dict[str, object]]:
    notes = {RECORD: f"n1-GPU-{card},NVIDIA,{memory},0:;"}
    return ask(name, on="n1", notes=notes, gpu=1, gpumem=memory)


def test_kinds_follow_pods_that_come_and_go() -> None:
    engine = card_engine(card_node("n1", 1000, 1000), *held("a", 0, 500))
    state = engine.state
    row = state.nodes.index["n1"]
    book = KindBook(state)
    assert book.bits[row] == 1, "a slice runs there"
    for document in held("b", 1, 1000):
        engine.apply(document)
    assert book.bits[row] == 1 | 2, "and one whole card"
    engine.delete("Pod", "ml/a-0")
    assert book.bits[row] == 2
    engine.delete("Pod", "ml/b-0")
    assert book.bits[row] == 0


def test_a_new_book_of_kinds_replaces_the_old_one() -> None:
    state = card_engine(card_node("n1", 1000)).state
    KindBook(state)
    book = KindBook(state)
    assert [it for it in state.accounts.observers if isinstance(it, KindBook)] == [book]


def test_the_mix_is_taken_again_when_it_has_drifted() -> None:
    engine = card_engine(card_node("n1", 1000))
    for at in range(20):
        for document in ask(f"p{at}", gpu=1, gpumem=250):
            engine.apply(document)
    state, mix = engine.state, Mix(())
    facts = CardFacts(state)
    assert mix.drifted(state, facts)
    assert mix.take(state, facts) == [(CardAsk(0, 0, 250, 1, None), 20)]
    assert not mix.drifted(state, facts)
    for document in ask("more", gpu=1, gpumem=250):
        engine.apply(document)
    assert not mix.drifted(state, facts), "a twentieth more is no drift"
    for at in range(4):
        for document in ask(f"q{at}", gpu=1, gpumem=250):
            engine.apply(document)
    assert mix.drifted(state, facts)


def test_a_history_names_models_by_what_nodes_report() -> None:
    engine = card_engine(card_node("n1", 1000))
    past = PastAsk(cpu_milli=4000, cards=1, card_milli=500, types=("a100",), count=7)
    facts = CardFacts(engine.state)
    assert Mix((past,)).take(engine.state, facts) == [(CardAsk(4000, 0, 500, 1, frozenset({0})), 7)]


def card_plugin(engine: Engine) -> DeviceSharePlugin:
    (plugin,) = [plugin for plugin in engine.plugins if isinstance(plugin, DeviceSharePlugin)]
    return plugin


def test_cards_named_before_are_forgotten_when_the_node_changes() -> None:
    engine = card_engine(card_node("n1", 1000, 1000), *ask("a", gpu=1, gpumem=600), SchedulePolicy="best-fit")
    session = engine.open(NOW)
    state, plugin = engine.state, card_plugin(engine)
    klass = state.classes[int(state.tasks.klass[state.tasks.index["ml/a-0"]])]
    row = state.nodes.index["n1"]
    (scorer,) = [entry.call for entry in session.points.node_order]
    scorer.score(klass, NodeView(state, np.array([row], np.int32)))
    assert plugin.choose(klass, row, False).slices[0].card == 0
    state.cards.book("used", row, CardChoice((), (CardHold(0, 700, 0, 1),)), 1)
    state.nodes.touch(row)
    assert plugin.choose(klass, row, False).slices[0].card == 1


def test_the_same_memory_is_more_of_a_smaller_card() -> None:
    """Best fit looks at parts of cards: 500 of 1000 leaves less than 500 of 4000."""
    big = node("n1", "64", "512Gi", amounts={SPELLINGS["gpu"]: "10"})
    big["metadata"] = card_node("n1", 4000)["metadata"]
    engine = card_engine(big, card_node("n2", 1000), *ask("a", gpu=1, gpumem=500), SchedulePolicy="best-fit")
    assert [decision.node for decision in engine.cycle(NOW).decisions] == ["n2"]
