"""How a pod wishes its cards and its node to be chosen, in HAMi's words.

``hami.io/gpu-scheduler-policy`` is a list: of ``binpack`` and ``spread`` the first counts; ``numa`` keeps a
container's cards on one NUMA node where that can be, ``topology-aware`` on cards that are linked well, and
``mutex`` takes none that somebody uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from volcano_py.plugins.deviceshare import names
from volcano_py.scheduler.model.kube.errors import Problem, child

_ORDERS: Final = ("binpack", "spread")
_MUTEX, _LINKED, _NUMA = "mutex", "topology-aware", "numa"
_OF_CARDS: Final = (*_ORDERS, _MUTEX, _LINKED, _NUMA)
_WEIGHTS: Final = ("slot", "core", "memory")


@dataclass(frozen=True, slots=True)
class Policies:
    """See ``CardRequest`` for the fields."""

    card_order: str = ""
    node_order: str = ""
    untouched: bool = False
    linked: bool = False
    together: bool = False
    weights: tuple[float, ...] = ()


_NONE: Final = Policies()
_NOTES: Final = "metadata.annotations"


def read_policies(notes: Mapping[str, str], problems: list[Problem]) -> Policies:
    """The policies in annotations *notes*; words without effect are added to *problems*."""
    if not any(notes.get(key) for key in (names.CARD_POLICY, names.NODE_POLICY, names.WEIGHTS)):
        return _NONE
    cards = _words(notes, names.CARD_POLICY, _OF_CARDS, problems)
    nodes = _words(notes, names.NODE_POLICY, _ORDERS, problems)
    return Policies(
        card_order=next((word for word in cards if word in _ORDERS), ""),
        node_order=next(iter(nodes), ""),
        untouched=_MUTEX in cards,
        linked=_LINKED in cards,
        together=_NUMA in cards,
        weights=_weights(notes, problems),
    )


def _words(notes: Mapping[str, str], key: str, known: tuple[str, ...], problems: list[Problem]) -> list[str]:
    words = [word.strip() for word in notes.get(key, "").split(",") if word.strip()]
    last = known[-1]
    told = f"use {', '.join(known[:-1])} or {last}"
    problems += [Problem(child(_NOTES, key), f"{w!r} has no effect: {told}") for w in words if w not in known]
    return [word for word in words if word in known]


def _weights(notes: Mapping[str, str], problems: list[Problem]) -> tuple[float, ...]:
    """``slot=1,core=1,memory=3``: all three, none negative, one above 0."""
    text = notes.get(names.WEIGHTS, "")
    if not text:
        return ()
    rows = [row.partition("=") for row in text.split(",")]
    try:
        given = {key.strip(): float(value) for key, _, value in rows}
    except ValueError:
        given = {}
    weights = tuple(given.get(name, -1.0) for name in _WEIGHTS)
    if len(given) != len(_WEIGHTS) or min(weights) < 0 or not 0 < sum(weights) < float("inf"):
        message = f"{text!r} has no effect: write slot=1,core=1,memory=3, none below 0, one above it"
        problems.append(Problem(child(_NOTES, names.WEIGHTS), message))
        return ()
    return weights
