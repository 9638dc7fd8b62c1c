"""Which node, and whose pods there, for the next pod of a class.

Every node gets a plan: the fewest of its cheapest units that make room for one pod. Plans are kept in
heaps by cost, one for every queue that is the least over of those a plan takes from: how far queues are
over changes with every victim, but for all plans of a heap alike. A plan is worked out again when it
comes up: taking victims elsewhere only makes it dearer (queues may give less), so the first whose cost
still holds is the cheapest.

Sums decide where only amounts matter; where cards, ports or neighbours do, units go one by one until the
placer's own checks pass with the evicted ones thought away.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from volcano_py.scheduler.framework.claim import Claim
from volcano_py.scheduler.framework.contract import VICTIM_STATUSES, Bounds, requests_of
from volcano_py.scheduler.framework.eviction.borrowed import card_columns
from volcano_py.scheduler.framework.eviction.giveback import amounts_decide
from volcano_py.scheduler.framework.eviction.victims import Offer, Unit
from volcano_py.scheduler.model.resources import Ints, Mask, Rows32

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session

Cost = tuple[Any, ...]
Taken = dict[int, list[int]]
NOBODY: Final = -1
"""Queue of a plan without victims."""


@dataclass(eq=False, slots=True)
class Entry:
    """What a unit frees on one node.

    Attributes:
        frees: per asked column.
        charge: what taking the unit costs its queue, over ``Bounds.columns``.
    """

    unit: Unit
    frees: list[int]
    charge: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Units to take for one pod on node *row*.

    Attributes:
        queue: the victims' queue that is the least over; -1 without victims.
        cost: what plans of one queue are compared by.
    """

    row: int
    units: list[Unit]
    queue: int
    cost: Cost


class Search:
    """Plans for pods of one class, on behalf of one kind of claim.

    Attributes:
        made_at: how many claims had been carried out when plugins were asked about the offer.
        sums_suffice: amounts decide; else the placer's checks are asked after every eviction.
    """

    def __init__(self, session: Session, claim: Claim, offer: Offer, may_take: Mask, made_at: int) -> None:
        self.session, self.claim, self.offer, self.klass = session, claim, offer, claim.klass
        self.made_at = made_at
        self.bounds = Bounds(session, claim, may_take)
        self.sums_suffice = amounts_decide(session, self.klass)
        self._statuses = frozenset(int(status) for status in VICTIM_STATUSES[claim.action])
        self._asked: list[int] = np.flatnonzero(self.klass.request).tolist()
        self._request: list[int] = self.klass.request[self._asked].tolist()
        self._may: list[bool] = may_take[self._asked].tolist()
        claimed = {self.bounds.columns[i]: i for i in self.bounds.claimed}
        self._claimed_at = [claimed.get(column, -1) for column in self._asked]
        of_cards = [claimed[column] for column in card_columns(session, self.klass) if column in claimed]
        # What a victim's queue must be over in where a check fails that no amount can mend.
        self._besides_amounts = self.bounds.claimed if self.klass.cards is None else of_cards
        self._sound: dict[int, tuple[int, bool]] = {}
        self._on_node: dict[int, list[Entry]] = {}
        self._freed: dict[int, list[int]] = {}
        self._heaps: dict[int, list[tuple[Cost, int]]] = {}
        self._near: dict[int, tuple[Any, ...]] = {}
        self._strict = True
        self._enter_units()
        self._rows = self._worth_looking_at()
        self._place = {row: place for place, row in enumerate(self._rows)}
        self._build(strict=True)

    # -- what the caller asks -------------------------------------------------------------------

    def next_plan(self) -> Plan | None:
        """The cheapest plan for one more pod, off the heap; None if no node can be helped.

        Plans that let no queue fall below its entitlement come first.
        """
        while True:
            while self._heaps:
                queue = min(self._heaps, key=self._heap_key)
                heap = self._heaps[queue]
                cost, row = heapq.heappop(heap)
                if not heap:
                    del self._heaps[queue]
                plan = self.plan(row)
                if plan is None:
                    continue
                if plan.queue == queue and plan.cost <= cost:
                    return plan
                self._push(plan)
            if not self._strict or self.bounds.free:
                return None
            self._build(strict=False)

    def again(self, row: int) -> None:
        """Node *row* may serve another pod."""
        plan = self.plan(row)
        if plan is not None:
            self._push(plan)

    def _heap_key(self, queue: int) -> tuple[Any, ...]:
        """Whose plans are looked at first; the cheapest plan of a heap may turn out dearer."""
        level = self._heaps[queue][0][0][0]
        return (*self._over_key(queue, {}), level, *self._tie(queue))

    def _tie(self, row: int) -> tuple[int, str]:
        """Between queues that are equally far over (decisions.md 9)."""
        if row == NOBODY:
            return (0, "")
        queue = self.session.state.queues[row]
        return (queue.priority, queue.name)

    def _push(self, plan: Plan) -> None:
        heapq.heappush(self._heaps.setdefault(plan.queue, []), (plan.cost, plan.row))

    def took(self, row: int, units: list[Unit]) -> None:
        """*units* were taken for a pod on node *row*; what they free and may not be taken stays borrowed."""
        mine = {id(unit) for unit in units}
        for entry in self._on_node.get(row, ()):
            if id(entry.unit) in mine:
                freed = self._freed.setdefault(row, [0] * len(self._asked))
                for i, amount in enumerate(entry.frees):
                    freed[i] += amount

    def more(self, row: int) -> Iterator[Unit]:
        """Further units on node *row*, each judged by the books as they are when it is asked for."""
        for entry in self._on_node.get(row, ()):
            if self.stands(entry.unit) and self._allowed(entry, {}, self._besides_amounts):
                yield entry.unit

    def anywhere(self) -> Iterator[Unit]:
        """Units of the claimant's own queue tree, cheapest first: taking them frees room under its limits."""
        own = set(self.claim.queue.path)
        queues = self.session.state.queues
        useful = self.klass.charge > 0
        for strict in (True,) if self.bounds.free else (True, False):
            for unit in sorted(self.offer.units, key=self.cost_of):
                inside = not own.isdisjoint(queues[unit.queue].path)
                if inside and self.stands(unit) and bool((unit.charge[useful] > 0).any()):
                    charge = self._charge(unit)
                    if self.bounds.allow(unit.queue, charge, {}, self.bounds.claimed, strict=strict):
                        yield unit

    def could_free_limit(self, *, firm: bool) -> bool:
        """Whether the limits of the claimant's queues could leave room for one pod, were everybody gone."""
        shares, state = self.session.shares, self.session.state
        if shares is None:
            return True
        asked = np.flatnonzero(self.klass.charge)
        charge = self.klass.charge[asked]
        for row in self.claim.queue.path:
            gone = sum((u.charge[asked] for u in self._under(row)), np.zeros(len(asked), np.int64))
            if (self.bounds.holds(row)[asked] - gone + charge > shares.limit[row][asked]).any():
                return False
            kept = state.queues.firm[row][asked] + charge
            if firm and not shares.firm_borrow and (kept > shares.entitlement[row][asked]).any():
                return False
        return True

    def shares_limit(self, unit: Unit) -> bool:
        """*unit* counts against a limit that the claimant's pods count against too."""
        path = self.session.state.queues[unit.queue].path
        return not set(self.claim.queue.path).isdisjoint(path)

    def cost_of(self, unit: Unit) -> tuple[Any, ...]:
        """What single units are compared by, the cheapest first."""
        return (*self._over_key(unit.queue, {}), *unit.key)

    def _under(self, row: int) -> list[Unit]:
        queues = self.session.state.queues
        return [u for u in self.offer.units if self.stands(u) and row in queues[u.queue].path]

    def stands(self, unit: Unit) -> bool:
        """*unit* has not been taken."""
        return int(self.session.state.tasks.status[unit.tasks[0]]) in self._statuses

    def plan(self, row: int, deficits: list[int] | None = None) -> Plan | None:
        """The plan for one pod on node *row*; None if the node cannot be helped."""
        lacks = list(self._deficits(row) if deficits is None else deficits)
        if any(lack > 0 and not may for lack, may in zip(lacks, self._may, strict=True)):
            return None
        taken: Taken = {}
        picks = self._pick(row, lacks, taken)
        if picks is None:
            return None
        units = [entry.unit for entry in self._needed(picks, lacks)]
        return self._priced(row, units)

    # -- plans ----------------------------------------------------------------------------------

    def _pick(self, row: int, lacks: list[int], taken: Taken) -> list[Entry] | None:
        """Entries in the order they are taken until nothing lacks; *lacks* and *taken* are updated."""
        picks: list[Entry] = []
        lanes = self._lanes(row)
        while max(lacks, default=0) > 0 or (not picks and not self.sums_suffice):
            heads = [entry for lane in lanes.values() if (entry := self._head(row, lane, lacks, taken))]
            if not heads:
                return None
            chosen = heads[0] if len(heads) == 1 else min(heads, key=lambda e: self._rank(e.unit, taken))
            lanes[chosen.unit.queue].pop()
            picks.append(chosen)
            self.bounds.give(chosen.unit.queue, chosen.charge, taken)
            for i, amount in enumerate(chosen.frees):
                lacks[i] -= amount
        return picks

    def _lanes(self, row: int) -> dict[int, list[Entry]]:
        """The standing entries on node *row* by queue, cheapest last."""
        lanes: dict[int, list[Entry]] = {}
        for entry in reversed(self._on_node.get(row, [])):
            if self.stands(entry.unit):
                lanes.setdefault(entry.unit.queue, []).append(entry)
        return lanes

    def _head(self, row: int, lane: list[Entry], lacks: list[int], taken: Taken) -> Entry | None:
        """The cheapest entry of *lane* that helps and may be taken; others, which never will, are dropped."""
        while lane:
            entry = lane[-1]
            if self._helps(row, entry, lacks, taken):
                return entry
            lane.pop()
        return None

    def _helps(self, row: int, entry: Entry, lacks: list[int], taken: Taken) -> bool:
        """*entry* frees something that lacks (or may free cards, ports, neighbours) and may be taken."""
        short = [i for i, lack in enumerate(lacks) if lack > 0 and entry.frees[i] > 0]
        wanted = [self._claimed_at[i] for i in short]
        if not self.sums_suffice:
            others = [] if self.bounds.free or self._only_amounts_lack(row) else self._besides_amounts
            return self._allowed(entry, taken, wanted + others)
        return bool(short) and self._allowed(entry, taken, wanted)

    def _only_amounts_lack(self, row: int) -> bool:
        """Whether node *row* passes every check but that of amounts, as the books are."""
        version = int(self.session.state.nodes.version[row])
        known = self._sound.get(row)
        if known is None or known[0] != version:
            passes = bool(self.session.placer.passes_future(self.klass, np.array([row], np.int32))[0])
            known = self._sound[row] = (version, passes)
        return known[1]

    def _allowed(self, entry: Entry, taken: Taken, wanted: list[int]) -> bool:
        if self.bounds.free:
            return True
        wanted = [i for i in wanted if i >= 0]
        return self.bounds.allow(entry.unit.queue, entry.charge, taken, wanted, strict=self._strict)

    def _rank(self, unit: Unit, taken: Taken) -> tuple[Any, ...]:
        """What decides between queues: furthest over, priority, queue priority, name (decisions.md 9)."""
        return (*self._over_key(unit.queue, taken), unit.level, *self._tie(unit.queue))

    def _needed(self, picks: list[Entry], lacks: list[int]) -> list[Entry]:
        """*picks* without those that turn out superfluous, the dearest given back first."""
        if not self.sums_suffice:
            return picks
        kept = list(picks)
        spare = [-lack for lack in lacks]
        wholes = {entry.unit.job for entry in picks if entry.unit.spares}
        for entry in sorted(picks, key=lambda e: e.unit.key, reverse=True):
            bound = entry.unit.job in wholes
            if not bound and all(f <= s for f, s in zip(entry.frees, spare, strict=True)):
                kept.remove(entry)
                spare = [s - f for f, s in zip(entry.frees, spare, strict=True)]
        return kept

    def _priced(self, row: int, units: list[Unit]) -> Plan:
        """The plan to take *units* for node *row*; its place in tie order makes the cost unique."""
        place = self._place[row]
        if not units:
            return Plan(row, units, NOBODY, ((), False, 0.0, 0, place))
        queues = {unit.queue for unit in units}
        worst = max(queues, key=lambda row: (self._over_key(row, {}), self._tie(row)))
        level = max(unit.level for unit in units)
        lost = sum(unit.lost for unit in units)
        return Plan(row, units, worst, (level, any(u.whole for u in units), lost, len(units), place))

    def _over_key(self, row: int, taken: Taken) -> tuple[Any, float]:
        """Plugins' order of victim queues, then the queue that is furthest over; nobody's before all."""
        if self.bounds.free or row == NOBODY:
            return ((), 0.0)
        near = self._near.get(row)
        if near is None:
            queue = self.session.state.queues[row]
            points = self.session.points.victim_queue_order
            near = self._near[row] = tuple(entry.call(self.claim, queue) for entry in points)
        return (near, -self.bounds.ratio(row, taken))

    # -- nodes ----------------------------------------------------------------------------------

    def _enter_units(self) -> None:
        """Entries by node: what each unit frees where."""
        tasks = [task for unit in self.offer.units for task in unit.tasks]
        if not tasks:
            return
        rows = np.array(tasks, np.int32)
        frees = requests_of(self.session.state, rows)[:, self._asked].tolist()
        nodes = self.session.state.tasks.node[rows].tolist()
        each = zip(nodes, frees, strict=True)
        for unit in self.offer.units:
            charge = self._charge(unit)
            by_node: dict[int, list[int]] = {}
            for _ in unit.tasks:
                node, freed = next(each)
                known = by_node.get(node)
                by_node[node] = freed if known is None else [a + b for a, b in zip(known, freed, strict=True)]
            for node, freed in by_node.items():
                self._on_node.setdefault(node, []).append(Entry(unit, freed, charge))

    def _charge(self, unit: Unit) -> list[int]:
        """What taking *unit* costs its queue: its own tasks and the spare members not taken yet."""
        charge: list[int] = unit.charge[self.bounds.columns].tolist()
        for spare in unit.spares:
            if self.stands(spare):
                charge = [a + b for a, b in zip(charge, self._charge(spare), strict=True)]
        return charge

    def _worth_looking_at(self) -> list[int]:
        """Rows, in tie order, whose checks eviction can help and where all units together make room."""
        state = self.session.state
        order = state.nodes.order
        there = np.zeros(len(state.nodes.version), np.bool_)
        there[list(self._on_node)] = True
        rows = order[there[order]]
        if len(rows) == 0:
            return []
        rows = rows[~self.session.placer.unresolvable(self.klass, rows)]
        totals = [
            [sum(column) for column in zip(*(entry.frees for entry in self._on_node[row]), strict=True)]
            for row in rows.tolist()
        ]
        most = np.array(totals, np.int64).reshape(len(rows), len(self._asked))
        enough = (most * np.array(self._may, np.bool_) >= self._lacking(rows)).all(axis=1)
        found: list[int] = rows[enough].tolist()
        return found

    def _build(self, *, strict: bool) -> None:
        self._strict = strict
        self._heaps = {}
        if not self._rows:
            return
        rows = np.array(self._rows, np.int32)
        for row, deficits in zip(self._rows, self._lacking(rows).tolist(), strict=True):
            plan = self.plan(row, deficits)
            if plan is not None:
                self._heaps.setdefault(plan.queue, []).append((plan.cost, row))
        for heap in self._heaps.values():
            heapq.heapify(heap)

    def _lacking(self, rows: Rows32) -> Ints:
        """(n, A) what each node lacks of each asked column once those on their way out are gone."""
        nodes = self.session.state.nodes
        at = np.ix_(rows, np.array(self._asked, np.int32))
        free = nodes.allocatable[at] - nodes.used[at] + nodes.releasing[at] - nodes.pipelined[at]
        lacking: Ints = np.array(self._request, np.int64) - free
        return lacking

    def _deficits(self, row: int) -> list[int]:
        lacks: list[int] = self._lacking(np.array([row], np.int32))[0].tolist()
        freed = self._freed.get(row)
        if freed is not None:
            lacks = [
                lack if may else lack + gone for lack, may, gone in zip(lacks, self._may, freed, strict=True)
            ]
        return lacks
