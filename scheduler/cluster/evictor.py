"""Evictions: mark the pod, give notice, then evict it through the Eviction API.

    marks written, event told ─► (notice) ─► eviction ─► EvictDone
                                    │            └─► refused for long: marks off ─► EvictFailed
                                    └─► cancelled: marks off ─► EvictFailed

Every request names the pod's identity, so a pod made anew under the same name is never touched; then the one
we meant is gone, which is what was wanted. A refusal by a disruption budget is borne for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from volcano_py.client.api import RESOURCES, STRATEGIC, Api, retry_wait_s
from volcano_py.client.errors import ApiError, Unreachable
from volcano_py.scheduler.cluster.binder import NOT_LEADER
from volcano_py.scheduler.cluster.lane import Lane
from volcano_py.scheduler.cluster.notices import marked, sentence, unmarked
from volcano_py.scheduler.cluster.orders import (
    EvictDone,
    EvictFailed,
    EvictOrder,
    Note,
    Outcome,
    Subject,
    Trouble,
)
from volcano_py.scheduler.model.kube.times import format_time

_WIDTH: Final = 8
_PODS: Final = RESOURCES["Pod"]
_LONGEST_SLEEP_S: Final = 30.0


@dataclass(eq=False, slots=True)
class EvictWork:
    """One eviction on its way.

    Attributes:
        deadline: epoch seconds at which it is carried out, as the pod was told.
        latest: loop time at which it is, even where the clock was set back meanwhile.
        marked: the pod carries the marks.
        noticed: it was given time.
        why, trouble: set once the pod is to stay; then only the marks come off.
        since: loop time of the first refusal of what is being tried; None before.
    """

    order: EvictOrder
    deadline: float
    latest: float
    marked: bool
    noticed: bool = False
    tries: int = 0
    since: float | None = None
    why: str = ""
    trouble: Trouble | None = None
    timer: asyncio.TimerHandle | None = None


class Evictor:
    """Carries eviction orders out.

    Args:
        fence: asked before every request.
        clock: epoch seconds; deadlines on pods are in them.
        note: writes an event.
        tell: gets each outcome.
        patience_s: how long refusals (a disruption budget, 429, 5xx) are borne.
    """

    def __init__(
        self,
        api: Api,
        fence: Callable[[], bool],
        clock: Callable[[], float],
        note: Callable[[Subject, Note], None],
        tell: Callable[[Outcome], None],
        patience_s: float = 60.0,
    ) -> None:
        self._api, self._fence, self._clock, self._note, self._tell = api, fence, clock, note, tell
        self._patience_s = patience_s
        self._works: dict[str, EvictWork] = {}
        self.lane: Lane[EvictWork] = Lane(_WIDTH, self._step, self._broke)

    @property
    def count(self) -> int:
        """Evictions on their way."""
        return len(self._works)

    @property
    def under_notice(self) -> int:
        """Evictions that wait for their deadline."""
        return sum(work.timer is not None for work in self._works.values())

    def put(self, order: EvictOrder) -> None:
        """Evict the pod of *order*; one that is being evicted already goes on as it was."""
        if order.uid in self._works:
            return
        deadline = self._clock() + order.notice_s if order.deadline is None else order.deadline
        latest = asyncio.get_running_loop().time() + deadline - self._clock()
        resumed = order.deadline is not None
        work = EvictWork(order, deadline, latest, marked=resumed, noticed=resumed or order.notice_s > 0)
        self._works[order.uid] = work
        self.lane.put(work)

    def cancel(self, key: str, uid: str) -> bool:
        """Withdraw the eviction of a pod; False if there is none that is still under notice."""
        work = self._works.get(uid)
        if work is None or work.order.key != key or work.timer is None:
            return False
        work.timer.cancel()
        work.timer = None
        self._keep(work, "cancelled", "the claimant needs it no more")
        return True

    async def close(self) -> None:
        """Stop at once. Marks stay, so that the next leader carries on."""
        await self.lane.close()
        for work in list(self._works.values()):
            if work.timer is not None:
                work.timer.cancel()
            self._end(work, "closed", "the scheduler stops")

    # -- the steps ------------------------------------------------------------------------------

    async def _step(self, work: EvictWork) -> None:
        """The next request of *work*."""
        if not self._fence():
            self._end(work, "fenced", NOT_LEADER)
            return
        work.tries += 1
        try:
            if work.trouble is not None:
                await self._unmark(work)
            elif not work.marked:
                await self._mark(work)
            elif self._left_s(work) > 0:
                self._sleep(work)
            else:
                await self._evict(work)
        except ApiError as error:
            self._refused(work, error)
        except Unreachable as error:
            self._again(work, error)

    async def _mark(self, work: EvictWork) -> None:
        body = marked(work.order, work.deadline, self._clock())
        await self._patch(work.order, body)
        work.marked, work.tries, work.since = True, 0, None
        self._tell_why(work)
        self.lane.put(work)

    def _tell_why(self, work: EvictWork) -> None:
        """An event on the pod, and one on its group, which outlives it."""
        order = work.order
        when = f"; due at {format_time(work.deadline)}" if order.notice_s > 0 else ""
        why = sentence(order) + when
        told = {order.subject: why, order.group: f"pod {order.name}: {why}"}
        for subject, text in told.items():
            if subject is not None:
                self._note(subject, Note("Evict", text, warning=True, action="Evicting"))

    async def _evict(self, work: EvictWork) -> None:
        order = work.order
        path = _PODS.path(order.namespace, order.name)
        if work.noticed and await self._has_ended(order, path):
            self._done(work)
            return
        options = {"preconditions": {"uid": order.uid}}
        if order.delete:
            await self._api.call("DELETE", path, body=options)
        else:
            meta = {"name": order.name, "namespace": order.namespace}
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta, "deleteOptions": options}
            await self._api.call("POST", f"{path}/eviction", body=body)
        self._done(work)

    async def _has_ended(self, order: EvictOrder, path: str) -> bool:
        """Whether the pod used its notice to end: its object stays, for whoever waits for its result."""
        pod = await self._api.get(path)
        ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        return bool(ended and pod["metadata"].get("uid") == order.uid)

    async def _unmark(self, work: EvictWork) -> None:
        await self._patch(work.order, unmarked(work.order))
        self._end(work, work.trouble or "refused", work.why)

    async def _patch(self, order: EvictOrder, body: dict[str, Any]) -> None:
        path = _PODS.path(order.namespace, order.name, "status")
        await self._api.call("PATCH", path, body=body, content_type=STRATEGIC)

    def _left_s(self, work: EvictWork) -> float:
        """Seconds of notice that are left."""
        return min(work.deadline - self._clock(), work.latest - asyncio.get_running_loop().time())

    def _sleep(self, work: EvictWork) -> None:
        """Come back at the deadline; in short naps, since the clock that deadlines are in may be set."""

        def wake() -> None:
            work.timer = None
            self.lane.put(work)

        nap = min(self._left_s(work), _LONGEST_SLEEP_S)
        work.tries = 0
        work.timer = asyncio.get_running_loop().call_later(max(nap, 0.0), wake)

    # -- answers --------------------------------------------------------------------------------

    def _refused(self, work: EvictWork, error: ApiError) -> None:
        now = asyncio.get_running_loop().time()
        work.since = now if work.since is None else work.since
        passing = error.is_passing or error.status == 409
        if error.is_missing or error.is_another:
            self._gone(work)
        elif passing and now - work.since <= self._patience_s:
            self._again(work, error)
        elif work.trouble is not None:
            self._end(work, work.trouble, f"{work.why}; its marks could not be taken off: {error.message}")
        elif work.marked:
            self._keep(work, "refused", said(error))
        else:
            self._end(work, "refused", said(error))

    def _gone(self, work: EvictWork) -> None:
        """No pod of this identity is there any more."""
        if work.trouble is None:
            self._done(work)
        else:
            self._end(work, work.trouble, work.why)

    def _again(self, work: EvictWork, error: Exception) -> None:
        self.lane.put_later(work, retry_wait_s(work.tries, error))

    def _keep(self, work: EvictWork, trouble: Trouble, why: str) -> None:
        """The pod stays: take its marks off, then end."""
        work.trouble, work.why, work.tries, work.since = trouble, why, 0, None
        self.lane.put(work)

    def _done(self, work: EvictWork) -> None:
        if self._works.pop(work.order.uid, None) is not None:
            self._tell(EvictDone(work.order.key, work.order.uid, work.order.for_whom))

    def _end(self, work: EvictWork, trouble: Trouble, why: str) -> None:
        order = work.order
        if self._works.pop(order.uid, None) is not None:
            self._tell(EvictFailed(order.key, order.uid, order.for_whom, why, trouble))

    def _broke(self, work: EvictWork, why: str) -> None:
        self._end(work, "fault", why)


def said(error: ApiError) -> str:
    """What the server says, with the causes that it lists: which disruption budget stands in the way."""
    try:
        causes = msgspec.json.decode(error.body)["details"]["causes"]
        return " ".join([error.message, *(str(cause["message"]) for cause in causes)])
    except (msgspec.DecodeError, KeyError, TypeError):
        return error.message
