"""Orders in, outcomes out: the door through which decisions reach the cluster.

    submit ─► bind     volumes.py (claims first) ─► binder.py      32 in flight
              evict    evictor.py (marks, notice, eviction)         8 in flight
              say      statuses.py, problems.py, events.py          a few, at a bounded rate

All of it happens on the loop's thread; ``submit`` returns at once. Outcomes are taken between cycles. The
status of a PodGroup waits for the binds of its members, so that nobody reads "Running" of a gang that is only
meant to run; and no event says "Scheduled" of it. Where a member's bind failed it waits on, until the engine
has had its say. In a burst pods start first: while binds queue, for at most ``BURST_S``, what started is not
told yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from volcano_py.client.api import Api
from volcano_py.scheduler.cluster.binder import Binder, BindWork
from volcano_py.scheduler.cluster.burst import Burst
from volcano_py.scheduler.cluster.events import Events, EventStats, Reporter
from volcano_py.scheduler.cluster.evictor import Evictor
from volcano_py.scheduler.cluster.grace import Grace
from volcano_py.scheduler.cluster.group_binds import GroupBinds
from volcano_py.scheduler.cluster.orders import (
    BindDone,
    BindFailed,
    BindOrder,
    EvictDone,
    EvictFailed,
    EvictOrder,
    GroupOrder,
    KeepOrder,
    NominateOrder,
    Note,
    Order,
    Outcome,
    ProblemOrder,
    QueueOrder,
    RefusalOrder,
    Subject,
)
from volcano_py.scheduler.cluster.problems import Problems, amended
from volcano_py.scheduler.cluster.statuses import Served, Statuses, StatusStats, Writing
from volcano_py.scheduler.cluster.volumes import VolumeBinder

GOOD_NEWS_S: Final = 0.05
"""Binds that were done may wait so long to be told: nothing is decided on them."""
BURST_S: Final = 5.0
"""Binds that queue may put off so long what is told of groups that started."""
_COUNTED: Final = {
    BindDone: "bound",
    BindFailed: "bind_failed",
    EvictDone: "evicted",
    EvictFailed: "evict_failed",
}


def always() -> bool:
    """The fence of somebody who needs to be no leader."""
    return True


@dataclass(slots=True)
class WriterStats:
    """Counts since the start, and what is on its way now.

    Attributes:
        bound, bind_failed, evicted, evict_failed: outcomes.
        binding, evicting: orders on their way; *under_notice* of the latter wait for their deadline.
        remembered: everything that is kept about single objects.
    """

    bound: int = 0
    bind_failed: int = 0
    evicted: int = 0
    evict_failed: int = 0
    binding: int = 0
    evicting: int = 0
    under_notice: int = 0
    remembered: int = 0


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """How the writer works.

    Attributes:
        in_flight: binds at a time.
        patience_s: how long refusals that may pass are borne, of a bind or an eviction.
        claims_wait_s: how long claims may take to be bound before their pod's bind fails.
        pod_events: whether each bind is told as an event of the pod.
    """

    in_flight: int = 32
    patience_s: float = 60.0
    claims_wait_s: float = 600.0
    pod_events: bool = False


class Writer:
    """Carries orders out as one identity.

    Args:
        fence: asked before every write; False means that we are not the leader any more.
        component: who events come from.
        instance: which of its processes.
        clock: epoch seconds.
    """

    def __init__(
        self,
        api: Api,
        *,
        fence: Callable[[], bool] = always,
        component: str = "volcano-py",
        instance: str = "",
        settings: WriterSettings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings or WriterSettings()
        patience_s = self._settings.patience_s
        self.events = Events(api, Reporter(component, instance), fence, clock)
        self._grace = Grace(self.events.note)
        writing: Writing = {}
        served = Served(api)
        self.problems = Problems(api, fence, clock, self.events.note, writing, served, self._drop)
        self.statuses = Statuses(api, fence, clock, writing, served, self._drop)
        self._binder = Binder(
            api, self._settings.in_flight, fence, self.statuses.hush, self._bind_over, patience_s
        )
        self._volumes = VolumeBinder(api, self._binder, fence, self._say, clock, self._settings.claims_wait_s)
        self._evictor = Evictor(api, fence, clock, self.events.note, self._tell, patience_s)
        self._clock = clock
        self._outcomes: deque[Outcome] = deque()
        self._groups = GroupBinds()
        self._counts = WriterStats()
        self.told = asyncio.Event()
        self._dropped = False
        self._telling: asyncio.TimerHandle | None = None
        self._burst = Burst(BURST_S, self._let_go)

    # -- orders ---------------------------------------------------------------------------------

    def submit(self, orders: Iterable[Order]) -> None:
        """Carry *orders* out, in this order for each object; call it after every cycle, with nothing too.

        On the loop's thread.
        """
        for order in orders:
            if isinstance(order, BindOrder):
                self._bind(order)
            elif isinstance(order, EvictOrder):
                self._evictor.put(order)
            elif isinstance(order, KeepOrder):
                self._evictor.cancel(order.key, order.uid)
            elif isinstance(order, ProblemOrder):
                self._complain(order)
            else:
                self._say(order)
        self._groups.answered()
        self._burst.mark(self._binder.lane.backlog)
        if not self._burst.puts_off:
            self._let_go()

    def cancel(self, key: str, uid: str) -> bool:
        """Withdraw the eviction of pod *key* ("namespace/name"); False unless it is under notice.

        The outcome is an ``EvictFailed`` with trouble ``cancelled``, once the marks are off.
        """
        return self._evictor.cancel(key, uid)

    def lead(self) -> None:
        """We lead from now on: what is held back is of an earlier lead."""
        self._grace.forget_all()
        self._groups.drop_held()
        self.statuses.lead()
        self._dropped = False

    @property
    def is_missing_words(self) -> bool:
        """Something was not said since ``lead``: we did not lead for a moment."""
        return self._dropped

    def _drop(self) -> None:
        self._dropped = True

    def forget(self, kind: str, key: str) -> None:
        """The object is gone: nothing more is remembered of it."""
        self.problems.forget(kind, key)
        self._grace.forget(kind, key)

    def _bind(self, order: BindOrder) -> None:
        self.statuses.forget_pod(order.key)
        self._grace.forget("Pod", order.key)
        self._groups.began(order.group)
        work = BindWork(order, asyncio.get_running_loop().time())
        self._counts.binding += 1
        (self._volumes if order.claims else self._binder).put(work)

    def _say(self, order: RefusalOrder | NominateOrder | GroupOrder | QueueOrder) -> None:
        if isinstance(order, GroupOrder):
            if not self._groups.hold(order):
                self._write_after(order)
            return
        self.statuses.put(order)
        if isinstance(order, RefusalOrder):
            notes = (Note("FailedScheduling", order.message, warning=True),) if order.event else ()
            self._grace.tell(order, *notes)

    def _complain(self, order: ProblemOrder) -> None:
        """What was put together of a PodGroup before that has to say it too."""
        subject = order.subject
        if subject.kind == "PodGroup":
            change = partial(amended, order=order, now=self._clock())
            self._groups.amend(subject.key, change)
            self.statuses.amend((subject.kind, subject.key), change)
        self.problems.put(order)

    def _write_after(self, order: GroupOrder) -> None:
        """The newer word comes after the older, which may have been put off."""
        older = self._groups.free(order.key)
        if older is not None:
            self._write_group(older)
        self._write_group(order)

    def _let_go(self) -> None:
        """Say all that need not wait for binds of its own."""
        for order in self._groups.let_go():
            self._write_group(order)

    def _write_group(self, order: GroupOrder) -> None:
        self.statuses.put(order)
        self._grace.tell(order, *order.notes)

    # -- outcomes -------------------------------------------------------------------------------

    def take_outcomes(self) -> list[Outcome]:
        """What ended since the last call, in the order in which it ended. On the loop's thread."""
        taken = []
        self.told.clear()
        while self._outcomes:
            taken.append(self._outcomes.popleft())
        self._groups.heard([each.group for each in taken if isinstance(each, BindFailed)])
        return taken

    @property
    def stats(self) -> WriterStats:
        """Counts as they are now."""
        kept: tuple[Sized, ...] = (
            self.statuses,
            self.problems,
            self.events,
            self._groups,
            self._grace,
        )
        return replace(
            self._counts,
            evicting=self._evictor.count,
            under_notice=self._evictor.under_notice,
            remembered=sum(len(each) for each in kept),
        )

    @property
    def status_stats(self) -> StatusStats:
        """Of pods, PodGroups and queues."""
        return self.statuses.stats

    @property
    def event_stats(self) -> EventStats:
        """Of events."""
        return self.events.stats

    def _bind_over(self, outcome: BindDone | BindFailed) -> None:
        self._counts.binding -= 1
        failed = isinstance(outcome, BindFailed)
        self._groups.ended(outcome.group, failed=failed)
        self._burst.mark(self._binder.lane.backlog)
        status = None if self._burst.puts_off else self._groups.free(outcome.group)
        if status is not None:
            self._write_group(status)
        if isinstance(outcome, BindDone) and self._settings.pod_events:
            self._tell_pod(outcome)
        self._tell(outcome)

    def _tell_pod(self, outcome: BindDone) -> None:
        namespace, _, name = outcome.key.partition("/")
        message = f"assigned {outcome.key} to {outcome.node}"
        self.events.note(
            Subject("Pod", namespace, name, outcome.uid), Note("Scheduled", message, action="Binding")
        )

    def _tell(self, outcome: Outcome) -> None:
        name = _COUNTED[type(outcome)]
        setattr(self._counts, name, getattr(self._counts, name) + 1)
        self._outcomes.append(outcome)
        if not isinstance(outcome, BindDone):
            self.told.set()
        elif self._telling is None:  # nobody waits for good news: a burst of it is told at once
            self._telling = asyncio.get_running_loop().call_later(GOOD_NEWS_S, self._tell_good)

    def _tell_good(self) -> None:
        self._telling = None
        if self._outcomes:
            self.told.set()

    # -- the end --------------------------------------------------------------------------------

    async def drain(self, timeout_s: float) -> bool:
        """Wait until all that was ordered is done, notices aside; False where *timeout_s* was not enough."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._volumes.lane.quiet()
                await self._binder.lane.quiet()
                await self._evictor.lane.quiet()
                for order in self._groups.let_go():
                    self._write_group(order)
                await self.statuses.quiet()
                await self.problems.lane.quiet()
                await self.events.lane.idle()
                return True
        return False

    async def close(self) -> None:
        """Stop at once. Binds and evictions that have not ended do so as ``closed``."""
        if self._telling is not None:
            self._telling.cancel()
        self._burst.close()
        self._grace.forget_all()
        await self._volumes.close()
        await self._binder.close()
        await self._evictor.close()
        await self.statuses.close()
        await self.problems.lane.close()
        await self.events.close()
