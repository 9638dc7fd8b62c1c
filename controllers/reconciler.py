"""Brings the cluster to what the controllers want, key by key.

A key names a controller and what it looks at. Whatever changes makes keys; a worker asks the controller for
its plan, has it carried out, and asks again until nothing is wanted. Nothing is remembered that matters: a
process that starts anew, at any point, sees what is there and goes on from that. What fails is tried again
later, with longer and longer pauses; what the server refuses is told to the object's owner. A fault of ours
that one object brings out holds up its key alone.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import structlog

from volcano_py.client.api import ApiError, Unreachable
from volcano_py.controllers.acts import Act, Create, Delete, Patch, Plan, Say
from volcano_py.controllers.carrier import Carrier, NotLeading
from volcano_py.controllers.observed import Change
from volcano_py.controllers.records import Identity
from volcano_py.controllers.workqueue import WorkQueue

__all__ = ["Controller", "Key", "Limits", "Reconciler"]

_log = structlog.get_logger("controllers")

_REFUSED: Final = frozenset({400, 403, 405, 413, 422})
_MOST_ROUNDS: Final = 32
_FAULT: Final = "fault"


class Key(NamedTuple):
    """What to look at, and who looks."""

    controller: str
    name: str


class Controller(Protocol):
    """One controller: which of its keys a change is about, and what is wanted for one."""

    @property
    def name(self) -> str:
        """As its keys say it."""

    def affected(self, change: Change) -> Iterable[str]:
        """Names to look at after *change*."""

    def plan(self, name: str) -> Plan:
        """What is wanted; nothing where all is well. Looks at what was observed and at nothing else."""

    def carried_out(self, name: str, act: Act) -> None:
        """Learn that *act* of *name* was carried out."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard the server is pressed.

    Attributes:
        workers: keys that each controller looks at at the same time.
        in_flight: requests of independent acts at the same time, over all workers.
        first_wait_s: pause after a first failure, doubled with each further one.
        longest_wait_s: where doubling ends.
        refused_wait_s: shortest pause after the server refused for good.
    """

    workers: int = 8
    in_flight: int = 32
    first_wait_s: float = 0.1
    longest_wait_s: float = 60.0
    refused_wait_s: float = 30.0


class Reconciler:
    """The queues of keys and who works on them."""

    def __init__(
        self,
        controllers: Iterable[Controller],
        carrier: Carrier,
        *,
        say: Callable[[Say], None],
        failed: Callable[[str], None],
        limits: Limits | None = None,
    ) -> None:
        """Wire it; *failed* is told the kind of each failure."""
        self._controllers: Mapping[str, Controller] = {it.name: it for it in controllers}
        self._carrier, self._say, self._failed = carrier, say, failed
        self._limits = limits or Limits()
        self._in_flight = asyncio.Semaphore(self._limits.in_flight)
        self._failures: dict[Key, int] = {}
        # One queue a controller, so that thousands of new pods don't keep a queue from being closed.
        self._queues: Mapping[str, WorkQueue[Key]] = {name: WorkQueue() for name in self._controllers}

    @property
    def waiting(self) -> Mapping[str, int]:
        """Keys to be looked at, by controller."""
        return {name: len(queue) for name, queue in self._queues.items()}

    @property
    def is_idle(self) -> bool:
        """Whether nobody works, and no key is ready or waits for its time."""
        return all(queue.is_idle for queue in self._queues.values())

    def changed(self, change: Change) -> None:
        """Queue what *change* is about."""
        for controller in self._controllers.values():
            for name in controller.affected(change):
                self.add(controller.name, name)

    def add(self, controller: str, name: str) -> None:
        """Queue one key."""
        self._queues[controller].add(Key(controller, name))

    async def run(self) -> None:
        """Work until cancelled. Raises NotLeading when another process leads."""
        try:
            async with asyncio.TaskGroup() as group:
                for queue in self._queues.values():
                    for _ in range(self._limits.workers):
                        group.create_task(self._work(queue))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from failures
        finally:
            for queue in self._queues.values():
                queue.close()

    async def _work(self, queue: WorkQueue[Key]) -> None:
        while True:
            key = await queue.take()
            try:
                await self.look_at(key)
            finally:
                queue.done(key)

    async def look_at(self, key: Key) -> None:
        """Bring *key* to where it should be, or to a later try."""
        try:
            again_s = await self._settle(key)
        except NotLeading:
            raise
        except Exception as error:
            self._try_later(key, error)
            return
        self._failures.pop(key, None)
        if again_s is not None:
            self._queues[key.controller].add_later(key, again_s)

    async def _settle(self, key: Key) -> float | None:
        controller = self._controllers[key.controller]
        for _ in range(_MOST_ROUNDS):
            plan = controller.plan(key.name)
            if not plan.acts and not plan.then:
                return plan.again_s
            if await self._in_turn(controller, key, plan.acts):
                await self._together(controller, key, plan.then)
        _log.warning("never_settles", controller=key.controller, key=key.name)
        return self._limits.refused_wait_s

    async def _in_turn(self, controller: Controller, key: Key, acts: tuple[Act, ...]) -> bool:
        """One of *acts* after the other, while objects are as the plan supposes; whether all were."""
        for act in acts:
            if not await self._carry_out(controller, key, act):
                return False
        return True

    async def _together(self, controller: Controller, key: Key, acts: tuple[Act, ...]) -> None:
        """All of *acts*, of which a failing one stops no other; raises the first failure."""
        tasks = [self._carry_out(controller, key, act) for act in acts]
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _carry_out(self, controller: Controller, key: Key, act: Act) -> bool:
        async with self._in_flight:
            try:
                as_planned = await self._carrier.carry_out(act)
            except ApiError as error:
                self._tell(act, error)
                raise
        if as_planned:
            controller.carried_out(key.name, act)
        return as_planned

    def _tell(self, act: Act, error: ApiError) -> None:
        """Say on the object that the server refuses what is wanted for it."""
        concerned = _concerned(act)
        if error.status in _REFUSED and concerned is not None:
            self._say(Say(concerned, "Refused", f"the API server refuses: {error.message}", warning=True))

    def _try_later(self, key: Key, error: Exception) -> None:
        reason = _reason(error)
        tries = self._failures[key] = self._failures.get(key, 0) + 1
        wait_s = min(self._limits.longest_wait_s, self._limits.first_wait_s * 2.0 ** min(tries - 1, 16))
        if reason == _FAULT or (isinstance(error, ApiError) and error.status in _REFUSED):
            wait_s = max(wait_s, self._limits.refused_wait_s)
        wait_s = wait_s * random.uniform(0.5, 1.0) + (getattr(error, "retry_after_s", None) or 0.0)
        self._failed(reason)
        _log.warning(
            "try_later", controller=key.controller, key=key.name, tries=tries, wait_s=round(wait_s, 2),
            error=str(error), exc_info=error if reason == _FAULT else None,
        )  # fmt: skip
        self._queues[key.controller].add_later(key, wait_s)


def _reason(error: Exception) -> str:
    """The HTTP status of a failure, ``unreachable``, or ``fault`` for one of our own."""
    if isinstance(error, ApiError):
        return str(error.status)
    return "unreachable" if isinstance(error, Unreachable) else _FAULT


def _concerned(act: Act) -> Identity | None:
    """Whose owner should know when *act* is refused."""
    if isinstance(act, Create):
        return act.for_whom
    return act.target if isinstance(act, Patch | Delete) else None
