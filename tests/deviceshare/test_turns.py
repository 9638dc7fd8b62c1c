"""Pods of a class that are known many ahead get what they would get one after another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.clusters import Document, group, pod
from tests.deviceshare.cards import NOW, SPELLINGS, bound, card_engine, card_node
from volcano_py.plugins.deviceshare import plugin as deviceshare_plugin
from volcano_py.plugins.deviceshare.asks import CardRequest, ContainerAsk, Role
from volcano_py.plugins.deviceshare.choose import BINPACK, SPREAD, place
from volcano_py.plugins.deviceshare.room import Room
from volcano_py.plugins.deviceshare.turns import Turns, shares
from volcano_py.plugins.deviceshare.wiring import Wiring

CARDS = 4


def random_room(rng: np.random.Generator, rows: int) -> Room:
    shape = (rows, CARDS)
    tenants = rng.integers(0, 3, shape)
    cores_total = np.where(rng.random(shape) < 0.2, 200, 100)
    return Room(
        usable=rng.random(shape) < 0.85,
        memory_total=np.where(rng.random(shape) < 0.2, 60, 100),
        cores_total=cores_total,
        memory=np.where(tenants > 0, rng.integers(-10, 60, shape), 60),
        cores=cores_total - np.where(tenants > 0, rng.choice([0, 30, 100], shape), 0),
        slots=rng.integers(0, 5, shape),
        tenants=tenants,
    )


def random_request(rng: np.random.Generator) -> CardRequest:
    memory = int(rng.choice([0, 7, 10, 25]))
    percent = 0 if memory else int(rng.choice([15, 40, 100]))
    ask = ContainerAsk("c", Role.APP, 1, memory, percent, int(rng.choice([0, 10, 30, 100])))
    return CardRequest((ask,), untouched=bool(rng.random() < 0.2))


@pytest.mark.parametrize("order", [BINPACK, SPREAD])
def test_turns_are_places_one_after_another(order: str) -> None:
    rng = np.random.default_rng(11)
    wiring = Wiring(np.full((1, CARDS), -1, np.int64))
    for _ in range(300):
        request, room = random_request(rng), random_room(rng, 1)
        turns, count = Turns(request, room, 0, order), int(shares(request, room)[0])
        for _ in range(count):
            placed = place(request, room, wiring, order)
            assert placed.ok[0]
            assert turns.next() == int(placed.chosen[0][0].argmax())
            room = room.without(placed.chosen[0], placed.need[0])
        assert not place(request, room, wiring, order).ok[0]
        with pytest.raises(ValueError, match="no card has room"):
            turns.next()


def gang(name: str, pods: int, **limits: Any) -> list[Document]:
    amounts = {SPELLINGS[key]: str(value) for key, value in limits.items()}
    return [
        group(name, pods, phase="Inqueue"),
        *(pod(f"{name}-{i}", name, None, requests={**amounts, "cpu": "1"}) for i in range(pods)),
    ]


def test_whole_cycles_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gangs of several asks on nodes of several kinds, with and without knowing pods ahead."""
    rng = np.random.default_rng(5)
    asks = [{"gpumem": 3000}, {"percent": 30}, {"gpumem": 900, "gpucores": 40}, {}]
    for _ in range(6):
        documents: list[Document] = [
            card_node(f"n{at}", *rng.choice([8000, 16000, 24000], 4).tolist(), slots=4) for at in range(6)
        ]
        for at in range(8):
            limits: dict[str, Any] = {"gpu": 1}
            limits |= asks[int(rng.integers(len(asks)))]
            documents += gang(f"g{at}", int(rng.integers(1, 9)), **limits)
        ahead = bound(card_engine(*documents).cycle(NOW))
        with monkeypatch.context() as patch:
            patch.setattr(deviceshare_plugin, "independent", lambda request, facts: False)
            one_by_one = bound(card_engine(*documents).cycle(NOW))
        assert ahead == one_by_one
        assert ahead


def test_several_shares_depend_on_each_other() -> None:
    """Two shares of a pod are of different cards, so how many pods fit is no sum over cards."""
    engine = card_engine(card_node("n1", 1000, 500), *gang("g", 3, gpu=2, gpumem=250))
    assert bound(engine.cycle(NOW)) == {}
    engine = card_engine(card_node("n1", 1000, 500), *gang("g", 2, gpu=2, gpumem=250))
    assert len(bound(engine.cycle(NOW))) == 2
