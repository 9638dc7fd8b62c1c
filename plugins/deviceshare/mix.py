"""Which asks are typical of the cluster: from its pods, or from a history in the configuration.

The placement policies that look ahead value a node by the asks to expect. The mix is taken anew when
the number of pods, classes or cards has drifted by a tenth, so that an idle cycle asks nothing.
Neighbours: ``placement.typical`` (what a policy keeps of it), ``translate`` (classes to asks).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from volcano_py.crds.schedulerconfig import ConfigError
from volcano_py.plugins.deviceshare.asks import Selection
from volcano_py.plugins.deviceshare.facts import CardFacts
from volcano_py.plugins.deviceshare.placement import WHOLE_CARD, CardAsk
from volcano_py.plugins.deviceshare.translate import ask_of
from volcano_py.scheduler.model.cluster import ClusterState

_DRIFT: Final = 10
_KEYS: Final = ("cpuMilli", "cards", "cardMilli", "types", "count")


@dataclass(frozen=True, slots=True)
class PastAsk:
    """An ask of the history: milli-CPU, cards, milli of each card, model names, how often."""

    cpu_milli: int
    cards: int
    card_milli: int
    types: tuple[str, ...]
    count: int

    def on(self, facts: CardFacts) -> tuple[CardAsk, int]:
        """As an ask of the models known now, with its count."""
        models = facts.models(Selection(types=tuple(name.lower() for name in self.types)))
        return CardAsk(self.cpu_milli, 0, self.card_milli, self.cards, models), self.count


def read_history(key: str, value: object) -> tuple[PastAsk, ...]:
    """The history in argument *key*; raises ``ConfigError`` naming what is wrong with it."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ConfigError(f"argument {key} must be a list of asks, not {value!r}")
    return tuple(_past_ask(f"{key}[{at}]", entry) for at, entry in enumerate(value))


def _past_ask(where: str, entry: object) -> PastAsk:
    if not isinstance(entry, Mapping) or not set(entry) <= set(_KEYS):
        raise ConfigError(f"argument {where} must have the keys {', '.join(_KEYS)}, not {entry!r}")
    types: Any = entry.get("types") or []
    if not isinstance(types, list) or not all(isinstance(name, str) for name in types):
        raise ConfigError(f"argument {where}.types must be a list of texts, not {types!r}")
    cards = _number(where, entry, "cards", 0, 2**20)
    milli = _number(where, entry, "cardMilli", WHOLE_CARD if cards else 0, WHOLE_CARD)
    if (cards == 0) != (milli == 0):
        raise ConfigError(f"argument {where}: cards and cardMilli must both be 0 or both be above it")
    cpu, count = _number(where, entry, "cpuMilli", 0, 2**40), _number(where, entry, "count", 1, 2**40)
    return PastAsk(cpu, cards, milli, tuple(types), count)


def _number(where: str, entry: Mapping[Any, Any], key: str, default: int, top: int) -> int:
    value = entry.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= top:
        raise ConfigError(f"argument {where}.{key} must be a whole number from 0 to {top}, not {value!r}")
    return value


class Mix:
    """The asks to expect and when they were last taken."""

    def __init__(self, history: Sequence[PastAsk]) -> None:
        self.history = history
        self._taken_at: tuple[int, int, int] | None = None
        self._types: tuple[str, ...] = ()

    def drifted(self, state: ClusterState, facts: CardFacts) -> bool:
        """Whether ``take`` would answer notably differently than last time."""
        if self._taken_at is None or self._types != facts.types:
            return True
        now = _size(state, facts)
        if self.history:
            now = (*self._taken_at[:2], now[2])
        return any(_DRIFT * abs(a - b) > b for a, b in zip(now, self._taken_at, strict=True))

    def take(self, state: ClusterState, facts: CardFacts) -> list[tuple[CardAsk, int]]:
        """Asks with their counts."""
        self._taken_at, self._types = _size(state, facts), facts.types
        if self.history:
            return [past.on(facts) for past in self.history]
        sizes = facts.size[facts.cards > 0]
        usual = 0 if len(sizes) == 0 else int(sorted(sizes.tolist())[len(sizes) // 2])
        return [
            (ask_of(klass, usual, facts), klass.tasks)
            for klass in state.classes.classes
            if klass is not None and not klass.best_effort
        ]


def _size(state: ClusterState, facts: CardFacts) -> tuple[int, int, int]:
    """Pods, classes and cards."""
    return len(state.tasks.index), len(state.classes.classes), int(facts.cards.sum())
