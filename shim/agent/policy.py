"""What the operator chose to do about overuse, and for those who go first on a card."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

MIB: Final = 1 << 20


class Answer(enum.StrEnum):
    """To a container that holds more of a card's memory than its slice."""

    EVENT = "event"
    FREEZE = "freeze"
    KILL = "kill"


class Yielding(enum.StrEnum):
    """How containers make way while one that goes before them is busy on the same card."""

    OFF = "off"
    BLOCK = "block"  # the library holds their launches; needs it in the container
    FREEZE = "freeze"  # their processes stop


def _at_least(least: float, **values: float) -> None:
    for name, value in values.items():
        if not value >= least:
            raise ValueError(f"{name} is {value}: at least {least} is needed")


@dataclass(frozen=True, slots=True)
class Overuse:
    """When a container counts as over its slice, and what follows.

    Attributes:
        answer: beside the event, which there always is.
        tolerance_percent, tolerance_mib: how much more than the slice is let pass; the larger counts.
        over_s: how long it must be over, seen at every reading, before anything is done.
        again_s: how long until an event is repeated.
    """

    answer: Answer = Answer.EVENT
    tolerance_percent: float = 2.0
    tolerance_mib: int = 64
    over_s: float = 10.0
    again_s: float = 300.0

    def __post_init__(self) -> None:
        _at_least(0, tolerance_percent=self.tolerance_percent, tolerance_mib=self.tolerance_mib)
        _at_least(0, over_s=self.over_s, again_s=self.again_s)

    def threshold_bytes(self, limit_bytes: int) -> int:
        """What may be held of a slice of *limit_bytes* before it counts as over."""
        return limit_bytes + max(int(limit_bytes * self.tolerance_percent / 100), self.tolerance_mib * MIB)


@dataclass(frozen=True, slots=True)
class Freezing:
    """How long a container may be stopped, for whatever reason: it answers no probe meanwhile.

    Attributes:
        most_s: at a stretch.
        rest_s: how long it then runs at least; after a shorter stretch, in proportion.
    """

    most_s: float = 15.0
    rest_s: float = 15.0

    def __post_init__(self) -> None:
        _at_least(0.1, most_s=self.most_s)
        _at_least(0, rest_s=self.rest_s)


@dataclass(frozen=True, slots=True)
class Sharing:
    """Whom a busy container makes wait.

    Attributes:
        way: how.
        busy_percent: of a card's time, from which a container counts as busy there.
        idle_s: how long after it was last seen busy it still counts.
    """

    way: Yielding = Yielding.BLOCK
    busy_percent: int = 5
    idle_s: float = 5.0

    def __post_init__(self) -> None:
        _at_least(1, busy_percent=self.busy_percent)
        _at_least(0, idle_s=self.idle_s)


@dataclass(frozen=True, slots=True)
class Policy:
    """All of it. A value out of range raises ``ValueError`` where it is given."""

    overuse: Overuse = Overuse()
    sharing: Sharing = Sharing()
    freezing: Freezing = Freezing()
