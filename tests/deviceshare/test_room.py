"""Free room now and in the future, and nodes the card table does not reach."""

from __future__ import annotations

import numpy as np

from tests.clusters import node
from tests.deviceshare.cards import card_engine, card_node
from volcano_py.plugins.deviceshare.facts import CardFacts
from volcano_py.plugins.deviceshare.room import Room, room_of
from volcano_py.scheduler.model.cards import CardChoice, CardHold


def choice(memory: int, cores: int) -> CardChoice:
    return CardChoice((), (CardHold(0, memory, cores, 1),))


def test_leaving_serves_the_future_and_promises_wait_for_it() -> None:
    state = card_engine(card_node("n1", 1000)).state
    row = state.nodes.index["n1"]

    def free(*, future: bool) -> tuple[int, int, int, int]:
        room = room_of(state.cards, CardFacts(state), None, np.array([row], np.int32), future=future)
        return tuple(int(x[0, 0]) for x in (room.memory, room.cores, room.slots, room.tenants))  # type: ignore[return-value]

    state.cards.book("used", row, choice(600, 50), 1)
    assert free(future=False) == free(future=True) == (400, 50, 9, 1)
    state.cards.book("leaving", row, choice(600, 50), 1)
    assert free(future=False) == (400, 50, 9, 1)
    assert free(future=True) == (1000, 100, 10, 0)
    state.cards.book("promised", row, choice(700, 20), 1)
    assert free(future=False) == (300, 50, 9, 1), "what is promised beyond what leaves is taken now"
    assert free(future=True) == (300, 80, 9, 1)
    for kind, part in (
        ("promised", choice(700, 20)),
        ("leaving", choice(600, 50)),
        ("used", choice(600, 50)),
    ):
        state.cards.book(kind, row, part, -1)
    assert state.cards.moving == 0
    assert free(future=True) == (1000, 100, 10, 0)


def test_nodes_beyond_the_card_table_have_no_cards() -> None:
    """Many plain nodes after the only one with cards: the card table is shorter than the node table."""
    plain = [node(f"p{at:02d}") for at in range(40)]
    state = card_engine(card_node("n1", 1000), *plain).state
    rows = state.nodes.order
    assert state.cards.rows < len(rows)
    room: Room = room_of(state.cards, CardFacts(state), None, rows, future=False)
    assert room.usable.any(axis=1).sum() == 1
    assert room.usable[rows.tolist().index(state.nodes.index["n1"])].all()
