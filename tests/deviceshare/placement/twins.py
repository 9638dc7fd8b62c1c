"""Slow, obvious twins of the placement policies: one node at a time, plain Python, no sharing with them."""

import math
from dataclasses import dataclass

import numpy as np

from volcano_py.plugins.deviceshare.placement import CardAsk, CardNodes


@dataclass(frozen=True)
class Node:
    cpu: int
    free: tuple[int, ...]
    model: int = 0
    kinds: tuple[str, ...] = ()


def kind(ask: CardAsk) -> str:
    return "slice" if ask.milli < 1000 else f"{ask.count} cards"


def can_host(node: Node, ask: CardAsk) -> bool:
    if ask.cpu_milli > node.cpu:
        return False
    if ask.count == 0:
        return True
    accepted = ask.models is None or node.model in ask.models
    return accepted and sum(room >= ask.milli for room in node.free) >= ask.count


def tightest(node: Node, ask: CardAsk) -> list[int]:
    order = sorted(range(len(node.free)), key=lambda card: (node.free[card], card))
    return sorted([card for card in order if node.free[card] >= ask.milli][: ask.count])


def without(node: Node, ask: CardAsk, cards: list[int]) -> Node:
    free = tuple(room - ask.milli * (card in cards) for card, room in enumerate(node.free))
    return Node(node.cpu - ask.cpu_milli, free, node.model)


def dot_product(node: Node, ask: CardAsk) -> int:
    cpu = node.cpu / 128_000 * (ask.cpu_milli / 128_000)
    cards = sum(node.free) / 8_000 * (ask.milli * ask.count / 8_000)
    return int(100 * (1 - (cpu + cards) / 2))


def best_fit(node: Node, ask: CardAsk) -> int:
    cpu = (node.cpu - ask.cpu_milli) / 128_000
    cards = (sum(node.free) - ask.milli * ask.count) / 8_000
    return int((1 - (cpu * 0.5 + cards * 0.5)) * 100)


def clustering(node: Node, ask: CardAsk) -> int:
    if ask.count == 0:
        return 0
    inside = 25 * (8_000 - sum(node.free)) // 8_000
    if kind(ask) in node.kinds:
        return inside + (75 if set(node.kinds) == {kind(ask)} else 50)
    return inside + (0 if node.kinds else 25)


def packing(node: Node, ask: CardAsk) -> int:
    if ask.count == 0:
        return 0
    untouched = [room for room in node.free if room == 1000]
    if len(untouched) == len(node.free):
        return max(33 - len(untouched), len(untouched))
    taken = [node.free[card] for card in tightest(node, ask)]
    if 1000 in taken:
        return max(50 - taken.count(1000), 33)
    return max(100 - sum(room * 100 // 1000 for room in taken) // 10, 50)


def fragmentation(node: Node, typical: list[tuple[CardAsk, int]]) -> float:
    pods = sum(count for _, count in typical)
    stranded = 0
    for ask, count in typical:
        usable = ask.count > 0 and can_host(node, ask)
        stranded += count * sum(room for room in node.free if not usable or room < ask.milli)
    return stranded / pods


def fragmentation_gradient(
    node: Node, ask: CardAsk, typical: list[tuple[CardAsk, int]]
) -> tuple[int, list[int]]:
    def points(cards: list[int]) -> int:
        less = fragmentation(node, typical) - fragmentation(without(node, ask, cards), typical)
        return math.floor(100 / (1 + math.exp(-round(less, 6) / 1000)))

    if ask.count == 1 and ask.milli < 1000:
        fitting = [card for card, room in enumerate(node.free) if room >= ask.milli]
        best = max(fitting, key=lambda card: (points([card]), -card))
        return points([best]), [best]
    return points(tightest(node, ask)), tightest(node, ask)


def fill(node: Node, stream: list[CardAsk]) -> int:
    """Card room that one stream of asks places on a copy of the node, in order, skipping what fails."""
    cpu, free, filled = node.cpu, list(node.free), 0
    for ask in stream:
        now = Node(cpu, tuple(free), node.model)
        if ask.cpu_milli > cpu or (ask.count and not can_host(now, ask)):
            continue
        for card in tightest(now, ask):
            free[card] -= ask.milli
        cpu -= ask.cpu_milli
        filled += ask.milli * ask.count
    return filled


def reserve(node: Node, typical: list[tuple[CardAsk, int]]) -> float:
    pods = sum(count for _, count in typical)
    total = 0.0
    for ask, count in typical:
        if ask.count < 2 or not can_host(node, ask):
            continue
        of_size = sum(c for a, c in typical if a.count == ask.count) / pods
        weight = min(0.03, 5 * of_size) * (count / pods) / of_size
        copies = sum(room >= ask.milli for room in node.free) // ask.count
        if ask.cpu_milli:
            copies = min(copies, node.cpu // ask.cpu_milli)
        total += weight * ask.milli * ask.count * copies
    return total


def gathered(nodes: list[Node], bits: dict[str, int]) -> CardNodes:
    """The same nodes as rows; *bits* maps kinds of asks to their bits."""
    widest = max(len(node.free) for node in nodes)
    free = [[*node.free, *[-1] * (widest - len(node.free))] for node in nodes]
    return CardNodes(
        np.arange(len(nodes), dtype=np.int64),
        np.array([node.cpu for node in nodes], dtype=np.int64),
        np.full(len(nodes), 1 << 40, dtype=np.int64),
        np.array(free, dtype=np.int32),
        np.array([node.model for node in nodes], dtype=np.int32),
        np.array([sum(bits[k] for k in set(node.kinds)) for node in nodes], dtype=np.int64),
    )


ASKS = [
    CardAsk(4_000, 1, 0, 0),
    CardAsk(16_000, 1, 0, 0),
    CardAsk(6_000, 1, 460, 1),
    CardAsk(2_000, 1, 190, 1),
    CardAsk(11_900, 1, 810, 1),
    CardAsk(3_152, 1, 810, 1, frozenset({1, 2})),
    CardAsk(8_000, 1, 1000, 1),
    CardAsk(8_000, 1, 1000, 1, frozenset({2})),
    CardAsk(24_000, 1, 1000, 2),
    CardAsk(40_000, 1, 1000, 4),
    CardAsk(80_000, 1, 1000, 8),
    CardAsk(0, 1, 1000, 4, frozenset({1})),
]
BITS = {"slice": 1, "1 cards": 2, "2 cards": 4, "4 cards": 16, "8 cards": 256}


def typical_counts(rng: np.random.Generator) -> list[tuple[CardAsk, int]]:
    """Every ask of ``ASKS`` with a random count, no two alike."""
    counts = rng.choice(np.arange(1, 400), size=len(ASKS), replace=False)
    return [(ask, int(count)) for ask, count in zip(ASKS, counts, strict=True)]


def random_nodes(rng: np.random.Generator, count: int) -> list[Node]:
    """Nodes with 1, 2, 4 or 8 cards in every state of use, models 0 to 3 (3 is named by no ask)."""
    nodes = []
    for _ in range(count):
        cards = int(rng.choice([1, 2, 4, 8]))
        levels = rng.choice([0, 50, 190, 540, 810, 1000, 1000, 1000, int(rng.integers(1001))], size=cards)
        used = rng.choice(list(BITS), size=int(rng.integers(3)), replace=False)
        cpu = int(rng.choice([0, 3_000, 9_000, 30_000, 96_000, int(rng.integers(128_000))]))
        if rng.random() < 0.2:
            cpu, levels = 128_000, np.full(cards, 1000)
        nodes.append(
            Node(cpu, tuple(int(x) for x in levels), int(rng.integers(4)), tuple(str(k) for k in used))
        )
    return nodes
