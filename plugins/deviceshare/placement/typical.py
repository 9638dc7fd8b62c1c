"""The typical asks of a cluster: which asks are common, and how common.

The policies that look ahead value a node by what the typical asks could still do with it. Where the
counts come from (pods seen, a history, a trace) is the caller's business. Neighbours:
``fragmentation`` and ``expected_fill``, which read these asks.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from volcano_py.plugins.deviceshare.placement.state import CardAsk, Floats, Ints, Mask, Milli

_Key: TypeAlias = tuple[int, int, int, tuple[int, ...]]


def _key(ask: CardAsk) -> _Key:
    return ask.cpu_milli, ask.milli, ask.count, tuple(sorted(ask.models or ()))


@dataclass(frozen=True)
class TypicalAsks:
    """Common asks with their counts, most frequent first; memory is left out.

    Attributes:
        cpu: (T,) int64, milli-cores.
        milli: (T,) int64, per card, milli of a card.
        cards: (T,) int64, number of cards; 0 asks for none.
        models: per ask, the accepted model ids; None accepts any.
        counts: (T,) int64, how often each ask was seen.
    """

    cpu: Ints
    milli: Ints
    cards: Ints
    models: tuple[frozenset[int] | None, ...]
    counts: Ints

    @classmethod
    def from_counts(
        cls, seen: Iterable[tuple[CardAsk, int]], cover: float = 0.95, keep_gangs: bool = False
    ) -> "TypicalAsks":
        """The most frequent asks that together make up *cover* of all pods seen.

        Args:
            seen: asks with their counts; asks that differ in memory only are added up.
            cover: share of pods to reach, in (0, 1].
            keep_gangs: also keep every ask for two or more cards, however rare.

        Raises:
            ValueError: *cover* is outside (0, 1], or no pod was seen.
        """
        if not 0 < cover <= 1:
            raise ValueError(f"cover must be in (0, 1], got {cover}")
        counts: dict[_Key, int] = {}
        models: dict[_Key, frozenset[int] | None] = {}
        for ask, count in seen:
            key = _key(ask)
            counts[key] = counts.get(key, 0) + count
            models[key] = ask.models
        if sum(counts.values()) <= 0:
            raise ValueError("no pods to take typical asks from")
        keys = _most_frequent(counts, cover, keep_gangs)
        table = np.array([key[:3] for key in keys], dtype=np.int64)
        seen_often = np.array([counts[key] for key in keys], dtype=np.int64)
        return cls(table[:, 0], table[:, 1], table[:, 2], tuple(models[key] for key in keys), seen_often)

    @property
    def share(self) -> Floats:
        """(T,) float64, each ask's share of the pods counted here; sums to 1."""
        shares: Floats = self.counts / self.counts.sum()
        return shares


def _most_frequent(counts: dict[_Key, int], cover: float, keep_gangs: bool) -> list[_Key]:
    # Of equally frequent asks the larger one is kept first, as in the published experiment.
    ranked = sorted(counts, key=lambda key: (counts[key], key), reverse=True)
    needed = cover * sum(counts.values())
    reached, kept = 0, []
    for key in ranked:
        if reached < needed or (keep_gangs and key[2] >= 2):
            kept.append(key)
        reached += counts[key]
    return sorted(kept, key=lambda key: (-counts[key], key))


class ModelClasses:
    """Card models grouped by which typical asks accept them.

    Attributes:
        accepted: (M, T) bool, whether asks accept models of a class; class 0 holds every model that
            no ask names.
    """

    def __init__(self, typical: TypicalAsks) -> None:
        named = sorted({model for models in typical.models for model in models or ()})
        unnamed = tuple(models is None for models in typical.models)
        rows = {unnamed: 0}
        self._class_of = np.zeros(max(named, default=-1) + 2, dtype=np.int64)
        for model in named:
            accepted = tuple(models is None or model in models for models in typical.models)
            self._class_of[model] = rows.setdefault(accepted, len(rows))
        self.accepted: Mask = np.array(list(rows), dtype=np.bool_)

    def of(self, model: Milli) -> Ints:
        """(N,) int64, the class of each model id."""
        last = len(self._class_of) - 1  # no ask names the last entry
        known = np.where((model >= 0) & (model < last), model, last)
        return self._class_of[known]
