"""The kubelets of many pretend nodes in one loop: pods in, steps out, each carried out on the API server.

What to do is decided by ``steps``; here stand the books of who waits for what, and the requests. At most
``in_flight`` requests run at once and one a pod, so the order of a pod's steps is kept.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import structlog

from volcano_py.client.api import RESOURCES, STRATEGIC, Api, ApiError, Unreachable
from volcano_py.simulator.kubelet import statuses
from volcano_py.simulator.kubelet.admission import Amounts, Rejection, rejection, request_of, room_of
from volcano_py.simulator.kubelet.podview import PodView, decode_pod, decode_pods
from volcano_py.simulator.kubelet.script import Script, ScriptError, read_script
from volcano_py.simulator.kubelet.steps import Act, Moments, Step, next_step

_PODS: Final = RESOURCES["Pod"]
_NODES: Final = RESOURCES["Node"]
_STARTS: Final = frozenset({Act.ACKNOWLEDGE, Act.START})
_LONGEST_WAIT_S: Final = 3600.0
"""A timer is set no further ahead, so that a clock that was put right is noticed."""
_RETRY_S: Final = (0.2, 10.0)
_log = structlog.get_logger("kubelet")


@dataclass(slots=True)
class _Tracked:
    """One pod. ``failures``: in a row, of its next step; ``is_admitted``: it takes room on its node."""

    pod: PodView
    script: Script | ScriptError
    request: Amounts
    is_admitted: bool
    own: Moments = field(default_factory=Moments)
    is_busy: bool = False
    failures: int = 0
    timer: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class KubeletStats:
    """What was done since the start: steps by name, requests that failed."""

    steps: dict[str, int] = field(default_factory=lambda: dict.fromkeys((act.value for act in Act), 0))
    failed: int = 0


class Kubelets:
    """Kubelets for all nodes that are added. Use within a running event loop."""

    def __init__(self, api: Api, *, in_flight: int = 16, clock: Callable[[], float] = time.time) -> None:
        self._api = api
        self._clock = clock
        self._in_flight = in_flight
        self._tracked: dict[str, _Tracked] = {}
        self._nodes: dict[str, set[str]] = {}
        self._played: dict[str, Amounts] = {}
        self._ready: asyncio.Queue[_Tracked] = asyncio.Queue()
        self.stats = KubeletStats()

    async def run(self) -> None:
        """Carry out what is due, until cancelled."""
        async with asyncio.TaskGroup() as workers:
            for _ in range(self._in_flight):
                workers.create_task(self._work())

    # -- what is --------------------------------------------------------------------------------

    def add_node(self, name: str, allocatable: Mapping[str, Any]) -> None:
        """Play the kubelet of node *name*, for the pods on it too; it has *allocatable* from now on."""
        is_new = name not in self._played
        self._played[name] = room_of(allocatable)
        if is_new:
            for key in self._nodes.get(name, ()):
                self._consider(self._tracked[key])

    def remove_node(self, name: str) -> None:
        """Play it no longer; its pods stay as they are."""
        self._played.pop(name, None)

    def add_pod(self, pod: PodView) -> None:
        """*pod* is new or changed. Older states than the one known are dropped."""
        known = self._tracked.get(pod.key)
        if known is None or known.pod.metadata.uid != pod.metadata.uid:
            self.remove_pod(pod.key)
            self._track(pod)
        elif _version(pod) >= _version(known.pod):
            if pod.metadata.annotations != known.pod.metadata.annotations:
                known.script = _script(pod)
            known.pod = pod
            self._consider(known)

    def remove_pod(self, key: str) -> None:
        """The pod ``namespace/name`` is gone."""
        tracked = self._tracked.pop(key, None)
        if tracked is None:
            return
        self._nodes[tracked.pod.spec.node_name].discard(key)
        if tracked.timer is not None:
            tracked.timer.cancel()

    def pod(self, key: str) -> PodView | None:
        """The pod ``namespace/name`` as last known, if it is on a node played here."""
        tracked = self._tracked.get(key)
        return tracked.pod if tracked is not None and self._plays(tracked.pod) else None

    def keys(self) -> set[str]:
        """All pods known."""
        return set(self._tracked)

    def nodes(self) -> frozenset[str]:
        """All nodes played."""
        return frozenset(self._played)

    def _track(self, pod: PodView) -> None:
        tracked = _Tracked(pod, _script(pod), request_of(pod), _was_admitted(pod))
        self._tracked[pod.key] = tracked
        self._nodes.setdefault(pod.spec.node_name, set()).add(pod.key)
        self._consider(tracked)

    def _plays(self, pod: PodView) -> bool:
        return pod.spec.node_name in self._played

    # -- what to do -----------------------------------------------------------------------------

    def _consider(self, tracked: _Tracked) -> None:
        """Queue its next step, or set a timer for it; one that is being worked on comes back by itself."""
        if tracked.timer is not None:
            tracked.timer.cancel()
            tracked.timer = None
        if tracked.is_busy or not self._plays(tracked.pod):
            return
        if not tracked.is_admitted:
            tracked.is_admitted = self._rejection(tracked) is None
        step = self._next(tracked)
        if step is None:
            return
        wait_s = step.at_s - self._clock()
        if wait_s <= 0:
            tracked.is_busy = True
            self._ready.put_nowait(tracked)
        else:
            self._later(tracked, min(wait_s, _LONGEST_WAIT_S))

    def _later(self, tracked: _Tracked, wait_s: float) -> None:
        tracked.timer = asyncio.get_running_loop().call_later(wait_s, self._consider, tracked)

    def _next(self, tracked: _Tracked) -> Step | None:
        pod = tracked.pod
        if isinstance(tracked.script, ScriptError):
            if pod.asked_to_leave_s is not None:
                return Step(Act.REMOVE)
            return None if pod.has_ended else Step(Act.FINISH)
        step = next_step(pod, tracked.script, tracked.own)
        is_start = step is not None and step.act in _STARTS
        return Step(Act.REFUSE) if is_start and not tracked.is_admitted else step

    def _rejection(self, tracked: _Tracked) -> Rejection | None:
        """Why *tracked* may not start, by what is known here."""
        node = tracked.pod.spec.node_name
        others = (self._tracked[key] for key in self._nodes.get(node, ()))
        held = [one.request for one in others if one.is_admitted and not one.pod.has_ended]
        return rejection(tracked.request, held, self._played[node])

    # -- doing it -------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            tracked = await self._ready.get()
            try:
                wait_s = await self._try_step(tracked)
            finally:
                tracked.is_busy = False
            if self._tracked.get(tracked.pod.key) is not tracked:
                continue
            if wait_s is None:
                self._consider(tracked)
            elif wait_s > 0:
                self._later(tracked, wait_s)

    async def _try_step(self, tracked: _Tracked) -> float | None:
        """Carry out its next step. Seconds until the next try; 0: wait for news of the pod; None: done."""
        step = self._next(tracked)
        if step is None:
            return None
        try:
            done = await self._carry_out(tracked, step)
        except ApiError as error:
            return self._refused(tracked, step, error)
        except (Unreachable, msgspec.DecodeError) as error:
            return self._failed(tracked, step, str(error))
        tracked.failures = 0
        self.stats.steps[step.act.value] += done
        return None

    async def _carry_out(self, tracked: _Tracked, step: Step) -> bool:
        """Do *step*; False where there is no need to any more."""
        pod, now_s = tracked.pod, self._clock()
        path = _PODS.path(pod.metadata.namespace, pod.metadata.name)
        if step.act is Act.REMOVE:
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.metadata.uid}}
            await self._api.call("DELETE", path, body=options)
            self.remove_pod(pod.key)
            return True
        why = None
        if step.act is Act.REFUSE and (why := await self._confirmed(tracked)) is None:
            tracked.is_admitted = True
            return False
        patch = _patch(tracked, step, now_s, why)
        answer = await self._api.call("PATCH", f"{path}/status", body=patch, content_type=STRATEGIC)
        if step.act is Act.ACKNOWLEDGE:
            tracked.own.seen_s = now_s
        elif step.act is Act.START:
            tracked.own.started_s = now_s
        written = decode_pod(answer)
        if _version(written) > _version(tracked.pod):
            tracked.pod = written
        return True

    async def _confirmed(self, tracked: _Tracked) -> Rejection | None:
        """Why *tracked* may not start, by what the server says of its node and the pods there.

        News of a node and of pods come on different watches, and after a new list those that went come last.
        """
        name, uid = tracked.pod.spec.node_name, tracked.pod.metadata.uid
        node = await self._api.get(_NODES.path(None, name))
        query = {"fieldSelector": f"spec.nodeName={name}"}
        there = decode_pods(await self._api.call("GET", _PODS.path(), query=query)).items
        held = [request_of(one) for one in there if one.metadata.uid != uid and self._takes_room(one)]
        return rejection(tracked.request, held, room_of(node["status"].get("allocatable") or {}))

    def _takes_room(self, pod: PodView) -> bool:
        known = self._tracked.get(pod.key)
        own = known is not None and known.pod.metadata.uid == pod.metadata.uid and known.is_admitted
        return not pod.has_ended and (own or _was_admitted(pod))

    def _refused(self, tracked: _Tracked, step: Step, error: ApiError) -> float:
        """A pod that is gone is told by the watch; everything else is tried again."""
        if error.status == 404:
            return 0.0
        return self._failed(tracked, step, str(error))

    def _failed(self, tracked: _Tracked, step: Step, why: str) -> float:
        self.stats.failed += 1
        tracked.failures += 1
        first, longest = _RETRY_S
        if tracked.failures == 3:
            _log.warning("a pod's step fails", pod=tracked.pod.key, step=step.act.value, why=why)
        return random.uniform(first, min(longest, first * 2.0 ** min(tracked.failures, 10)))


def _was_admitted(pod: PodView) -> bool:
    """A kubelet has begun with it."""
    return pod.acknowledged_s is not None and not pod.has_ended


def _script(pod: PodView) -> Script | ScriptError:
    try:
        return read_script(pod)
    except ScriptError as error:
        return error


def _patch(tracked: _Tracked, step: Step, now_s: float, why: Rejection | None) -> statuses.Patch:
    if why is not None:
        return statuses.refused(tracked.pod, now_s, *why)
    if isinstance(tracked.script, ScriptError):
        return statuses.refused(tracked.pod, now_s, "BadScript", str(tracked.script))
    if step.act is Act.ACKNOWLEDGE:
        return statuses.acknowledged(tracked.pod, now_s)
    if step.act is Act.START:
        return statuses.running(tracked.pod, now_s)
    return statuses.ended(tracked.pod, now_s, step.exit_code)


def _version(pod: PodView) -> int:
    """Versions of one server grow (Kubernetes promises it since 1.35); none or junk counts as the oldest."""
    text = pod.metadata.resource_version
    return int(text) if text.isdecimal() else 0
