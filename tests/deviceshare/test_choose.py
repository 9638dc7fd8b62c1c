"""Room and choice over many nodes at once, against a plain loop over cards."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from volcano_py.plugins.deviceshare.asks import CardRequest, ContainerAsk, Role, peak
from volcano_py.plugins.deviceshare.choose import BINPACK, SPREAD, place, placeable
from volcano_py.plugins.deviceshare.room import Room
from volcano_py.plugins.deviceshare.wiring import Wiring

CARDS = 4


def random_room(rng: np.random.Generator, rows: int) -> Room:
    """Cards of 100 MiB, some full, some unhealthy, some with scaled cores, some shrunk under their pods."""
    shape = (rows, CARDS)
    total = np.where(rng.random(shape) < 0.2, 60, 100)
    tenants = rng.integers(0, 3, shape)
    cores_total = np.where(rng.random(shape) < 0.1, 200, 100)
    return Room(
        usable=rng.random(shape) < 0.85,
        memory_total=total,
        cores_total=cores_total,
        memory=np.where(tenants > 0, rng.integers(-10, 100, shape), total),
        cores=cores_total - np.where(tenants > 0, rng.choice([0, 0, 30, 100], shape), 0),
        slots=rng.integers(1, 4, shape) - tenants.clip(max=1),
        tenants=tenants,
    )


def random_ask(rng: np.random.Generator, name: str, role: Role) -> ContainerAsk:
    memory = int(rng.choice([0, 10, 25, 50, 90]))
    percent = 0 if memory else int(rng.choice([40, 100]))
    return ContainerAsk(
        name, role, int(rng.integers(1, 4)), memory, percent, int(rng.choice([0, 0, 30, 100]))
    )


def takes(ask: ContainerAsk, card: dict[str, int], *, untouched: bool = False) -> bool:
    """Whether one card takes one share: the rules, one by one."""
    if not card["usable"] or card["slots"] < 1:
        return False
    if untouched and card["tenants"]:
        return False
    if (ask.memory_mib or max(card["total"] * ask.percent // 100, 1)) > card["memory"]:
        return False
    if card["cores"] <= 0 or ask.cores > card["cores"]:
        return False
    return not (ask.cores == 100 and card["cores_total"] == 100 and card["tenants"])


def cards_at(room: Room, row: int) -> list[dict[str, int]]:
    return [
        {
            "usable": bool(room.usable[row, at]),
            "total": int(room.memory_total[row, at]),
            "cores_total": int(room.cores_total[row, at]),
            "memory": int(room.memory[row, at]),
            "cores": int(room.cores[row, at]),
            "slots": int(room.slots[row, at]),
            "tenants": int(room.tenants[row, at]),
        }
        for at in range(CARDS)
    ]


NO_NUMA = np.full((400, CARDS), -1, np.int64)


@pytest.mark.parametrize("untouched", [False, True])
def test_one_container_fits_where_a_loop_says_so(untouched: bool) -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        room, ask = random_room(rng, 50), random_ask(rng, "a", Role.APP)
        request = CardRequest((ask,), untouched=untouched)
        slow = [
            sum(takes(ask, card, untouched=untouched) for card in cards_at(room, row)) >= ask.count
            for row in range(50)
        ]
        assert placeable(request, room, Wiring(NO_NUMA[:50])).tolist() == slow
        placed = place(request, room, Wiring(NO_NUMA[:50]), BINPACK)
        assert placed.ok.tolist() == slow
        assert (placed.chosen[0].sum(axis=1)[placed.ok] == ask.count).all()


def holds(request: CardRequest, room: Room, row: int, chosen: list[tuple[int, ...]]) -> bool:
    """Whether containers that sit on *chosen* cards keep within every card at every time."""
    cards = cards_at(room, row)
    for at, card in enumerate(cards):
        parts = [ask for ask, mine in zip(request.asks, chosen, strict=True) if at in mine]
        if not parts:
            continue
        memory = peak((p.role, p.memory_mib or max(card["total"] * p.percent // 100, 1)) for p in parts)
        cores, slots = peak((p.role, p.cores) for p in parts), peak((p.role, 1) for p in parts)
        if not card["usable"] or memory > card["memory"] or slots > card["slots"]:
            return False
        if cores > card["cores"] or card["cores"] <= 0:
            return False
        exclusive = [p for p in parts if p.cores == 100]
        if exclusive and card["cores_total"] == 100 and card["tenants"]:
            return False
        for phase in phases(parts):
            if len(phase) > 1 and card["cores_total"] == 100 and any(p.cores == 100 for p in phase):
                return False
    return True


def phases(parts: list[ContainerAsk]) -> list[list[ContainerAsk]]:
    """The containers that run at the same time, for each time of the pod's life."""
    found: list[list[ContainerAsk]] = []
    beside: list[ContainerAsk] = []
    for part in parts:
        if part.role == Role.SIDECAR:
            beside.append(part)
        elif part.role == Role.INIT:
            found.append([*beside, part])
    found.append([part for part in parts if part.role != Role.INIT])
    return found


def feasible(request: CardRequest, room: Room, row: int) -> bool:
    """Whether any choice of cards holds, by trying all."""
    options = [itertools.combinations(range(CARDS), ask.count) for ask in request.asks]
    return any(holds(request, room, row, list(chosen)) for chosen in itertools.product(*options))


def random_pod(rng: np.random.Generator) -> CardRequest:
    roles = [Role.INIT, Role.SIDECAR, Role.APP, Role.APP]
    picked = [role for role in roles if rng.random() < 0.6] or [Role.APP]
    return CardRequest(tuple(random_ask(rng, f"c{at}", role) for at, role in enumerate(picked)))


def test_pods_of_several_containers_stay_within_cards() -> None:
    """Every choice holds; and few pods that could be placed are missed (the search is greedy)."""
    rng = np.random.default_rng(11)
    missed = possible = 0
    for _ in range(60):
        room, request = random_room(rng, 12), random_pod(rng)
        ok = placeable(request, room, Wiring(NO_NUMA[:12]))
        for order in (BINPACK, SPREAD):
            placed = place(request, room, Wiring(NO_NUMA[:12]), order)
            assert placed.ok.tolist() == ok.tolist()
            for row in np.flatnonzero(placed.ok).tolist():
                chosen = [tuple(np.flatnonzero(mask[row]).tolist()) for mask in placed.chosen]
                assert [len(cards) for cards in chosen] == [ask.count for ask in request.asks]
                assert holds(request, room, row, chosen), (request, chosen)
        for row in range(12):
            if feasible(request, room, row):
                possible += 1
                missed += int(not ok[row])
    assert possible > 100
    assert missed <= possible // 50


def test_orders_choose_full_or_empty_cards_and_low_positions() -> None:
    room = Room(
        usable=np.array([[True] * 4]),
        memory_total=np.full((1, 4), 100),
        cores_total=np.full((1, 4), 100),
        memory=np.array([[100, 40, 100, 20]]),
        cores=np.full((1, 4), 100),
        slots=np.full((1, 4), 10),
        tenants=np.array([[0, 1, 0, 2]]),
    )
    ask = ContainerAsk("a", Role.APP, 1, 30, 0, 0)
    request = CardRequest((ask,))

    def cards(order: str, count: int) -> list[int]:
        wanted = replace(request, asks=(replace(ask, count=count),))
        return np.flatnonzero(place(wanted, room, Wiring(NO_NUMA[:1]), order).chosen[0][0]).tolist()

    assert cards(BINPACK, 1) == [1]
    assert cards(SPREAD, 1) == [0]
    assert cards(BINPACK, 2) == [0, 1]
    assert cards(SPREAD, 2) == [0, 2]


def test_cards_of_a_container_on_one_numa_node() -> None:
    rng = np.random.default_rng(3)
    ask = ContainerAsk("a", Role.APP, 2, 30, 0, 0)
    request = CardRequest((ask,), numa=True)
    for _ in range(30):
        room, numa = random_room(rng, 20), rng.integers(0, 3, (20, CARDS))
        placed = place(request, room, Wiring(numa), BINPACK)
        for row in range(20):
            fitting = [at for at, card in enumerate(cards_at(room, row)) if takes(ask, card)]
            groups = [sum(numa[row, at] == node for at in fitting) for node in range(3)]
            assert placed.ok[row] == (max(groups) >= 2)
            if placed.ok[row]:
                assert len(set(numa[row][placed.chosen[0][row]].tolist())) == 1


def empty_room(*memory: int) -> Room:
    """One node with cards that have *memory* of 100 MiB free."""
    free = np.array([memory])
    return Room(
        usable=np.ones(free.shape, np.bool_),
        memory_total=np.full(free.shape, 100),
        cores_total=np.full(free.shape, 100),
        memory=free,
        cores=np.full(free.shape, 100),
        slots=np.full(free.shape, 10),
        tenants=(free < 100).astype(np.int64),
    )


def chosen_for(room: Room, *asks: ContainerAsk) -> list[list[int]]:
    """Cards of each ask on the one node of *room*; empty lists where the pod doesn't fit."""
    numa = np.full(room.memory.shape, -1, np.int64)
    placed = place(CardRequest(asks), room, Wiring(numa), BINPACK)
    if not placed.ok[0]:
        return [[] for _ in asks]
    return [np.flatnonzero(mask[0]).tolist() for mask in placed.chosen]


def test_an_init_container_uses_the_cards_the_pod_has_anyway() -> None:
    init, app = ContainerAsk("i", Role.INIT, 1, 50, 0, 0), ContainerAsk("a", Role.APP, 1, 80, 0, 0)
    assert chosen_for(empty_room(60, 100), init, app) == [[1], [1]]


def test_a_second_init_container_uses_what_the_first_one_took() -> None:
    """Only its growth counts: the card that the first one grew on costs nothing more."""
    small, large = ContainerAsk("i", Role.INIT, 1, 70, 0, 0), ContainerAsk("j", Role.INIT, 1, 65, 0, 0)
    app = ContainerAsk("a", Role.APP, 1, 10, 0, 0)
    room = empty_room(50, 80, 70)
    assert chosen_for(room, small, large, app) == [[2], [2], [0]]
    room = empty_room(50, 90, 70)
    assert chosen_for(room, ContainerAsk("i", Role.INIT, 1, 80, 0, 0), large, app) == [[1], [1], [0]]


def test_an_init_container_fits_beside_the_sidecars_before_it() -> None:
    side, init = ContainerAsk("s", Role.SIDECAR, 1, 60, 0, 0), ContainerAsk("i", Role.INIT, 1, 50, 0, 0)
    app = ContainerAsk("a", Role.APP, 1, 10, 0, 0)
    assert chosen_for(empty_room(100), side, init, app) == [[], [], []]
    assert chosen_for(empty_room(100), init, side, app) == [[0], [0], [0]]
