"""Refusals are values: why something may not be, in numbers, said the same way everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod, job or queue does not get what it asks.

    Attributes:
        reason: one CamelCase word, stable (``QueueLimit``, ``NodesUnfit``, ``GangIncomplete``).
        message: the sentence for people; names the object, the limit and the amount.
        nodes: nodes looked at, where nodes were.
        failed: check -> number of nodes that it ruled out (each node counted at its first failed check).
        missing: resource -> base units short (on the nearest node, or under the queue's limit).
        nearest: the node that came closest, "" where none.
    """

    reason: str
    message: str
    nodes: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class Room:
    """How many more pods of a class a queue takes, and why not one more.

    Attributes:
        count: pods that still fit; ``ENDLESS`` where nothing limits them.
        refusal: what stops the next one; None where nothing does.
    """

    count: int
    refusal: Refusal | None = None


ENDLESS: Final = 2**62
NO_LIMIT: Final = Room(ENDLESS)
