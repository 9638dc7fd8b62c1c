"""What NVML says of each card at one moment: its processes, their memory and share of time, its own figures.

A card that does not answer whole is told as in trouble, and nothing of it is believed. Process numbers are
the host's. Calls block as long as the driver does: make them in a thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import pynvml

_OPTIONAL: Final = (
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_NOT_FOUND,
)
"""Answers of a card that has no such figure, or no sample of it yet."""
_WINDOW_US: Final = 3_000_000
"""How old a process's share of time may be to count."""


@dataclass(frozen=True, slots=True)
class CardProcess:
    """A process on a card.

    Attributes:
        pid: on the host.
        memory_bytes: None where the driver does not tell.
        busy_percent: its share of the card's time lately; None where the driver does not tell.
    """

    pid: int
    memory_bytes: int | None
    busy_percent: int | None = None


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What is said of a card as a whole; None where it has no such figure.

    Attributes:
        index: NVML's number of it.
        type: model.
        used_bytes, total_bytes: memory, of everybody.
        busy_percent: share of its time in which something ran.
    """

    index: int
    type: str
    used_bytes: int | None = None
    total_bytes: int | None = None
    busy_percent: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One card, or one MIG instance of it.

    Attributes:
        uuid: its identity; "" of a card that does not even tell that.
        listed_s: CLOCK_BOOTTIME when its processes had been listed; who started later is not among them.
        processes: who is on it.
        minor: number of the card's device file, also of a MIG instance; None where it was not told.
        facts: None of a MIG instance, or where even these were not told.
        trouble: why it could not be read; then the rest says nothing.
    """

    uuid: str
    listed_s: float
    processes: tuple[CardProcess, ...] = ()
    minor: int | None = None
    facts: CardFacts | None = None
    trouble: str = ""


def read_cards() -> tuple[Reading, ...]:
    """Every card of this machine, and every MIG instance; NVML is running.

    Raises ``pynvml.NVMLError`` where not even the number of cards is told.
    """
    count = pynvml.nvmlDeviceGetCount()
    return tuple(reading for index in range(count) for reading in _card(index))


def _card(index: int) -> list[Reading]:
    """A card and its instances. In MIG mode processes are on the instances, not on the card."""
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        uuid = _text(pynvml.nvmlDeviceGetUUID(handle))
        minor = int(pynvml.nvmlDeviceGetMinorNumber(handle))
        instances = [(_text(pynvml.nvmlDeviceGetUUID(each)), each) for each in _instances(handle)]
    except pynvml.NVMLError as error:
        return [Reading("", _now_s(), trouble=f"card {index}: {error}")]
    try:
        processes = () if instances else _processes(handle)
        card = Reading(uuid, _now_s(), processes, minor, _facts(handle, index))
    except pynvml.NVMLError as error:
        card = Reading(uuid, _now_s(), minor=minor, trouble=str(error))
    return [card, *(_instance(name, each, minor) for name, each in instances)]


def _instance(uuid: str, handle: Any, minor: int) -> Reading:
    try:
        processes = _processes(handle)
        return Reading(uuid, _now_s(), processes, minor)
    except pynvml.NVMLError as error:
        return Reading(uuid, _now_s(), minor=minor, trouble=str(error))


def _processes(handle: Any) -> tuple[CardProcess, ...]:
    """Everybody on the card once: a process may compute, draw, and go through MPS at the same time."""
    listed = [*pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
    for others in (
        pynvml.nvmlDeviceGetGraphicsRunningProcesses,
        pynvml.nvmlDeviceGetMPSComputeRunningProcesses,
    ):
        listed += _if_told(others, handle, none=[])
    memory: dict[int, int | None] = {}
    for each in listed:
        known = memory.get(each.pid)
        told = each.usedGpuMemory
        memory[each.pid] = told if known is None else max(known, told or 0)
    shares = _shares(handle)
    idle = None if shares is None else 0
    return tuple(CardProcess(pid, memory[pid], (shares or {}).get(pid, idle)) for pid in sorted(memory))


def _shares(handle: Any) -> dict[int, int] | None:
    """The latest share of time of each process; None where the card does not measure it."""
    since_us = time.time_ns() // 1000 - _WINDOW_US
    try:
        samples = pynvml.nvmlDeviceGetProcessUtilization(handle, since_us)
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_NOT_FOUND:  # nobody did anything lately
            return {}
        if error.value in _OPTIONAL:
            return None
        raise
    return _latest(samples)


def _latest(samples: Iterable[Any]) -> dict[int, int]:
    by_age = sorted(samples, key=lambda sample: sample.timeStamp)
    return {int(sample.pid): int(sample.smUtil) for sample in by_age if sample.pid}


def _facts(handle: Any, index: int) -> CardFacts:
    memory = _if_told(pynvml.nvmlDeviceGetMemoryInfo, handle, none=None)
    rates = _if_told(pynvml.nvmlDeviceGetUtilizationRates, handle, none=None)
    return CardFacts(
        index,
        _text(pynvml.nvmlDeviceGetName(handle)),
        None if memory is None else int(memory.used),
        None if memory is None else int(memory.total),
        None if rates is None else int(rates.gpu),
    )


def _instances(handle: Any) -> list[Any]:
    """MIG instances of a card."""
    count = _if_told(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle, none=0)
    found = []
    for place in range(count):
        with suppress(
            pynvml.NVMLError_NotFound, pynvml.NVMLError_NotSupported, pynvml.NVMLError_InvalidArgument
        ):
            found.append(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place))
    return found


def _if_told(ask: Callable[[Any], Any], handle: Any, *, none: Any) -> Any:
    """What *ask* says, *none* where the card has no such thing."""
    try:
        return ask(handle)
    except pynvml.NVMLError as error:
        if error.value in _OPTIONAL:
            return none
        raise


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _now_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
