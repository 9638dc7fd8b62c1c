"""Amounts as sentences say them: memory of cards in bytes, their cores in percent, under one name.

Queues are charged for cards under two spellings of each meaning, in MiB and percent without a unit. People
are told ``card memory 16Gi`` instead. Data for programs keeps names and amounts as Kubernetes has them.
Neighbours: ``cards`` (whose ``CardSource`` says what a name means), ``resources``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from volcano_py.crds.messages import did_you_mean
from volcano_py.crds.quantity import format_base, units_per_one
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.resources import PODS

KIB: Final = 1024
GIB: Final = 1024**3
READABLE: Final = 7
"""Signs of an amount; longer ones are rounded."""
LARGE_MIB: Final = 100 * KIB
"""From here on MiB are unreadable."""
TOO_LONG: Final = 99_999.5
"""From here on five digits don't do."""
NOUNS: Final = {"memory": "card memory", "cores": "card cores", "slots": "card slots"}
"""What each measure of a card is called."""


def noun(state: ClusterState, resource: str) -> str:
    """What *resource* is called: a measure of cards, or its own name."""
    measure = _measure(state, resource)
    return NOUNS[measure] if measure else resource


def figure(state: ClusterState, resource: str, base: int) -> str:
    """*base* units of *resource*, with the unit that its noun needs."""
    return card_figure(_measure(state, resource), resource, base)


def card_figure(measure: str, resource: str, base: int) -> str:
    """*base* units of *resource*, which is *measure* of cards; "": of none, then as Kubernetes writes it."""
    if measure == "memory":
        return _mib(base // 1000)
    if not measure:
        return _plain(resource, base)
    whole = f"{base / 1000:.1f}".removesuffix(".0")
    return f"{whole}%" if measure == "cores" else whole


def _plain(resource: str, base: int) -> str:
    """As Kubernetes writes it, where that can be read: shares by weight leave odd bytes and thousandths."""
    text = format_base(resource, base)
    if len(text) <= READABLE:
        return text
    if units_per_one(resource) == 1:
        return _gib(base / GIB)
    return f"{base / 1000:.1f}" if text.endswith("m") else text


def _mib(amount: int) -> str:
    """MiB as asks have them; whole and large amounts in GiB."""
    if amount and (amount % KIB == 0 or amount >= LARGE_MIB):
        return _gib(amount / KIB)
    return f"{amount}Mi" if amount else "0"


def _gib(amount: float) -> str:
    """*amount* GiB, in a unit in which it needs no power of ten."""
    for unit in ("Gi", "Ti", "Pi"):
        if amount < TOO_LONG:
            return f"{amount:.5g}{unit}"
        amount /= KIB
    return f"{amount:.0f}Ei"


def amounts_text(state: ClusterState, amounts: Mapping[str, int]) -> str:
    """``4 cpu, 16Gi card memory``; of spellings that mean the same, the first.

    Args:
        state: whose cards give names their meaning.
        amounts: resource -> base units.
    """
    told: dict[str, str] = {}
    for resource, base in sorted(amounts.items()):
        told.setdefault(noun(state, resource), figure(state, resource, base))
    return ", ".join(f"{text} {name}" for name, text in told.items())


def absent_text(state: ClusterState, resource: str) -> str:
    """That no node offers *resource*, with the name that may have been meant."""
    others = [name for name in offered(state) if name != resource]
    return f"no node offers {resource}{did_you_mean(resource, others)}"


def offered(state: ClusterState) -> list[str]:
    """Names of resources that some node has, cards' own spellings included."""
    nodes = state.nodes
    columns = np.flatnonzero((nodes.allocatable[nodes.live] > 0).any(axis=0)).tolist()
    names = [state.vocabulary.names[column] for column in columns if column != PODS]
    return sorted({*names, *(state.card_source.measures if state.cards.specs else ())})


def _measure(state: ClusterState, resource: str) -> str:
    """What of a card *resource* measures; "" for others, and where ``nvidia.com/gpu`` just counts devices.

    Memory and cores are those of cards even where no node has registered any yet.
    """
    measure = state.card_source.measures.get(resource, "")
    return measure if state.cards.specs or measure != "slots" else ""
