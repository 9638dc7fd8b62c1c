"""The plugin ``deviceshare``: which nodes have cards for a pod, which are best, and which cards it gets.

Two checks: cards that the pod accepts exist there at all (fixed), and they have room (as booked). On
nodes without registered cards ``nvidia.com/gpu`` stays a counted resource, see ``source``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from volcano_py.crds.schedulerconfig import Arguments
from volcano_py.plugins.deviceshare.arguments import ARGUMENTS, read_settings
from volcano_py.plugins.deviceshare.asks import CardRequest
from volcano_py.plugins.deviceshare.charges import bare_charge, charge_with
from volcano_py.plugins.deviceshare.choose import is_simple, place, placeable
from volcano_py.plugins.deviceshare.explain import NO_CARDS, most_cards, no_cards, no_room, possible
from volcano_py.plugins.deviceshare.facts import CardFacts, stamp_of
from volcano_py.plugins.deviceshare.kinds import KindBook
from volcano_py.plugins.deviceshare.mix import Mix
from volcano_py.plugins.deviceshare.needs import Share, need_of, share_at
from volcano_py.plugins.deviceshare.placement import POLICIES, make_policy, typical_for
from volcano_py.plugins.deviceshare.room import Room, blank_room, fits, room_of
from volcano_py.plugins.deviceshare.scoring import PolicyScores, linked, packed
from volcano_py.plugins.deviceshare.slices import CardCharge, Taken, choice_of, single_choice
from volcano_py.plugins.deviceshare.source import DeviceShareSource
from volcano_py.plugins.deviceshare.translate import main_ask
from volcano_py.plugins.deviceshare.turns import cards_in_turn, independent, shares
from volcano_py.plugins.deviceshare.wiring import Graphs, Wires
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.points import Check, Scope, Scorer
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.view import NodeView
from volcano_py.scheduler.model.cards import CardChoice, CardSource, CardSpec
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.resources import CPU, Ints, Mask, Rows32, Scores


class DeviceSharePlugin(Plugin):
    """See the module."""

    name = "deviceshare"
    ARGUMENTS: ClassVar = ARGUMENTS

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.settings = read_settings(arguments)
        devices = self.settings.devices
        catalogue = devices.catalogue(devices.document)
        self.source = DeviceShareSource(
            catalogue,
            devices.rules,
            devices.config_map,
            devices.catalogue,
            linked=self.settings.linked,
        )
        self._mix = Mix(self.settings.history)
        self._facts: CardFacts | None = None
        self._graphs = Graphs()
        self._wires: Wires | None = None
        self._scores: PolicyScores | None = None
        self._last: tuple[TaskClass, NodeView, Room] | None = None
        self._last_fit: tuple[Room, Mask] | None = None

    def card_source(self) -> CardSource | None:
        """How pods and nodes speak of cards."""
        return self.source

    def open(self, session: Session) -> None:
        """Hang checks, scores and the choice of cards."""
        self._state = session.state
        points = session.points
        for check in (self._existence(), self._roominess()):
            points.predicate.add(self.name, check)
        points.choose_cards.add(self.name, self.choose)
        points.choose_cards_in_turn.add(self.name, self.choose_in_turn)
        if self.settings.placement and self.settings.weight:
            self._open_policy(session)
        if self._scores is None:
            points.node_order.add(
                self.name, Scorer("CardOrder", Scope.NODE, self._order_score, self._has_order)
            )

    # -- checks ---------------------------------------------------------------------------------

    def _existence(self) -> Check:
        return Check(
            name="CardSelection",
            scope=Scope.STATIC,
            mask=self.exist,
            applies=asks_cards,
            explain=self._explain_existence,
        )

    def _roominess(self) -> Check:
        return Check(
            name="CardRoom",
            scope=Scope.NODE,
            mask=self.have_room,
            applies=asks_cards,
            explain=lambda klass, view: no_room(cards_of(klass), self._room(klass, view)),
            resolvable=True,
            foresees=lambda klass: independent(cards_of(klass), self.facts(self._state)),
        )

    def exist(self, klass: TaskClass, view: NodeView) -> Mask:
        """(n,) nodes with enough cards that *klass* accepts, booked or not."""
        request, facts = cards_of(klass), self.facts(view.state)
        enough: Mask = facts.eligible(request.selection)[view.rows].sum(axis=1) >= most_cards(request)
        if facts.positions and enough.any():
            enough &= possible(request, self._blank(request, view))
        return enough | facts.bare(request.bare)[view.rows] if request.bare else enough

    def _blank(self, request: CardRequest, view: NodeView) -> Room:
        return blank_room(view.state.cards, self.facts(view.state), request, view.rows)

    def _explain_existence(self, klass: TaskClass, view: NodeView) -> str:
        request, facts = cards_of(klass), self.facts(view.state)
        if facts.positions == 0:
            return NO_CARDS
        return no_cards(request, facts, self._blank(request, view), view.rows)

    def have_room(self, klass: TaskClass, view: NodeView) -> Mask:
        """(n,) nodes whose cards take a pod of *klass* now (or in the future, see ``NodeView``)."""
        request, facts = cards_of(klass), self.facts(view.state)
        if facts.positions == 0:
            return np.full(len(view.rows), bool(request.bare))
        if view.ahead is not None:
            return self._have_room_ahead(klass, view, view.ahead)
        ok: Mask = self._fit(klass, view).sum(axis=1) >= main_ask(request).count
        return ok | facts.bare(request.bare)[view.rows] if request.bare else ok

    def _have_room_ahead(self, klass: TaskClass, view: NodeView, ahead: Ints) -> Mask:
        """As ``have_room``, once as many pods are taken as *ahead* (n,) says."""
        request, facts = cards_of(klass), self.facts(view.state)
        starts = np.ones(len(view.rows), np.bool_)  # a row is there many times, one after another
        np.not_equal(view.rows[1:], view.rows[:-1], out=starts[1:])
        room = room_of(view.state.cards, facts, request, view.rows[starts], future=view.future)
        ok: Mask = shares(request, room)[np.cumsum(starts) - 1] > ahead
        return ok | facts.bare(request.bare)[view.rows] if request.bare else ok

    # -- scores ---------------------------------------------------------------------------------

    def _has_order(self, klass: TaskClass) -> bool:
        request = klass.cards
        if not isinstance(request, CardRequest):
            return False
        return bool(request.node_order or request.linked or (self.settings.policy and self.settings.weight))

    def _order_score(self, klass: TaskClass, view: NodeView) -> Scores:
        """Scores of binpack and spread."""
        request, facts = cards_of(klass), self.facts(view.state)
        if facts.positions == 0:
            return np.zeros(len(view.rows))
        order = request.card_order or self.settings.card_order
        wires = self.wires(view.state)
        wiring = wires.of(view.rows, request)
        placed = place(request, room := self._room(klass, view), wiring, order)
        scores = packed(room, placed, request.node_order or self.settings.card_order)
        if wiring.zone is not None or wiring.graphs is not None:
            scores = scores + linked(placed, wiring, wires.best)
        return scores * (self.settings.weight or 1.0)

    def _policy_score(self, klass: TaskClass, view: NodeView) -> Scores:
        """Scores of the placement policy; a pod that wishes another order has that instead."""
        request = klass.cards
        if isinstance(request, CardRequest) and (request.node_order or request.linked):
            return self._order_score(klass, view)
        if self._scores is not None and self._scores.policy.per_pod:
            return self._scores.draws(view) * self.settings.weight
        scores, _ = self._by_policy(klass, view)
        return scores * self.settings.weight

    def _by_policy(self, klass: TaskClass, view: NodeView) -> tuple[Scores, Mask]:
        facts = self.facts(view.state)
        if self._scores is None:
            raise ValueError("no placement policy is open")
        if facts.positions == 0:
            return np.zeros(len(view.rows)), np.zeros((len(view.rows), 0), np.bool_)
        fit = self._fit(klass, view) if asks_cards(klass) else None
        return self._scores.score(klass, view, facts, self._room(klass, view), fit)

    def _fit(self, klass: TaskClass, view: NodeView) -> Mask:
        """(n, G) cards that take a share of the main ask, on nodes that take all of the pod."""
        request, room = cards_of(klass), self._room(klass, view)
        if self._last_fit is not None and self._last_fit[0] is room:
            return self._last_fit[1]
        ask = main_ask(request)
        fit = fits(ask, room, need_of(ask, room), untouched=request.untouched)
        wires = self.wires(view.state)
        if not is_simple(request) or request.numa or wires.paired:
            fit &= placeable(request, room, wires.of(view.rows, request))[:, None]
        self._last_fit = room, fit
        return fit

    def _open_policy(self, session: Session) -> None:
        """Hang the placement policy, made anew where what it expects has changed."""
        facts = self.facts(session.state)
        if self._scores is None or self._mix_changed(session.state, facts):
            self._scores = self._make_scores(session.state, facts)
            session.placer.invalidate()
        if self._scores is not None:
            scope = Scope.CLUSTER if self._scores.policy.per_pod else Scope.NODE
            session.points.node_order.add(self.name, Scorer("CardPolicy", scope, self._policy_score))

    def _mix_changed(self, state: ClusterState, facts: CardFacts) -> bool:
        return POLICIES[self.settings.placement].cover is not None and self._mix.drifted(state, facts)

    def _make_scores(self, state: ClusterState, facts: CardFacts) -> PolicyScores | None:
        """The policy for the cluster as it is; None while no pod asks for cards."""
        name = self.settings.placement
        spec = POLICIES[name]
        typical = None
        if spec.cover is not None:
            seen = self._mix.take(state, facts)
            if not any(ask.count and times for ask, times in seen):
                return None
            typical = typical_for(name, seen)
        scales = {
            "cards_scale": 1000 * int(facts.cards.max(initial=0)),
            "cpu_scale": int(state.nodes.allocatable[:, CPU].max(initial=0)),
        }
        options = {key: scale for key, scale in scales.items() if key in spec.options and scale}
        cards = facts.cards_by_model()
        policy = make_policy(name, typical=typical, seed=self.settings.seed, options=options, cards=cards)
        return PolicyScores(policy, KindBook(state) if name == "clustering" else None)

    # -- cards ----------------------------------------------------------------------------------

    def choose(self, klass: TaskClass, row: int, future: bool) -> CardChoice:
        """The cards of a pod of *klass* on node *row*, on which it fits."""
        request = cards_of(klass)
        if not self._has_own(request, row):
            return self._bare_choice(klass)
        specs = self._state.cards.specs[row]
        return self._choice(klass, specs, self._taken(klass, row, future, specs))

    def choose_in_turn(self, klass: TaskClass, rows: Rows32) -> list[CardChoice]:
        """The cards of pods of *klass* that go to *rows* (k,) one after another, and fit there."""
        request = cards_of(klass)
        [ask], choices = request.asks, []
        charges: dict[tuple[str, int], CardCharge] = {}
        for row, at in self._positions_in_turn(request, rows.tolist()):
            if at is None:
                choices.append(self._bare_choice(klass))
                continue
            specs = self._state.cards.specs[row]
            spec = specs[at]
            share = Share(ask.memory_on(spec.memory_mib), ask.cores)
            kind = spec.vendor, spec.memory_mib
            if kind in charges:
                choices.append(single_choice(request, at, spec, share, charges[kind]))
            else:
                choices.append(self._choice(klass, specs, [[(at, share)]]))
                charges[kind] = choices[-1].charge
        return choices

    def _positions_in_turn(self, request: CardRequest, rows: list[int]) -> Iterator[tuple[int, int | None]]:
        """Each of *rows* with the card position there; None where its cards are a counted resource."""
        has_own = self.facts(self._state).own(request.selection.vendors)
        own = [row for row in dict.fromkeys(rows) if has_own[row]]
        number = {row: at for at, row in enumerate(own)}
        found: Iterator[int] = iter(())
        if own:
            order, facts = request.card_order or self.settings.card_order, self.facts(self._state)
            room = room_of(self._state.cards, facts, request, np.array(own, np.int32), future=False)
            found = iter(cards_in_turn(request, room, [number[r] for r in rows if r in number], order))
        for row in rows:
            yield row, next(found) if row in number else None

    def _has_own(self, request: CardRequest, row: int) -> bool:
        """Whether node *row* registers cards of the kind that is asked for."""
        return bool(self.facts(self._state).own(request.selection.vendors)[row])

    def _bare_choice(self, klass: TaskClass) -> CardChoice:
        """What a pod is charged on a node where its cards are an ordinary resource."""
        charge = charge_with(
            dict(klass.signature.charge), bare_charge(cards_of(klass)), self.source.catalogue
        )
        return CardChoice((), (), None if charge == klass.signature.charge else charge)

    def _choice(self, klass: TaskClass, specs: Sequence[CardSpec], taken: Sequence[Taken]) -> CardChoice:
        source = self.source
        return choice_of(klass, cards_of(klass), specs, taken, source.catalogue, source.largest_mib)

    def _taken(
        self, klass: TaskClass, row: int, future: bool, specs: Sequence[CardSpec]
    ) -> list[list[tuple[int, Share]]]:
        """What each container takes of which card."""
        request = cards_of(klass)
        view = NodeView(self._state, np.array([row], np.int32), future=future)
        if self._by_own_policy(request):
            cards = self._policy_cards(klass, row, future)
            [ask] = request.asks
            if all(specs[at].cut is None for at in cards):
                memory = [ask.memory_on(specs[at].memory_mib) for at in cards]
                return [[(at, Share(mib, ask.cores)) for at, mib in zip(cards, memory, strict=True)]]
            room = self._room(klass, view)
            need = need_of(ask, room)
            return [[(at, share_at(need, room, 0, at)) for at in cards]]
        order = request.card_order or self.settings.card_order
        room, wiring = self._room(klass, view), self.wires(self._state).of(view.rows, request)
        placed = place(request, room, wiring, order)
        return [
            [(at, share_at(need, room, 0, at)) for at in np.flatnonzero(chosen[0]).tolist()]
            for chosen, need in zip(placed.chosen, placed.need, strict=True)
        ]

    def _by_own_policy(self, request: CardRequest) -> bool:
        """Whether the placement policy takes the cards, since the pod has no wishes about them."""
        wishes = request.card_order or request.numa or request.linked or request.together
        known = self._scores is not None and is_simple(request) and not wishes
        return bool(known and (len(request.asks) == 1 and not self._paired(request)))

    def _paired(self, request: CardRequest) -> bool:
        return self.wires(self._state).paired and request.asks[0].count > 1

    def _policy_cards(self, klass: TaskClass, row: int, future: bool) -> list[int]:
        """Positions that the placement policy takes on *row*."""
        scores, nodes = self._scores, self._state.nodes
        bits = None
        if scores is not None and not future:
            bits = scores.cards(klass, row, int(nodes.version[row]))
        if bits is not None:
            return [at for at in range(bits.bit_length()) if bits >> at & 1]
        _, chosen = self._by_policy(klass, NodeView(self._state, np.array([row], np.int32), future=future))
        return [int(at) for at in np.flatnonzero(chosen[0])]

    # -- what is known of nodes -----------------------------------------------------------------

    def facts(self, state: ClusterState) -> CardFacts:
        """What the cards are, up to date."""
        if self._facts is None or self._facts.stamp != stamp_of(state):
            self._facts = CardFacts(state, self.source.catalogue)
        return self._facts

    def wires(self, state: ClusterState) -> Wires:
        """How the cards are linked, up to date."""
        facts = self.facts(state)
        if self._wires is None or self._wires.facts is not facts:
            self._wires = Wires(facts, self._graphs)
        return self._wires

    def _room(self, klass: TaskClass, view: NodeView) -> Room:
        """Room for *klass* in *view*; scores and checks of one view ask one after another."""
        if self._last is None or self._last[0] is not klass or self._last[1] is not view:
            request = klass.cards if isinstance(klass.cards, CardRequest) else None
            table, facts = view.state.cards, self.facts(view.state)
            self._last = klass, view, room_of(table, facts, request, view.rows, future=view.future)
        return self._last[2]


def asks_cards(klass: TaskClass) -> bool:
    """Whether pods of *klass* ask for cards."""
    return klass.cards is not None


def cards_of(klass: TaskClass) -> CardRequest:
    """What *klass*, which asks for cards, asks."""
    request = klass.cards
    if not isinstance(request, CardRequest):
        raise TypeError(f"class {klass.row} asks for no cards of this plugin")
    return request
