"""Cards without NVML, for cases that are not about NVML: what they are, what is wrong, what they report."""

from __future__ import annotations

import queue
from collections.abc import Collection, Sequence
from pathlib import Path

from volcano_py.crds.cards.register import MigProfile
from volcano_py.shim.agent.instances import Instance, Wish
from volcano_py.shim.agent.migdriver import MigDriver
from volcano_py.shim.agent.nvml import Card, Driver, DriverError, Event

SMALL = MigProfile("1g.2gb", 2048, 15, 1, tuple((start, 1) for start in range(7)))
LARGE = MigProfile("3g.8gb", 8192, 43, 4, ((0, 4), (4, 4)))


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


class PretendCutter(MigDriver):
    """Instances without hardware: they exclude each other by place.

    Attributes:
        there: what was made and not ended.
        busy: instances that can't be ended, by UUID.
    """

    def __init__(self) -> None:
        super().__init__(Path("/nowhere"), Path("/nowhere"))
        self.there: list[Instance] = []
        self.busy: set[str] = set()
        self._made = 0

    def profiles(self, card: str) -> tuple[MigProfile, ...]:
        return SMALL, LARGE

    def make(self, wish: Wish, minor: int, held: Collection[Wish] = ()) -> Instance:
        if wish in held:
            raise DriverError(f"the {wish.profile} at {wish.start} is another pod's")
        for each in list(self.there):
            if each.wish == wish:
                return each
            if each.card == wish.card and _overlap(each.wish, wish):
                if each.wish not in held and each.uuid not in self.busy:
                    self.there.remove(each)
                    continue
                raise DriverError(f"asked card {wish.card} for a {wish.profile}: Insufficient Resources")
        self._made += 1
        nodes = (f"/dev/nvidia-caps/nvidia-cap{self._made}",)
        made = Instance(
            f"MIG-{self._made}", wish.card, wish.profile, wish.start, wish.size, self._made, 0, nodes
        )
        self.there.append(made)
        return made

    def end(self, instance: Instance) -> None:
        if instance.uuid in self.busy:
            raise DriverError(f"asked to end {instance.uuid}: In use by another client")
        self.there = [each for each in self.there if each != instance]


def _overlap(one: Wish, other: Wish) -> bool:
    return one.start < other.start + other.size and other.start < one.start + one.size
