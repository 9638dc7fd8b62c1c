"""Which cards are well: one that reports an error or does not answer takes no new slices.

Time is given. A card that did not answer is well again as soon as it does; after an error that it reported,
once it has answered well and reported nothing for a while, or at once when a person says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

IGNORED_XIDS: Final = frozenset({13, 31, 43, 45, 68, 109})
"""Errors that a program makes, not a card; HAMi ignores the same ones."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a card is not well.

    Attributes:
        why: in words.
        since: when it last showed, in the clock's seconds.
        reported: the card told of it; else it only did not answer.
    """

    why: str
    since: float
    reported: bool


class Health:
    """The state of each card.

    Args:
        quiet_s: how long a card that reported an error must be quiet to be well again.
        ignored: XIDs that say nothing about the card.
    """

    def __init__(self, quiet_s: float, ignored: Iterable[int] = IGNORED_XIDS) -> None:
        self._quiet_s, self._ignored = quiet_s, frozenset(ignored)
        self._reported: dict[str, Trouble] = {}
        self._silent: dict[str, Trouble] = {}

    def troubles(self) -> dict[str, Trouble]:
        """The cards that are not well."""
        return {**self._silent, **self._reported}

    def event(self, uuid: str, xid: int, now: float) -> bool:
        """A card reported *xid*; whether that counts."""
        if xid in self._ignored:
            return False
        self._reported[uuid] = Trouble(f"XID {xid}", now, reported=True)
        return True

    def remembered(self, uuid: str, now: float) -> None:
        """A card was not well when the agent before us looked."""
        self._reported.setdefault(uuid, Trouble("was unwell before the agent started", now, reported=True))

    def answers(self, said: Mapping[str, str], now: float) -> None:
        """What is wrong with each card that was asked just now; "" where it answered well."""
        for uuid, why in said.items():
            if why:
                self._silent[uuid] = Trouble(why, now, reported=False)
                self._extend(uuid, now)
                continue
            self._silent.pop(uuid, None)
            reported = self._reported.get(uuid)
            if reported is not None and now - reported.since >= self._quiet_s:
                del self._reported[uuid]

    def declare_well(self, uuid: str) -> bool:
        """A person says that *uuid* is well; whether it was not."""
        return self._reported.pop(uuid, None) is not None

    def _extend(self, uuid: str, now: float) -> None:
        """A card that does not answer is not being quiet."""
        reported = self._reported.get(uuid)
        if reported is not None:
            self._reported[uuid] = Trouble(reported.why, now, reported=True)
