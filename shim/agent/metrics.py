"""What slices and cards hold, for Prometheus: made from the latest look when somebody asks.

Nothing is kept between two questions, so who ended is gone from the answer. Ratios go from 0 to 1; HAMi's go
to 100, and stand here under HAMi's names where they mean the same (docs/agent.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from volcano_py.shim.agent.attribution import Use
from volcano_py.shim.agent.keeper import Keeper
from volcano_py.shim.agent.look import Look
from volcano_py.shim.agent.overuse import Memory, Standing
from volcano_py.shim.agent.readings import CardFacts
from volcano_py.shim.agent.region import DeviceUse
from volcano_py.shim.agent.tenants import Hold, Tenant

CONTAINER: Final = ("node", "namespace", "pod", "container", "queue")
SLICE: Final = (*CONTAINER, "card")
CARD: Final = ("node", "card", "index", "type")
HAMI_SLICE: Final = ("zone", "namespace", "pod", "container", "vdevice_index", "device_uuid")
HAMI_CARD: Final = ("zone", "node", "device_index", "device_uuid", "device_type")
_ZONE: Final = "vGPU"
_SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice at the latest look.

    Attributes:
        place: among the container's slices.
        use: None where the card did not answer.
        claim: what the library in the container says, which the container could write; None without one.
    """

    node: str
    tenant: Tenant
    uuid: str
    place: int
    standing: Standing
    memory: Memory
    use: Use | None
    claim: DeviceUse | None

    @property
    def hold(self) -> Hold:
        """What it may hold."""
        return self.tenant.holds[self.uuid]


@dataclass(frozen=True, slots=True)
class Card:
    """A card at the latest look."""

    node: str
    uuid: str
    facts: CardFacts
    slices: int
    healthy: bool


T = TypeVar("T", Slice, Card)


@dataclass(frozen=True, slots=True)
class Figure(Generic[T]):
    """One metric: its name, what it says, and its value of a thing, None for no sample."""

    name: str
    text: str
    of: Callable[[T], float | None]
    counts: bool = False


SLICES: Final[tuple[Figure[Slice], ...]] = (
    Figure(
        "volcano_py_slice_memory_limit_bytes",
        "What the container may hold of the card; no sample without a limit.",
        lambda one: one.hold.memory_bytes or None,
    ),
    Figure(
        "volcano_py_slice_memory_used_bytes",
        "What its processes hold of the card, as the driver says.",
        lambda one: one.use.memory_bytes if one.use else None,
    ),
    Figure(
        "volcano_py_slice_cores_limit_ratio",
        "Its share of the card's time; no sample without a limit.",
        lambda one: _ratio(one.hold.cores or None),
    ),
    Figure(
        "volcano_py_slice_cores_used_ratio",
        "The share of the card's time that it uses, as the driver says.",
        lambda one: _ratio(one.use.busy_percent if one.use else None),
    ),
    Figure(
        "volcano_py_slice_frozen",
        "1 while the agent has its processes stopped.",
        lambda one: float(one.standing is Standing.FROZEN),
    ),
    Figure(
        "volcano_py_slice_over_limit",
        "1 while the container counts as over its slices.",
        lambda one: float(one.memory.is_over),
    ),
    Figure(
        "volcano_py_slice_memory_charged_bytes",
        "What the library in the container has charged.",
        lambda one: one.claim.used_bytes if one.claim else None,
    ),
    Figure(
        "volcano_py_slice_refused_allocations",
        "Allocations that the library refused.",
        lambda one: one.claim.refused if one.claim else None,
        counts=True,
    ),
    Figure(
        "volcano_py_slice_throttled_seconds",
        "How long the library held launches for the core limit.",
        lambda one: one.claim.throttled_ns / _SECOND_NS if one.claim else None,
        counts=True,
    ),
    Figure(
        "volcano_py_slice_launches",
        "Launches that the library let through.",
        lambda one: one.claim.launches if one.claim else None,
        counts=True,
    ),
)

CARDS: Final[tuple[Figure[Card], ...]] = (
    Figure("volcano_py_card_memory_total_bytes", "Memory of the card.", lambda one: one.facts.total_bytes),
    Figure(
        "volcano_py_card_memory_used_bytes",
        "What everybody together holds of it, as the driver says.",
        lambda one: one.facts.used_bytes,
    ),
    Figure(
        "volcano_py_card_cores_used_ratio",
        "Share of time in which something ran on it.",
        lambda one: _ratio(one.facts.busy_percent),
    ),
    Figure("volcano_py_card_slices", "Running containers that hold slices of it.", lambda one: one.slices),
    Figure("volcano_py_card_healthy", "1 if it takes new slices.", lambda one: float(one.healthy)),
)

HAMI_SLICES: Final[tuple[Figure[Slice], ...]] = (
    Figure(
        "hami_vgpu_memory_used_bytes",
        "Memory that the container holds of the card.",
        lambda one: one.use.memory_bytes if one.use else None,
    ),
    Figure(
        "hami_vgpu_memory_limit_bytes",
        "Memory that the container may hold of it.",
        lambda one: one.hold.memory_bytes,
    ),
    Figure(
        "hami_container_device_memory_bytes",
        "Memory that the container holds of the card.",
        lambda one: one.use.memory_bytes if one.use else None,
    ),
    Figure(
        "hami_container_device_utilization_ratio",
        "The container's use of the card, 0 to 100.",
        lambda one: one.use.busy_percent if one.use else None,
    ),
)

HAMI_CARDS: Final[tuple[Figure[Card], ...]] = (
    Figure("hami_host_gpu_memory_used_bytes", "Memory in use on the card.", lambda one: one.facts.used_bytes),
    Figure(
        "hami_host_gpu_utilization_ratio", "Use of the card, 0 to 100.", lambda one: one.facts.busy_percent
    ),
)


class SliceMetrics(Collector):
    """Figures of slices and cards.

    Args:
        keeper: who looks.
        node: this node's name.
        troubles: cards that take no new slices, by UUID.
        as_hami: under HAMi's names, too.
        clock: the keeper's.
    """

    def __init__(
        self,
        keeper: Keeper,
        node: str,
        troubles: Callable[[], Collection[str]],
        *,
        as_hami: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keeper, self._node, self._troubles = keeper, node, troubles
        self._as_hami, self._clock = as_hami, clock

    def describe(self) -> list[Metric]:
        """Nothing: there may be no look yet."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The figures of the latest look; only those about the keeper where that is too long ago."""
        yield from self._own()
        if self._keeper.is_late(self._clock()):
            return
        look = self._keeper.look
        slices, cards = slices_of(look, self._node), cards_of(look, self._node, self._troubles())
        yield from _families(SLICES, SLICE, slices, _slice_labels)
        yield _disbelieved(look, self._node)
        yield from _families(CARDS, CARD, cards, _card_labels)
        yield _unowned(look, cards)
        if self._as_hami:
            yield from _families(HAMI_SLICES, HAMI_SLICE, slices, _hami_slice_labels)
            yield from _families(HAMI_CARDS, HAMI_CARD, cards, _hami_card_labels)

    def _own(self) -> Iterator[Metric]:
        keeper = self._keeper
        if keeper.rounds:
            age_s = self._clock() - keeper.look.at_s
            yield GaugeMetricFamily(
                "volcano_py_keeper_look_age_seconds", "Since the latest look.", value=age_s
            )
        yield CounterMetricFamily("volcano_py_keeper_looks", "Looks at the cards.", value=keeper.rounds)
        yield CounterMetricFamily(
            "volcano_py_keeper_failures", "What failed in looks.", value=keeper.failures
        )
        acts = CounterMetricFamily("volcano_py_keeper_acts", "What was done to containers.", labels=["act"])
        for kind, count in keeper.hand.done.items():
            acts.add_metric([kind.name.lower()], count)
        yield acts


def slices_of(look: Look, node: str) -> list[Slice]:
    """Every slice that a running container holds."""
    found = []
    for each in look.tenants:
        standing = look.standings.get(each.key, Standing.ABSENT)
        memory = look.memories.get(each.key, Memory())
        for place, uuid in enumerate(each.holds):
            use, claim = _use(look, each, uuid), _claim(look, each, uuid)
            found.append(Slice(node, each, uuid, place, standing, memory, use, claim))
    return found


def cards_of(look: Look, node: str, troubles: Collection[str]) -> list[Card]:
    """Every card that answered."""
    return [
        Card(
            node,
            each.uuid,
            each.facts,
            slices=sum(each.uuid in one.holds for one in look.tenants),
            healthy=each.uuid not in troubles,
        )
        for each in look.readings
        if each.facts is not None
    ]


def unowned(look: Look, uuid: str) -> dict[str, int]:
    """Bytes of the card *uuid* that no slice covers, by where their holders are."""
    holders = {each.key for each in look.tenants if uuid in each.holds}
    found = dict.fromkeys(("pod", "outside", "unclear"), 0)
    for key, of_cards in look.attribution.uses.items():
        if uuid in of_cards and key not in holders:
            found["pod"] += of_cards[uuid].memory_bytes
    for stray in look.attribution.strays:
        if stray.uuid == uuid:
            found[stray.why.value] += stray.memory_bytes
    return found


def _use(look: Look, tenant: Tenant, uuid: str) -> Use | None:
    if uuid not in look.attribution.read:
        return None
    return look.attribution.uses.get(tenant.key, {}).get(uuid, Use(busy_percent=0))


def _claim(look: Look, tenant: Tenant, uuid: str) -> DeviceUse | None:
    region = look.regions.get(tenant.key)
    return next((each for each in region.devices if each.uuid == uuid), None) if region is not None else None


def _ratio(percent: int | None) -> float | None:
    return None if percent is None else percent / 100


def _unowned(look: Look, cards: Iterable[Card]) -> Metric:
    family = GaugeMetricFamily(
        "volcano_py_card_memory_unowned_bytes",
        "Held by processes without a slice: of other pods, outside of pods, or of unclear origin.",
        labels=[*CARD, "where"],
    )
    for card in cards:
        for where, amount in unowned(look, card.uuid).items():
            family.add_metric([*_card_labels(card), where], amount)
    return family


def _disbelieved(look: Look, node: str) -> Metric:
    """Of containers: one word holds the launches on all their cards."""
    family = CounterMetricFamily(
        "volcano_py_container_disbelieved_blocks",
        "Words to hold launches that the library did not obey, since no agent writes such ones.",
        labels=CONTAINER,
    )
    for each in look.tenants:
        region = look.regions.get(each.key)
        if region is not None:
            family.add_metric(_container_labels(node, each), region.disbelieved)
    return family


def _families(
    figures: Iterable[Figure[T]],
    labels: tuple[str, ...],
    things: Collection[T],
    labels_of: Callable[[T], tuple[str, ...]],
) -> Iterator[Metric]:
    for figure in figures:
        kind = CounterMetricFamily if figure.counts else GaugeMetricFamily
        family = kind(figure.name, figure.text, labels=labels)
        for thing in things:
            value = figure.of(thing)
            if value is not None:
                family.add_metric(labels_of(thing), value)
        yield family


def _container_labels(node: str, its: Tenant) -> tuple[str, ...]:
    return node, its.namespace, its.pod, its.container, its.queue


def _slice_labels(one: Slice) -> tuple[str, ...]:
    return *_container_labels(one.node, one.tenant), one.uuid


def _card_labels(one: Card) -> tuple[str, ...]:
    return one.node, one.uuid, str(one.facts.index), one.facts.type


def _hami_slice_labels(one: Slice) -> tuple[str, ...]:
    its = one.tenant
    return _ZONE, its.namespace, its.pod, its.container, str(one.place), one.uuid


def _hami_card_labels(one: Card) -> tuple[str, ...]:
    return _ZONE, one.node, str(one.facts.index), one.uuid, one.facts.type
