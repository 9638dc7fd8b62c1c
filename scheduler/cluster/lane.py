"""A lane: a fixed number of workers over one queue.

Thousands of orders wait in a deque, not as thousands of tasks. What has to be tried again comes back later
without holding a worker meanwhile; a server that asks for a pause stops the whole lane.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

import structlog

from volcano_py.client.errors import ApiError

Item = TypeVar("Item")

_UNANSWERED_S: Final = 0.5

_log = structlog.get_logger("lane")


class Pace:
    """A token bucket: *per_second* on average, *burst* at once."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second, self._burst = per_second, float(burst)
        self._tokens, self._counted_at = float(burst), 0.0

    def wait_s(self, now: float) -> float:
        """Takes a token; seconds to wait before it may be used."""
        gained = (now - self._counted_at) * self._per_second
        self._tokens = min(self._burst, self._tokens + max(gained, 0.0)) - 1.0
        self._counted_at = now
        return max(0.0, -self._tokens / self._per_second)


class Lane(Generic[Item]):
    """Carries items out in the order in which they came, *width* at a time.

    Args:
        carry_out: does one item; what it leaves to later it hands to ``put_later``.
        broke: told of an exception that *carry_out* let through, which is a fault of ours; it is logged.
        pace: limits how many are begun a second; None does not.
    """

    def __init__(
        self,
        width: int,
        carry_out: Callable[[Item], Awaitable[None]],
        broke: Callable[[Item, str], None],
        pace: Pace | None = None,
    ) -> None:
        self._width, self._carry_out, self._broke, self._pace = width, carry_out, broke, pace
        self._queue: deque[Item] = deque()
        self._resting: deque[asyncio.Future[None]] = deque()
        self._later: dict[asyncio.TimerHandle, Item] = {}
        self._workers: list[asyncio.Task[None]] = []
        self._cut: list[Item] = []
        self._busy = 0
        self._resume_at = 0.0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._still = asyncio.Event()
        self._still.set()

    def __len__(self) -> int:
        """Items that wait, are being carried out or come back later."""
        return len(self._queue) + self._busy + len(self._later)

    @property
    def backlog(self) -> int:
        """Items for which no worker has been free yet."""
        return len(self._queue)

    def put(self, item: Item) -> None:
        """Carry *item* out after those before it."""
        self._queue.append(item)
        self._quiet.clear()
        self._still.clear()
        if len(self._workers) < self._width and len(self._workers) < len(self):
            self._workers.append(asyncio.get_running_loop().create_task(self._work()))
        while self._resting:
            waiter = self._resting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def put_later(self, item: Item, delay_s: float) -> None:
        """Carry *item* out after *delay_s*."""
        self._quiet.clear()

        def come_back() -> None:
            del self._later[handle]
            self.put(item)

        handle = asyncio.get_running_loop().call_later(delay_s, come_back)
        self._later[handle] = item

    def hold_off(self, error: Exception, wait_s: float) -> None:
        """Pause where *error* says that the next request would fare no better.

        A busy server gets the whole *wait_s*. One that does not answer is asked seldom, but not left alone
        for long: it may have been a single request.
        """
        if not isinstance(error, ApiError):
            self.pause(min(wait_s, _UNANSWERED_S))
        elif error.is_busy:
            self.pause(wait_s)

    def pause(self, seconds: float) -> None:
        """Begin nothing for *seconds*."""
        self._resume_at = max(self._resume_at, asyncio.get_running_loop().time() + seconds)

    async def idle(self) -> None:
        """Until nothing waits or runs; something may come back later."""
        await self._still.wait()

    async def quiet(self) -> None:
        """Until nothing waits, runs or is to come back."""
        await self._quiet.wait()

    async def close(self) -> list[Item]:
        """End the workers; whatever was not done or only begun."""
        for handle in self._later:
            handle.cancel()
        left = [*self._queue, *self._later.values()]
        self._queue.clear()
        self._later.clear()
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._workers.clear()
        self._quiet.set()
        self._still.set()
        return [*self._cut, *left]

    async def _work(self) -> None:
        while True:
            if not self._queue:
                await self._next()
                continue
            await self._hold_back()
            if self._queue:
                await self._carry(self._queue.popleft())

    async def _next(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._resting.append(waiter)
        await waiter

    async def _hold_back(self) -> None:
        """Wait out a pause, and the pace."""
        clock = asyncio.get_running_loop().time
        while (rest := self._resume_at - clock()) > 0:
            await asyncio.sleep(rest)
        wait = self._pace.wait_s(clock()) if self._pace is not None else 0.0
        if wait > 0:
            await asyncio.sleep(wait)

    async def _carry(self, item: Item) -> None:
        self._busy += 1
        try:
            await self._carry_out(item)
        except asyncio.CancelledError:
            self._cut.append(item)
            raise
        except Exception as error:  # one bad item must not end the lane
            _log.error("order_fault", item=repr(item), exc_info=error)
            self._broke(item, f"{type(error).__name__}: {error}")
        finally:
            self._busy -= 1
            if not self._queue and not self._busy:
                self._still.set()
                if not self._later:
                    self._quiet.set()
