"""Refusals are values: why something may not be, in numbers, said the same way everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Excess:
    """A limit of a queue that an ask would pass; amounts in base units of one resource.

    Attributes:
        queue: row of the queue, which may be an ancestor of the asking one.
        column: the resource.
        asked: by *pods* pods together.
        used: what counts against the limit already.
        bound: what *limit* is, as in "2 over its max of 8".
        firm: only work that may not be interrupted counts.
    """

    queue: int
    column: int
    asked: int
    used: int
    limit: int
    bound: str
    firm: bool = False
    pods: int = 1


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
        lines: (number of nodes, what rules them out), most nodes first; a node may lack several amounts.
        excess: the limit of a queue that is in the way, so that the same can be said of more pods.
    """

    reason: str
    message: str
    nodes: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    nearest: str = ""
    lines: tuple[tuple[int, str], ...] = field(default=(), compare=False, repr=False)
    excess: Excess | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Room:
    """How many more pods of a class a queue takes, and why not one more.

    Attributes:
        count: pods that still fit; ``ENDLESS`` where nothing limits them.
        why: words what stops the next one, which most who ask for room never read; None where nothing does.
    """

    count: int
    why: Callable[[], Refusal] | None = None

    @property
    def refusal(self) -> Refusal | None:
        """What stops the next one."""
        return None if self.why is None else self.why()


ENDLESS: Final = 2**62
NO_LIMIT: Final = Room(ENDLESS)
