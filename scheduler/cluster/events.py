"""Events: what people see under ``kubectl describe``, without a flood.

``events.k8s.io/v1``, since it counts repetitions in a ``series``; kubectl shows it like the older form. The
same object, reason and words within the window are one event, whose count is written now and then. Its name
follows from these, so a scheduler that starts again and has the same to say finds it said: the server answers
that it exists. The queue is bounded; what finds no room is counted and left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from volcano_py.client.api import RESOURCES, Api, retry_wait_s
from volcano_py.client.errors import ApiError, Unreachable
from volcano_py.scheduler.cluster.lane import Lane, Pace
from volcano_py.scheduler.cluster.orders import Note, Subject
from volcano_py.scheduler.model.kube.times import format_micro_time

_WIDTH: Final = 2
_PER_SECOND: Final = 20.0
_BURST: Final = 200
_LONGEST_NOTE: Final = 1024
_LONGEST_NAME: Final = 253
_MOST_TRIES: Final = 5
_FIGURES: Final = re.compile(r"\d+(\.\d+)?")


def same_words(one: str, other: str) -> bool:
    """Whether two sentences differ in figures at most."""
    return one == other or _FIGURES.sub("#", one) == _FIGURES.sub("#", other)


@dataclass(eq=False, slots=True)
class _Told:
    """One event.

    Attributes:
        count: occurrences; *written* of them are on the server.
        last: epoch seconds of the latest.
        due: its count is to be written at a later time.
    """

    subject: Subject
    note: Note
    name: str
    count: int
    last: float
    written: int = 0
    due: bool = False
    tries: int = 0


@dataclass(slots=True)
class EventStats:
    """Counts since the start: events made, repetitions only counted, left out for want of room, refused."""

    written: int = 0
    repeated: int = 0
    dropped: int = 0
    refused: int = 0
    last_refusal: str = ""


@dataclass(frozen=True, slots=True)
class EventLimits:
    """How much is kept.

    Attributes:
        waiting: events not written yet.
        remembered: events whose repetitions are recognised.
        window_s: how long they are recognised after they were last seen.
        series_s: seconds between two writes of a count.
    """

    waiting: int = 5000
    remembered: int = 20000
    window_s: float = 3600.0
    series_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Reporter:
    """Who says it: the component, and which of its processes."""

    component: str
    instance: str = field(default="")


class Events:
    """Writes events.

    Args:
        fence: False leaves out what waits.
        clock: epoch seconds.
    """

    def __init__(
        self,
        api: Api,
        reporter: Reporter,
        fence: Callable[[], bool],
        clock: Callable[[], float],
        limits: EventLimits | None = None,
    ) -> None:
        self._api, self._reporter, self._fence, self._clock = api, reporter, fence, clock
        self._limits = limits or EventLimits()
        self._told: OrderedDict[str, _Told] = OrderedDict()
        self.stats = EventStats()
        self.lane: Lane[_Told] = Lane(_WIDTH, self._write, self._lost, Pace(_PER_SECOND, _BURST))

    def __len__(self) -> int:
        """Events whose repetitions are recognised."""
        return len(self._told)

    def note(self, subject: Subject, note: Note) -> None:
        """Tell of *note* on *subject*."""
        name = event_name(subject, note)
        now = self._clock()
        told = self._told.get(name)
        if told is not None and now - told.last <= self._limits.window_s:
            self._repeat(told, now)
            return
        if len(self.lane) >= self._limits.waiting:
            self.stats.dropped += 1
            return
        told = self._told[name] = _Told(subject, note, name, 1, now)
        self._forget_old(now)
        self.lane.put(told)

    def _repeat(self, told: _Told, now: float) -> None:
        told.count += 1
        told.last = now
        self.stats.repeated += 1
        self._told.move_to_end(told.name)
        if not told.due and told.written:
            told.due = True
            self.lane.put_later(told, self._limits.series_s)

    def _forget_old(self, now: float) -> None:
        """The oldest go first: the table is in the order in which events were last seen."""
        while self._told:
            name, told = next(iter(self._told.items()))
            recent = now - told.last <= self._limits.window_s
            if recent and len(self._told) <= self._limits.remembered:
                return
            del self._told[name]

    async def _write(self, told: _Told) -> None:
        told.due = False
        if not self._fence():
            self._told.pop(told.name, None)
            return
        try:
            if told.written:
                await self._count(told)
            else:
                await self._create(told)
        except ApiError as error:
            self._refused(told, error)
        except Unreachable as error:
            self._again(told, error)
        else:
            told.tries = 0

    async def _create(self, told: _Told) -> None:
        path = f"/apis/events.k8s.io/v1/namespaces/{_space(told.subject)}/events"
        body = event_body(told.subject, told.note, self._reporter, told.name, told.last)
        count = told.count
        try:
            await self._api.call("POST", path, body=body)
            self.stats.written += 1
        except ApiError as error:
            if not error.is_exists:
                raise
        told.written = count

    async def _count(self, told: _Told) -> None:
        if told.count == told.written:
            return
        path = f"/apis/events.k8s.io/v1/namespaces/{_space(told.subject)}/events/{told.name}"
        count = told.count
        try:
            await self._api.patch(
                path, {"series": {"count": count, "lastObservedTime": format_micro_time(told.last)}}
            )
        except ApiError as error:
            if not error.is_missing:
                raise
            told.written, told.count = 0, 1  # the server forgets events after an hour
            self.lane.put(told)
            return
        told.written = count

    def _refused(self, told: _Told, error: ApiError) -> None:
        if error.is_passing:
            self._again(told, error)
        else:
            self._lost(told, error.message)

    def _again(self, told: _Told, error: Exception) -> None:
        told.tries += 1
        if told.tries >= _MOST_TRIES:
            self._lost(told, str(error))
            return
        wait_s = retry_wait_s(told.tries, error)
        self.lane.hold_off(error, wait_s)
        self.lane.put_later(told, wait_s)

    def _lost(self, told: _Told, why: str) -> None:
        self._told.pop(told.name, None)
        self.stats.refused += 1
        self.stats.last_refusal = why

    async def close(self) -> None:
        """Stop at once; what waits is left out."""
        self.stats.dropped += len(await self.lane.close())

    async def flush(self, timeout_s: float) -> None:
        """Until all events are written, counts of repetitions aside; at most *timeout_s*."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.lane.idle(), timeout_s)


def event_name(subject: Subject, note: Note) -> str:
    """The same for the same words about the same object, figures aside."""
    words = "\0".join((subject.uid, note.reason, _FIGURES.sub("#", note.message)))
    digest = blake2b(words.encode(errors="replace"), digest_size=8).hexdigest()
    return f"{subject.name[: _LONGEST_NAME - len(digest) - 1]}.{digest}"


def event_body(subject: Subject, note: Note, reporter: Reporter, name: str, now: float) -> dict[str, Any]:
    """The Event object."""
    resource = RESOURCES.get(subject.kind)
    regarding = {"kind": subject.kind, "name": subject.name, "uid": subject.uid}
    if resource is not None:
        regarding["apiVersion"] = resource.api_version
    if subject.namespace:
        regarding["namespace"] = subject.namespace
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": _space(subject)},
        "eventTime": format_micro_time(now),
        "reportingController": reporter.component,
        "reportingInstance": reporter.instance or reporter.component,
        "action": note.action,
        "reason": note.reason,
        "regarding": regarding,
        "note": _cut(note.message),
        "type": "Warning" if note.warning else "Normal",
    }


def _space(subject: Subject) -> str:
    """Events about objects without a namespace live in ``default``."""
    return subject.namespace or "default"


def _cut(text: str) -> str:
    """The API counts bytes."""
    data = text.encode(errors="replace")
    return text if len(data) <= _LONGEST_NOTE else f"{data[: _LONGEST_NOTE - 3].decode(errors='ignore')}..."
