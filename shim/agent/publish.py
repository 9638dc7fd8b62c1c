"""What the node says of its cards: HAMi's and Volcano's register annotations, and how cards are linked.

The annotations are compared with the node as it is watched: written where they differ, so also when somebody
removed them or a write failed, and not otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import structlog

from volcano_py.client.api import Api, ApiError, Unreachable, asked_wait_s
from volcano_py.crds.cards.errors import WireError
from volcano_py.crds.cards.register import (
    HAMI_REGISTER,
    VOLCANO_REGISTER,
    CardReport,
    MigProfile,
    decode_hami,
    encode_hami,
    encode_volcano,
)
from volcano_py.crds.cards.scores import SCORES, Scores, encode_scores
from volcano_py.shim.agent.nvml import Card

RECOVERED: Final = "volcano-py.io/recovered-cards"
"""A person writes identities of cards here that are well again; we remove it."""

_VENDOR: Final = "NVIDIA"
_WHOLE: Final = 100
_SEPARATORS: Final = str.maketrans(",:;", "   ")
# Between two writes: if somebody else writes the same annotations, we don't fight faster than this.
_PAUSE_S: Final = 1.0
_LONGEST_WAIT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Cut:
    """How cards are cut into shares.

    Attributes:
        slots: shares of a card.
        memory_scaling: how many times its memory is handed out.
    """

    slots: int
    memory_scaling: float

    def memory_mib(self, card: Card) -> int:
        """What *card* has to hand out; hardware cuts no more than there is."""
        return card.memory_mib if card.mig else int(card.memory_mib * self.memory_scaling)

    def shares(self, card: Card, profiles: Sequence[MigProfile]) -> int:
        """How many may hold a share of *card*: in MIG mode, as many as its smallest profile has places."""
        places = [len(profile.placements) for profile in profiles]
        return max(places, default=1) if card.mig else self.slots


def reports(
    cards: Sequence[Card],
    unwell: Collection[str],
    cut: Cut,
    profiles: Mapping[str, tuple[MigProfile, ...]] = MappingProxyType({}),
) -> tuple[CardReport, ...]:
    """*cards* as they are published; those that are *unwell* take no new slices.

    *profiles* are what cards in MIG mode can be cut into.
    """
    return tuple(
        CardReport(
            uuid=card.uuid,
            index=card.minor,
            slots=cut.shares(card, profiles.get(card.uuid, ())),
            memory_mib=cut.memory_mib(card),
            cores=_WHOLE,
            type=_model(card.name),
            numa=card.numa,
            mode="mig" if card.mig else "hami-core",
            healthy=card.uuid not in unwell,
            mig=profiles.get(card.uuid, ()),
        )
        for card in cards
    )


def notes_for(
    found: Sequence[CardReport], scores: Scores, cordoned: Collection[str]
) -> dict[str, str | None]:
    """The node's annotations for *found*; None is one that must not be there.

    Volcano's family has no cordon of its own, so cordoned cards are unhealthy there.
    """
    for_volcano = [
        replace(card, type=_for_volcano(card.type), healthy=card.healthy and card.uuid not in cordoned)
        for card in found
    ]
    return {
        HAMI_REGISTER: encode_hami(found) if found else None,
        VOLCANO_REGISTER: encode_volcano(for_volcano) if found else None,
        SCORES: encode_scores(scores) if scores else None,
    }


def published(notes: Mapping[str, str]) -> tuple[CardReport, ...]:
    """What an agent before us published; nothing where it can't be read."""
    try:
        return decode_hami(notes.get(HAMI_REGISTER, ""))
    except WireError:
        return ()


def listed(notes: Mapping[str, str], key: str) -> frozenset[str]:
    """The identities that the annotation *key* names, separated by commas."""
    return frozenset(word.strip() for word in notes.get(key, "").split(",") if word.strip())


class Publisher:
    """Keeps the node's annotations at what they should be.

    Args:
        node: its name.
        notes: the annotations as they are watched; None before the node was seen.
        wanted: what they should be; None before that is known.
    """

    def __init__(
        self,
        server: Api,
        node: str,
        notes: Callable[[], Mapping[str, str] | None],
        wanted: Callable[[], Mapping[str, str | None] | None],
    ) -> None:
        self._server, self._path = server, f"/api/v1/nodes/{node}"
        self._notes, self._wanted = notes, wanted
        self._changed = asyncio.Event()
        self._log = structlog.get_logger(node=node)
        self.writes = 0
        self.failures = 0

    def look(self) -> None:
        """Something changed: compare again."""
        self._changed.set()

    def difference(self) -> dict[str, str | None]:
        """What must be written."""
        notes, wanted = self._notes(), self._wanted()
        if notes is None or wanted is None:
            return {}
        return {key: value for key, value in wanted.items() if notes.get(key) != value}

    async def say(self, notes: Mapping[str, str | None]) -> None:
        """Write *notes* now. Raises ``ApiError`` and ``Unreachable``."""
        await self._server.patch(self._path, {"metadata": {"annotations": dict(notes)}})
        self.writes += 1

    async def run(self) -> None:
        """Compare and write for ever."""
        wait_s = _PAUSE_S
        while True:
            await self._changed.wait()
            self._changed.clear()
            difference = self.difference()
            if not difference:
                continue
            try:
                await self.say(difference)
                wait_s = _PAUSE_S
                self._log.info("published", annotations=sorted(difference))
            except (ApiError, Unreachable) as error:
                self.failures += 1
                self._log.warning("not published", error=str(error))
                self._changed.set()
                wait_s = max(min(2 * wait_s, _LONGEST_WAIT_S), asked_wait_s(error))
            await asyncio.sleep(wait_s)


def _model(name: str) -> str:
    """The model as HAMi writes it: with the vendor in front, once."""
    plain = " ".join(name.translate(_SEPARATORS).split())
    return plain if plain.startswith(_VENDOR) else f"{_VENDOR}-{plain}"


def _for_volcano(model: str) -> str:
    """The model as Volcano's plugin writes it: with the vendor in front, whatever it is called."""
    return model if model.startswith(f"{_VENDOR}-") else f"{_VENDOR}-{model}"
