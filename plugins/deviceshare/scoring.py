"""Which node is better for a pod's cards: by packing, by spreading, or by a placement policy.

Packing and spreading give 0 to 100: the mean of how full the chosen cards get and how full the cards of the
node get, or its complement before. Neighbours: ``choose`` (cards of binpack and spread), ``translate``.
"""

from __future__ import annotations

import numpy as np

from volcano_py.plugins.deviceshare.asks import CardRequest
from volcano_py.plugins.deviceshare.choose import SPREAD, Placed, is_simple
from volcano_py.plugins.deviceshare.facts import CardFacts
from volcano_py.plugins.deviceshare.kinds import KindBook
from volcano_py.plugins.deviceshare.placement import CardAsk, CardNodes, PlacementPolicy
from volcano_py.plugins.deviceshare.room import Room
from volcano_py.plugins.deviceshare.translate import agree, ask_of, card_nodes
from volcano_py.plugins.deviceshare.wiring import Wiring
from volcano_py.scheduler.framework.view import NodeView
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.resources import Ints, Mask, Scores

_MEMO = "deviceshare"
_ASK = "deviceshare.ask"
_NO_ASK = CardAsk(0, 0, 0, 0)
_ZONE = 10.0
_LINKS = 100.0
_MOST_CARDS = 62
_BITS = 1 << np.arange(_MOST_CARDS, dtype=np.int64)


def packed(room: Room, placed: Placed, order: str) -> Scores:
    """(n,) scores of nodes for pods that would get the cards *placed*; 0 where they don't fit."""
    total = np.maximum(room.memory_total, 1)
    used = room.memory_total - room.memory
    chosen: Mask = np.logical_or.reduce(placed.chosen)
    if order != SPREAD:
        pairs = zip(placed.chosen, placed.need, strict=True)
        used = used + sum(np.where(cards, need.memory, 0) for cards, need in pairs)
    full = np.clip(used / total, 0.0, 1.0)
    cards = np.where(chosen, full, 0.0).sum(axis=1) / np.maximum(chosen.sum(axis=1), 1)
    there = room.memory_total.sum(axis=1)
    node = np.clip(used.sum(axis=1) / np.maximum(there, 1), 0.0, 1.0)
    score = 50.0 * (cards + node)
    if order == SPREAD:
        score = 100.0 - score
    return np.where(placed.ok, score, 0.0)


def linked(placed: Placed, wiring: Wiring, best: int) -> Scores:
    """(n,) how well the cards that each container gets are linked.

    Up to 10 for cards of one zone, and where the pod asked for it up to 100 for the links' scores, of
    which *best* is the highest that is known.
    """
    score = np.zeros(len(placed.ok))
    links = None if wiring.graphs is None or not best else wiring.links
    for cards in placed.chosen:
        pairs = cards[:, :, None] & cards[:, None, :]
        pairs &= ~np.eye(cards.shape[1], dtype=np.bool_)
        count = np.maximum(pairs.sum(axis=(1, 2)), 1)
        if wiring.zone is not None:
            same = pairs & (wiring.zone[:, :, None] == wiring.zone[:, None, :])
            score += _ZONE * same.sum(axis=(1, 2)) / count
        if links is not None:
            score += _LINKS * np.where(pairs, links, 0).sum(axis=(1, 2)) / (count * best)
    return np.where(placed.ok, score / len(placed.chosen), 0.0)


class ChosenCards:
    """The cards that a policy named for a class on each node, and the node's version then."""

    def __init__(self, rows: int) -> None:
        self.version: Ints = np.full(rows, -1, np.int64)
        self.cards: Ints = np.zeros(rows, np.int64)


class KnownAsks:
    """A class's ask by size of card, for one state of the nodes."""

    def __init__(self, facts: CardFacts) -> None:
        self.facts = facts
        self.asks: dict[int, CardAsk] = {}


class PolicyScores:
    """Scores of a placement policy for classes and nodes as the engine has them."""

    def __init__(self, policy: PlacementPolicy, kinds: KindBook | None) -> None:
        self.policy = policy
        self.kinds = kinds

    def score(
        self, klass: TaskClass, view: NodeView, facts: CardFacts, room: Room, fit: Mask | None
    ) -> tuple[Scores, Mask]:
        """(n,) scores of *view*'s nodes and (n, G) the cards chosen there.

        *room* is that of the view's cards, *fit* (n, G) the cards that take a share, None without card
        asks. Nodes on which the ask does not fit score 0. What was chosen is remembered for ``cards``.
        """
        found = np.zeros(len(view.rows)), np.zeros((len(view.rows), facts.positions), np.bool_)
        bits = None if self.kinds is None else self.kinds.reach(len(view.state.nodes.version))
        nodes = card_nodes(view, facts, room, bits)
        for size in self._sizes(klass, view, facts):
            self._score_size(klass, view, facts, (nodes, fit), size, found)
        if fit is not None and not view.future:
            self._remember(klass, view, found[1])
        return found

    def draws(self, view: NodeView) -> Scores:
        """(n,) scores of a policy that draws lots for each pod: any node that fits is as good as another.

        Which card it takes there is drawn only where the pod goes, so nothing else is looked at.
        """
        rows = view.rows.astype(np.int64)
        nothing = np.zeros(len(rows), np.int64)
        nodes = CardNodes(
            row=rows,
            cpu_idle=nothing,
            memory_idle=nothing,
            free=np.zeros((len(rows), 0), np.int32),
            model=nothing.astype(np.int32),
            kinds=nothing,
        )
        scores, _ = self.policy.score(_NO_ASK, nodes, view.state.nodes.epoch)
        return scores

    def cards(self, klass: TaskClass, row: int, version: int) -> int | None:
        """The cards (bits) last chosen for *klass* on *row*, if the node is as it was then."""
        memo = klass.memo.get(_MEMO)
        if isinstance(memo, tuple) and memo[0] is self.policy and row < len(memo[1].version):
            chosen: ChosenCards = memo[1]
            if chosen.version[row] == version and chosen.cards[row]:
                return int(chosen.cards[row])
        return None

    def _sizes(self, klass: TaskClass, view: NodeView, facts: CardFacts) -> list[int]:
        """Card sizes among the nodes: the same MiB are other parts of other cards."""
        request = klass.cards
        if not isinstance(request, CardRequest) or not any(ask.memory_mib for ask in request.asks):
            return [0]
        if len(facts.sizes) == 1:
            return facts.sizes
        return [int(size) for size in np.unique(facts.size[view.rows])]

    def _ask(self, klass: TaskClass, size: int, facts: CardFacts) -> CardAsk:
        """``ask_of``, remembered as long as the nodes stay."""
        known = klass.memo.get(_ASK)
        if not isinstance(known, KnownAsks) or known.facts is not facts:
            known = klass.memo[_ASK] = KnownAsks(facts)
        if size not in known.asks:
            known.asks[size] = ask_of(klass, size, facts)
        return known.asks[size]

    def _score_size(
        self,
        klass: TaskClass,
        view: NodeView,
        facts: CardFacts,
        given: tuple[CardNodes, Mask | None],
        size: int,
        found: tuple[Scores, Mask],
    ) -> None:
        nodes, fit = given
        ask = self._ask(klass, size, facts)
        where = np.ones(len(view.rows), np.bool_)
        if size and len(facts.sizes) > 1:
            where &= facts.size[view.rows] == size
        if fit is not None:
            where &= fit.sum(axis=1) >= ask.count
            nodes = agree(nodes, fit, ask.milli)
        draw = view.state.nodes.epoch if self.policy.per_pod else 0
        everywhere = bool(where.all())
        if not everywhere:
            if not where.any():
                return
            nodes = nodes.take(where)
        at = slice(None) if everywhere else where
        found[0][at], found[1][at] = self.policy.score(ask, nodes, draw)

    def _remember(self, klass: TaskClass, view: NodeView, chosen: Mask) -> None:
        request = klass.cards
        if chosen.shape[1] > _MOST_CARDS or not isinstance(request, CardRequest) or not is_simple(request):
            return
        version = view.state.nodes.version
        memo = klass.memo.get(_MEMO)
        if not isinstance(memo, tuple) or memo[0] is not self.policy or len(memo[1].version) < len(version):
            memo = klass.memo[_MEMO] = (self.policy, ChosenCards(len(version)))
        kept: ChosenCards = memo[1]
        bits = chosen @ _BITS[: chosen.shape[1]]
        kept.version[view.rows] = version[view.rows]
        kept.cards[view.rows] = bits
