"""The cards of this machine as they are known: found, asked how they are, remembered when they are silent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import structlog

from volcano_py.crds.cards.register import CardReport, MigProfile
from volcano_py.shim.agent.health import Health
from volcano_py.shim.agent.migdriver import MigDriver
from volcano_py.shim.agent.nvml import Card, Driver, DriverError, Event
from volcano_py.shim.agent.publish import Cut

_WAIT_MS: Final = 1000
_PAUSE_S: Final = 5.0


class Cards:
    """What is known of the cards; asked of the driver in threads, since it may take its time.

    Args:
        driver: whom to ask.
        cutter: whom to ask how cards can be cut.
        health: what became of each card.
        cut: how cards are cut.
        changed: called when anything is new.

    Attributes:
        known: by UUID; a card that was found stays.
        scores: how they are linked.
        profiles: what cards in MIG mode can be cut into.
    """

    def __init__(
        self, driver: Driver, cutter: MigDriver, health: Health, cut: Cut, changed: Callable[[], None]
    ) -> None:
        self._cutter = cutter
        self._driver, self.health, self._cut, self._changed = driver, health, cut, changed
        self._open = False
        self._log = structlog.get_logger()
        self.known: dict[str, Card] = {}
        self.scores: dict[tuple[str, str], int] = {}
        self.profiles: dict[str, tuple[MigProfile, ...]] = {}

    def all(self) -> list[Card]:
        """All known cards, by minor number."""
        return sorted(self.known.values(), key=lambda card: card.minor)

    def remember(self, reports: Mapping[str, CardReport]) -> None:
        """What was published before us: cards that the driver does not show now are kept, and unwell."""
        shown = self._open and bool(self.known)
        for uuid, report in reports.items():
            memory = round(report.memory_mib / self._cut.memory_scaling)
            card = Card(uuid, report.index, report.type, memory, "", report.numa, report.mode == "mig")
            if uuid in self.known:
                if not report.healthy:
                    self.health.remembered(uuid, time.monotonic())
            elif not shown:
                self.known[uuid] = card
                self.health.answers({uuid: "the driver does not show it"}, time.monotonic())
        self._changed()

    async def look(self) -> None:
        """Ask for all cards once."""
        before = (dict(self.known), self.health.troubles())
        try:
            found, faults = await asyncio.to_thread(self._found)
        except DriverError as error:
            found, faults = (), (str(error),)
        new = {card.uuid for card in found} - self.known.keys()
        self.known.update({card.uuid: card for card in found})
        said = dict.fromkeys(self.known, "the driver does not show it")
        said |= await asyncio.to_thread(self._troubles, found)
        self.health.answers(said, time.monotonic())
        if new:
            self._driver.forget_events()
            self.scores = await asyncio.to_thread(self._driver.links, self.all())
            self.profiles |= await asyncio.to_thread(self._profiles, new)
        self._tell(before, faults)

    async def keep_looking(self, every_s: float) -> None:
        """Ask each *every_s*, for ever."""
        while True:
            await self.look()
            await asyncio.sleep(every_s)

    async def listen(self) -> None:
        """Take events of the cards, for ever."""
        while True:
            if not self._open or not self.known:
                await asyncio.sleep(_PAUSE_S)
                continue
            try:
                event = await asyncio.to_thread(partial(self._driver.wait, tuple(self.known), _WAIT_MS))
            except DriverError as error:
                self._log.warning("no events for now", error=str(error))
                await asyncio.sleep(_PAUSE_S)
                continue
            if event is not None:
                self._took(event)

    def recovered(self, uuids: frozenset[str]) -> None:
        """A person says that these are well again."""
        said = [uuid for uuid in sorted(uuids) if self.health.declare_well(uuid)]
        if said:
            self._log.info("declared well", cards=said)
            self._changed()

    def _took(self, event: Event) -> None:
        # An event whose card can't be told may be any card's.
        for uuid in [event.uuid] if event.uuid in self.known else list(self.known):
            if self.health.event(uuid, event.xid, time.monotonic()):
                self._log.warning("card is unwell", card=uuid, xid=event.xid)
                self._changed()

    def _found(self) -> tuple[tuple[Card, ...], tuple[str, ...]]:
        if not self._open:
            self._driver.open()
            self._open = True
        return self._driver.cards()

    def _profiles(self, uuids: Iterable[str]) -> dict[str, tuple[MigProfile, ...]]:
        found = {}
        for uuid in uuids:
            if self.known[uuid].mig:
                try:
                    found[uuid] = self._cutter.profiles(uuid)
                except DriverError as error:
                    self._log.warning("its profiles are not told", card=uuid, error=str(error))
        return found

    def _troubles(self, cards: tuple[Card, ...]) -> dict[str, str]:
        return {card.uuid: self._driver.trouble(card.uuid) for card in cards}

    def _tell(self, before: tuple[dict[str, Card], dict[str, Any]], faults: tuple[str, ...]) -> None:
        now = self.health.troubles()
        if before[0] == self.known and before[1].keys() == now.keys():
            return
        for uuid in now.keys() - before[1].keys():
            self._log.warning("card is unwell", card=uuid, why=now[uuid].why, faults=list(faults))
        for uuid in before[1].keys() - now.keys():
            self._log.info("card is well again", card=uuid)
        self._changed()
