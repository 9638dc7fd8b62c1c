"""The driver's cards, as far as the agent needs them: a narrow door to NVML.

Whatever NVML or its binding raises becomes a :class:`DriverError`: no fault of a card ends the process.
Calls block for as long as the driver does; whoever must not wait makes them in a thread.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any, Final

import pynvml

MIB: Final = 1 << 20
LINKS: Final = 18
"""NVLinks that a card can have."""
PER_LINK: Final = 100
# What HAMi counts for the way over the bus between two cards, by NVML's level of it.
CLOSENESS: Final = {
    pynvml.NVML_TOPOLOGY_INTERNAL: 60,
    pynvml.NVML_TOPOLOGY_SINGLE: 50,
    pynvml.NVML_TOPOLOGY_MULTIPLE: 40,
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: 30,
    pynvml.NVML_TOPOLOGY_NODE: 20,
    pynvml.NVML_TOPOLOGY_SYSTEM: 10,
}
_TO_SWITCH: Final = 2  # the kind of a link's other end


class DriverError(Exception):
    """The driver did not answer as it should; the message says what was asked."""


@dataclass(frozen=True, slots=True)
class Card:
    """One card of this machine.

    Attributes:
        uuid: its identity.
        minor: number of its device node.
        name: model.
        memory_mib: all of its memory.
        bus_id: address on the bus, as the kernel writes it.
        numa: NUMA node, -1 unknown.
        mig: whether it is in MIG mode.
    """

    uuid: str
    minor: int
    name: str
    memory_mib: int
    bus_id: str
    numa: int
    mig: bool


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a card.

    Attributes:
        uuid: whose it is; "" where the driver can't tell.
        xid: the driver's number of it.
    """

    uuid: str
    xid: int


class Driver:
    """NVML of this machine.

    Args:
        library: file to load in place of ``libnvidia-ml.so.1``.
        devices: where the kernel tells of what is on the bus.
    """

    def __init__(self, library: str | None = None, devices: Path = Path("/sys/bus/pci/devices")) -> None:
        self._library, self._devices = library, devices
        self._events: Any = None

    def open(self) -> None:
        """Load the library and begin; may be called again after a failure. Raises ``DriverError``."""
        with asking("NVML to begin"):
            if self._library and pynvml.nvmlLib is None:
                pynvml.nvmlLib = ctypes.CDLL(self._library)
            pynvml.nvmlInit()

    def close(self) -> None:
        """End what :meth:`open` began."""
        self._events = None
        with asking("NVML to end"):
            pynvml.nvmlShutdown()

    def cards(self) -> tuple[tuple[Card, ...], tuple[str, ...]]:
        """The cards that answer, by minor number, and what those that don't said.

        Raises ``DriverError`` where not even their number is told.
        """
        with asking("the number of cards"):
            count = pynvml.nvmlDeviceGetCount()
        found, faults = [], []
        for at in range(count):
            try:
                found.append(self._card(at))
            except DriverError as error:
                faults.append(str(error))
        return tuple(sorted(found, key=lambda card: card.minor)), tuple(faults)

    def trouble(self, uuid: str) -> str:
        """What is wrong with the card *uuid*, as far as it can be asked; "" where it answers well."""
        try:
            with asking(f"card {uuid} for its memory"):
                pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByUUID(uuid))
        except DriverError as error:
            return str(error)
        return ""

    def links(self, cards: Sequence[Card]) -> dict[tuple[str, str], int]:
        """How well pairs of *cards* are linked, as HAMi counts; where both ways differ, nothing is said."""
        ends = {card.uuid: self._link_ends(card) for card in cards}
        scores = {
            (one.uuid, other.uuid): self._closeness(one, other) + PER_LINK * _shared(one, other, ends)
            for one, other in permutations(cards, 2)
        }
        return {
            (one, other): score
            for (one, other), score in scores.items()
            if one < other and score > 0 and scores[other, one] == score
        }

    def wait(self, uuids: Sequence[str], timeout_ms: int) -> Event | None:
        """The next event of *uuids*, None where none came in time; raises ``DriverError``.

        The cards are those of the first call; :meth:`forget_events` lets the next call begin anew.
        """
        if self._events is None:
            self._events = self._listen(uuids)
        try:
            with asking("for events"):
                data = pynvml.nvmlEventSetWait_v2(self._events, timeout_ms)
                return Event(_uuid_or_nothing(data.device), int(data.eventData))
        except DriverError as error:
            if isinstance(error.__cause__, pynvml.NVMLError_Timeout):
                return None
            raise

    def forget_events(self) -> None:
        """Stop listening to the cards that were named."""
        self._events = None

    def _listen(self, uuids: Sequence[str]) -> Any:
        kinds = pynvml.nvmlEventTypeXidCriticalError | pynvml.nvmlEventTypeDoubleBitEccError
        with asking("for a set of events"):
            events = pynvml.nvmlEventSetCreate()
        heard = 0
        for uuid in uuids:
            try:
                with asking(f"card {uuid} to tell its events"):
                    handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
                    able = pynvml.nvmlDeviceGetSupportedEventTypes(handle)
                    pynvml.nvmlDeviceRegisterEvents(handle, kinds & able, events)
                    heard += 1
            except DriverError:
                continue  # old or lost: its health is what trouble() says
        if not heard:
            raise DriverError("no card tells its events")
        return events

    def _card(self, at: int) -> Card:
        with asking(f"card number {at}"):
            handle = pynvml.nvmlDeviceGetHandleByIndex(at)
            bus_id = _bus_id(pynvml.nvmlDeviceGetPciInfo(handle))
            return Card(
                uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
                minor=int(pynvml.nvmlDeviceGetMinorNumber(handle)),
                name=_text(pynvml.nvmlDeviceGetName(handle)),
                memory_mib=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total) // MIB,
                bus_id=bus_id,
                numa=self._numa(bus_id, handle),
                mig=_in_mig_mode(handle),
            )

    def _numa(self, bus_id: str, handle: Any) -> int:
        try:
            return int((self._devices / bus_id / "numa_node").read_text())
        except (OSError, ValueError):
            pass  # not on this bus
        try:
            return int(pynvml.nvmlDeviceGetNumaNodeId(handle))
        except pynvml.NVMLError:
            return -1

    def _closeness(self, one: Card, other: Card) -> int:
        try:
            with asking(f"the way from {one.uuid} to {other.uuid}"):
                a, b = (pynvml.nvmlDeviceGetHandleByUUID(card.uuid) for card in (one, other))
                return CLOSENESS.get(pynvml.nvmlDeviceGetTopologyCommonAncestor(a, b), 0)
        except DriverError:
            return 0

    def _link_ends(self, card: Card) -> list[str]:
        """The other ends of *card*'s active NVLinks: bus addresses of cards, "" for a switch."""
        ends = []
        for link in range(LINKS):
            try:
                with asking(f"link {link} of {card.uuid}"):
                    handle = pynvml.nvmlDeviceGetHandleByUUID(card.uuid)
                    if not pynvml.nvmlDeviceGetNvLinkState(handle, link):
                        continue
                    ends.append(_other_end(handle, link))
            except DriverError:
                continue  # a card without this link, or without any
        return ends


def _shared(one: Card, other: Card, ends: dict[str, list[str]]) -> int:
    """NVLinks between two cards: direct ones, and as many as both have to a switch."""
    direct = ends[one.uuid].count(other.bus_id)
    return direct + min(ends[one.uuid].count(""), ends[other.uuid].count(""))


def _other_end(handle: Any, link: int) -> str:
    try:
        if pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, link) == _TO_SWITCH:
            return ""
    except pynvml.NVMLError:
        pass  # drivers of before switches don't know the question
    return _bus_id(pynvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link))


def _in_mig_mode(handle: Any) -> bool:
    try:
        return bool(pynvml.nvmlDeviceGetMigMode(handle)[0])
    except pynvml.NVMLError:
        return False  # a card that can't be cut


def _uuid_or_nothing(handle: Any) -> str:
    try:
        return _text(pynvml.nvmlDeviceGetUUID(handle))
    except pynvml.NVMLError:
        return ""


def _bus_id(info: Any) -> str:
    """``00000000:3B:00.0`` as the kernel writes it: ``0000:3b:00.0``."""
    domain, _, rest = _text(info.busId).lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Turns whatever the binding raises into a ``DriverError`` that says *what* was asked."""
    try:
        yield
    except (pynvml.NVMLError, OSError, ValueError, AttributeError, TypeError) as error:
        raise DriverError(f"asked {what}: {error}") from error
