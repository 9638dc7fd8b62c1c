"""Cards without NVML, for cases that are not about NVML: what they are, what is wrong, what they report."""

from __future__ import annotations

import queue
from collections.abc import Sequence

from volcano_py.shim.agent.nvml import Card, Driver, DriverError, Event


def card(number: int, memory_mib: int = 16384, *, mig: bool = False) -> Card:
    """Card *number*, called ``GPU-<number>``."""
    return Card(f"GPU-{number}", number, "NVIDIA A100", memory_mib, f"0000:{number:02x}:00.0", 0, mig)


class PretendDriver(Driver):
    """A driver that says what a test wants.

    Attributes:
        fault: raised by every question, "" for none.
        wrong: what is wrong with cards, by UUID.
        hidden: cards that it does not show.
        happened: events that :meth:`wait` gives.
    """

    def __init__(self, cards: Sequence[Card]) -> None:
        super().__init__()
        self._cards = tuple(cards)
        self.fault = ""
        self.wrong: dict[str, str] = {}
        self.hidden: set[str] = set()
        self.happened: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.scores: dict[tuple[str, str], int] = {}

    def open(self) -> None:
        self._ask()

    def cards(self) -> tuple[tuple[Card, ...], tuple[str, ...]]:
        self._ask()
        return tuple(each for each in self._cards if each.uuid not in self.hidden), ()

    def trouble(self, uuid: str) -> str:
        return self.wrong.get(uuid, "")

    def links(self, cards: Sequence[Card]) -> dict[tuple[str, str], int]:
        return self.scores

    def wait(self, uuids: Sequence[str], timeout_ms: int) -> Event | None:
        try:
            return self.happened.get(timeout=0.05)
        except queue.Empty:
            return None

    def _ask(self) -> None:
        if self.fault:
            raise DriverError(self.fault)
