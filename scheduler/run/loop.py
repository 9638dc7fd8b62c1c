"""The scheduler as a process: reads, decides, writes, leads; everything below it knows only its own part.

    feed ──changes──►┐                       ┌──orders──► writer
                     ├─► worker (a thread) ──┤
    writer ─outcomes─┘   one turn at a time  └──► journal

The asyncio loop waits: for changes, for outcomes, for the time of the next cycle. A turn of the worker runs
in a thread of its own meanwhile, so that watches, binds, the lease and health go on. What arrives while a
turn runs is taken with the next one. A few changes that come alone are taken in without the thread; cycles
never run so. A standby does all of it but cycles and writes.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

import structlog

from volcano_py.scheduler.cluster.feed import Change, Feed
from volcano_py.scheduler.cluster.orders import BindFailed, Order
from volcano_py.scheduler.cluster.writer import Writer
from volcano_py.scheduler.run import collector
from volcano_py.scheduler.run.health import Health
from volcano_py.scheduler.run.reload import Configured
from volcano_py.scheduler.run.triggers import NEVER, Due, Pace
from volcano_py.scheduler.run.worker import Given, Turn, Worker

TICK_S: Final = 1.0
"""The loop shows that it lives at least so often."""
FEW: Final = 16
"""So many changes are taken in on the loop, which waits about half a millisecond for it."""
_LONGEST_BACKOFF_S: Final = 60.0

_log = structlog.get_logger("loop")


@dataclass(frozen=True, slots=True)
class Pacing:
    """When cycles run.

    Attributes:
        period_s: ``--schedule-period``: what waits for a period waits so long; no pause that the loop
            makes by itself is longer.
        gather_s: how long changes gather before they are taken.
    """

    period_s: float = 1.0
    gather_s: float = 0.004


class Loop:
    """See the module.

    Args:
        feed, writer: the two ends.
        worker: the engine's thread's business.
        leads: whether we may decide and write at this moment.
        health: is told of every sign of life.
        pacing: of cycles.
        clock: epoch seconds.

    Attributes:
        led: we led at the beginning of the last turn.
    """

    def __init__(
        self,
        feed: Feed,
        writer: Writer,
        worker: Worker,
        leads: Callable[[], bool],
        health: Health,
        pacing: Pacing,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._feed, self._writer, self._worker = feed, writer, worker
        self._leads, self._health, self._clock = leads, health, clock
        self._pace = Pace(gather_s=pacing.gather_s, longest_s=pacing.period_s)
        self._period_s = pacing.period_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self._nudged = asyncio.Event()
        self._config: Configured | None = None
        self._due, self._tell_at = Due(NEVER, False, "idle"), NEVER
        self._faults = 0
        self._retry_at = 0.0
        self.led = False
        self._kept: list[Order] = []
        self._unanswered = False
        self._turned_at = -math.inf
        self._waits: dict[asyncio.Event, asyncio.Task[bool]] = {}

    def nudge(self) -> None:
        """Something outside has changed (leadership): look now."""
        self._nudged.set()

    def configure(self, config: Configured) -> None:
        """Go on under *config* from the next turn on."""
        self._config = config
        self.nudge()

    async def run(self, stop: asyncio.Event) -> None:
        """Turn until *stop* is set; the turn that runs then is finished and its orders are given."""
        if not await self._synced(stop):
            return
        await self._turn()
        collector.settle()
        self._health.synced = True
        _log.info("synced", objects={k: s.objects for k, s in self._feed.stats.kinds.items() if s.objects})
        while not stop.is_set():
            await self._wait(stop)
            if self._is_something_to_do():
                await self._turn()
            self._health.beat()

    async def close(self) -> None:
        """End the engine's thread and close the journal."""
        for task in self._waits.values():
            task.cancel()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._worker.close)
        self._thread.shutdown()

    # -- waiting --------------------------------------------------------------------------------

    async def _synced(self, stop: asyncio.Event) -> bool:
        """Wait until all kinds are listed; what has come is taken in meanwhile. False if stopped before."""
        synced = asyncio.ensure_future(self._feed.synced())
        told: set[str] = set()
        while not synced.done() and not stop.is_set():
            self._tell_unread(told)
            await self._until(TICK_S, self._feed.changed, stop, also=synced)
            if self._feed.changed.is_set():
                await self._turn(cycles=False)
            self._health.beat()
        synced.cancel()
        return not stop.is_set()

    def _tell_unread(self, told: set[str]) -> None:
        """Say what can't be read, in the log once: no cycle runs before it is."""
        problems = self._feed.stats.problems
        self._health.unread = "; ".join(f"{kind}: {why}" for kind, why in problems.items())
        for kind in problems.keys() - told:
            _log.warning("unread", kind=kind, error=problems[kind])
        told.update(problems)

    async def _wait(self, stop: asyncio.Event) -> None:
        """Until there may be something to do; changes that come together are taken together."""
        await self._until(self._pause_s(), self._feed.changed, self._writer.told, self._nudged, stop)
        some = self._feed.changed.is_set() or self._writer.told.is_set()
        if some and not self._pace.feed_rest_s and not stop.is_set():  # a feed that rests has gathered
            await asyncio.sleep(self._pace.gather_s)
        self._nudged.clear()

    async def _until(
        self, seconds: float, *events: asyncio.Event, also: asyncio.Future[None] | None = None
    ) -> None:
        """Until one of *events* is set or *seconds* have passed."""
        if any(event.is_set() for event in events) or seconds <= 0:
            return
        for event in events:
            if event not in self._waits or self._waits[event].done():
                self._waits[event] = asyncio.ensure_future(event.wait())
        waits: list[asyncio.Future[bool] | asyncio.Future[None]] = [self._waits[event] for event in events]
        await asyncio.wait(
            [*waits, *([also] if also is not None else [])],
            timeout=seconds,
            return_when=asyncio.FIRST_COMPLETED,
        )

    def _pause_s(self) -> float:
        """Seconds until a cycle is due and may run, or there is something to tell; at most a tick."""
        if not self._leads():
            return TICK_S
        monotonic = time.monotonic()
        rest_s = max(self._pace.rest_s(monotonic), self._retry_at - monotonic)
        if not self._due.now:
            rest_s = max(rest_s, self._due.at - self._clock())
        return max(0.0, min(rest_s, self._tell_at - self._clock(), TICK_S))

    def _may_cycle(self) -> bool:
        monotonic = time.monotonic()
        return self._leads() and self._pace.rest_s(monotonic) <= 0 and monotonic >= self._retry_at

    def _is_something_to_do(self) -> bool:
        if self._feed.changed.is_set() or self._writer.told.is_set() or self._config is not None:
            return True
        if self._leads() != self.led or self._clock() < self._turned_at:
            return True  # what is due was reckoned before the clock was set back
        if self.led and (self._writer.is_missing_words or self._tell_at <= self._clock()):
            return True
        return self._may_cycle() and (self._due.now or self._due.at <= self._clock())

    # -- turns ----------------------------------------------------------------------------------

    async def _turn(self, *, cycles: bool = True) -> None:
        """Let the worker take what there is; give its orders to the writer."""
        config, self._config = self._config, None
        changes = self._feed.take()
        leads = cycles and self._leads()
        begins = leads and (not self.led or self._writer.is_missing_words)
        if begins:
            self._kept = []
            self._writer.lead()
        self.led = leads
        outcomes = self._writer.take_outcomes()
        self._unanswered = self._unanswered or any(isinstance(one, BindFailed) for one in outcomes)
        may_cycle = leads and self._may_cycle()
        given = Given(self._clock(), changes, outcomes, config, leads=leads, begins=begins)
        self._turned_at = given.now
        few = len(changes) + len(outcomes) <= FEW
        if few and config is None and not begins and self._worker.is_light():
            # Handing over costs more than the work. Nobody else is at it: turns are made one at a time.
            self._take(self._worker.turn(replace(given, light=True)), changes)
            if self._worker.is_light() and not (may_cycle and (self._due.now or self._due.at <= given.now)):
                return
            given, changes = Given(given.now, leads=leads), []
        run = asyncio.get_running_loop().run_in_executor
        turn = await run(self._thread, self._worker.turn, replace(given, may_cycle=may_cycle))
        self._take(turn, changes)

    def _take(self, turn: Turn, changes: list[Change]) -> None:
        """What came of *changes*, and perhaps of a cycle."""
        self._due, self._tell_at = turn.due, turn.tell_at
        for kind, key in turn.gone:
            self._writer.forget(kind, key)
        self._submit(turn)
        if changes:
            self._rest(len(changes), turn)
        self._after_cycle(turn)

    def _rest(self, changes: int, turn: Turn) -> None:
        """Let the feed rest as long as what came last allows."""
        feed, pace = self._feed, self._pace
        mattered = turn.mattered or feed.rang
        pace.took(changes, time.monotonic(), mattered=mattered, waits=turn.waits, listens=feed.listens)
        feed.rest(pace.feed_rest_s, listen=pace.is_calm)

    def _submit(self, turn: Turn) -> None:
        """Give the orders on; while a failed bind waits for the cycle that answers it, they wait too.

        Where no cycle is near there is nothing to answer: the pod went before its bind failed.
        """
        self._kept += turn.orders
        if turn.cycle_s is None:
            nothing = not self._kept and not self._unanswered
            if nothing or (self._unanswered and self._is_near(turn.due)):
                return
        self._unanswered = False
        orders, self._kept = self._kept, []
        self._writer.submit(orders)

    def _is_near(self, due: Due) -> bool:
        return due.now or due.at <= self._clock() + self._period_s

    def _after_cycle(self, turn: Turn) -> None:
        if turn.cycle_s is None:
            return
        now = time.monotonic()
        self._pace.worked(turn.cycle_s, now)
        self._faults = self._faults + 1 if turn.fault else 0
        self._health.faults = self._faults
        if turn.fault:
            backoff_s = min(self._period_s * 2.0 ** (self._faults - 1), _LONGEST_BACKOFF_S)
            self._retry_at = now + backoff_s
