"""Card placement policies: on which node, and on which of its cards, an ask is best placed.

Pure functions over node rows; who fits, who goes first and what is written down is decided
elsewhere. ``make_policy`` builds a policy by its configured name. Figures: docs/placement.md.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from volcano_py.plugins.deviceshare.placement.best_fit import BestFit
from volcano_py.plugins.deviceshare.placement.clustering import Clustering
from volcano_py.plugins.deviceshare.placement.dot_product import DotProduct
from volcano_py.plugins.deviceshare.placement.expected_fill import ExpectedFill, NodeValues
from volcano_py.plugins.deviceshare.placement.fragmentation import FragmentationGradient
from volcano_py.plugins.deviceshare.placement.packing import Packing
from volcano_py.plugins.deviceshare.placement.random import Random
from volcano_py.plugins.deviceshare.placement.scarcity import ModelPrices
from volcano_py.plugins.deviceshare.placement.state import (
    WHOLE_CARD,
    CardAsk,
    CardNodes,
    PlacementPolicy,
    fits,
)
from volcano_py.plugins.deviceshare.placement.typical import TypicalAsks

__all__ = [
    "POLICIES",
    "WHOLE_CARD",
    "CardAsk",
    "CardNodes",
    "PlacementPolicy",
    "PolicySpec",
    "Setting",
    "TypicalAsks",
    "fits",
    "make_policy",
    "typical_for",
]

Options: TypeAlias = Mapping[str, float]


@dataclass(frozen=True)
class Setting:
    """What a policy is made from.

    Attributes:
        options: all options of the policy.
        seed: of the random policy.
        typical: the asks to expect.
        cards: cards in the cluster by model id.
    """

    options: Options
    seed: int
    typical: TypicalAsks | None
    cards: Mapping[int, int] | None

    def expected(self) -> TypicalAsks:
        """The typical asks, for a policy that needs them."""
        if self.typical is None:
            raise ValueError("it looks ahead, and needs typical asks")
        return self.typical


@dataclass(frozen=True)
class PolicySpec:
    """How a policy is made.

    Attributes:
        make: builds it.
        options: names of its options, with their defaults.
        cover: share of pods its typical asks should make up; None means it needs none.
        keep_gangs: its typical asks should include every gang, however rare.
    """

    make: Callable[[Setting], PlacementPolicy]
    options: Options = field(default_factory=dict)
    cover: float | None = None
    keep_gangs: bool = False


def _expected_fill(setting: Setting) -> PlacementPolicy:
    options, typical = setting.options, setting.expected()
    values = NodeValues(typical, int(options["streams"]), options["fill"], int(options["stream_seed"]))
    prices = None if setting.cards is None else ModelPrices(typical, setting.cards)
    return ExpectedFill(values, prices, options["price_weight"])


_LARGEST_NODE: Options = MappingProxyType({"cpu_scale": 128_000, "cards_scale": 8_000})
_LARGEST_CARDS: Options = MappingProxyType({"cards_scale": 8_000})
_EXPECTED_FILL: Options = MappingProxyType(
    {"streams": 32, "fill": 2.0, "stream_seed": 7, "price_weight": 0.5}
)

POLICIES: Mapping[str, PolicySpec] = MappingProxyType(
    {
        "random": PolicySpec(lambda setting: Random(setting.seed)),
        "dot-product": PolicySpec(lambda setting: DotProduct(**setting.options), _LARGEST_NODE),
        "clustering": PolicySpec(lambda setting: Clustering(**setting.options), _LARGEST_CARDS),
        "packing": PolicySpec(lambda _setting: Packing()),
        "best-fit": PolicySpec(lambda setting: BestFit(**setting.options), _LARGEST_NODE),
        "fragmentation-gradient": PolicySpec(
            lambda setting: FragmentationGradient(setting.expected()), cover=0.95
        ),
        "expected-fill": PolicySpec(_expected_fill, _EXPECTED_FILL, cover=0.99, keep_gangs=True),
    }
)


def make_policy(
    name: str,
    *,
    typical: TypicalAsks | None = None,
    seed: int = 0,
    options: Options | None = None,
    cards: Mapping[int, int] | None = None,
) -> PlacementPolicy:
    """The policy configured under *name*.

    Args:
        name: a key of ``POLICIES``.
        typical: what to expect, from ``typical_for``; needed by the policies that look ahead.
        seed: of the random policy; the others ignore it.
        options: overrides of the policy's own options.
        cards: number of cards in the cluster by model id, for expected fill to hold back scarce
            models; None holds none back.

    Raises:
        ValueError: *name* or an option is unknown (the message lists the known ones), or *typical*
            is missing.
    """
    spec = _spec(name)
    unknown = sorted(set(options or {}) - set(spec.options))
    if unknown:
        raise ValueError(f"policy {name}: unknown option {unknown[0]}; known: {sorted(spec.options)}")
    try:
        return spec.make(Setting({**spec.options, **(options or {})}, seed, typical, cards))
    except ValueError as error:
        raise ValueError(f"policy {name}: {error}") from error


def typical_for(name: str, seen: Iterable[tuple[CardAsk, int]]) -> TypicalAsks | None:
    """The typical asks that policy *name* wants, from asks *seen* with their counts; None if it wants none.

    Raises:
        ValueError: *name* is unknown, or nothing was seen though the policy needs it.
    """
    spec = _spec(name)
    return None if spec.cover is None else TypicalAsks.from_counts(seen, spec.cover, spec.keep_gangs)


def _spec(name: str) -> PolicySpec:
    if name not in POLICIES:
        raise ValueError(f"unknown placement policy {name!r}; known: {', '.join(POLICIES)}")
    return POLICIES[name]
