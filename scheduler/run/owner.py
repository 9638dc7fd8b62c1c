"""The one owner of the engine: takes in what happened, decides, and can make the engine anew.

Everything that changes the engine goes through here, in one thread and in one order: changes from the
server, outcomes of orders, cycles, configurations. So whoever writes that order down (``journal``) can go
through it again (``replay``), with the same decisions.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import PurePath
from typing import Any, Final, NamedTuple

import structlog

from volcano_py.crds.schedulerconfig import SchedulerConfig
from volcano_py.scheduler.cluster.feed import Change
from volcano_py.scheduler.cluster.orders import EvictFailed, Outcome
from volcano_py.scheduler.engine import CycleResult, Engine
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.kube.errors import Problem
from volcano_py.scheduler.model.queues import DEFAULT_QUEUE
from volcano_py.scheduler.outcomes import evict_resumed, settle
from volcano_py.scheduler.run.claims import Claims, pin_claims
from volcano_py.scheduler.run.memory import Memory, Undone, memory_of, recall_holds, remember

_log = structlog.get_logger("intake")

KIND_ORDER: Final = ("Namespace", "PriorityClass", "Queue", "Node", "PodGroup")
"""Kinds that a new engine is told of first; the others follow, pods last."""

SIFTINGS: Final = 6
"""Engines made at most to tell objects that break the intake from those that only met what these left."""

Known = dict[str, dict[str, Change]]
"""Kind -> key -> the latest change that was not a deletion."""


class CycleFault(Exception):  # noqa: N818 - a fault, not the error that it carries
    """A cycle was broken off by an exception.

    Attributes:
        where: the action or step that ran (``allocate``, ``open``, ``close``).
        culprit: module and line of the innermost frame outside the framework, as text.
        cause: the exception.
    """

    def __init__(self, where: str, cause: Exception) -> None:
        self.where, self.cause = where, cause
        self.culprit = _innermost(cause)
        super().__init__(f"{where}: {type(cause).__name__}: {cause} (at {self.culprit})")


class _Failed(NamedTuple):
    """An object, and how the intake broke on it."""

    change: Change
    error: Exception


@dataclass(slots=True)
class Stages:
    """Processor-independent seconds that a cycle's steps took: "open", each action, "close"."""

    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, name: str, step: Callable[[], Any]) -> Any:
        """Do *step* and note how long it took; raises ``CycleFault`` naming it."""
        began = time.perf_counter()
        try:
            return step()
        except Exception as error:
            raise CycleFault(name, error) from error
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began


class Owner:
    """See the module.

    Attributes:
        engine: the engine in force; another object after ``renew``.
        known: every object that the server is known to have, readable or not.
        claims: to be bound before the pods that the last cycle bound.
        stages: how long the steps of the last cycle took.
    """

    def __init__(
        self, config: SchedulerConfig, scheduler_names: Iterable[str], default_queue: str = DEFAULT_QUEUE
    ) -> None:
        """Start with an empty cluster; raises ``ConfigError`` if *config* can't be carried out."""
        self.scheduler_names, self.default_queue = tuple(scheduler_names), default_queue
        self.engine = self._made(config)
        self.known: Known = {}
        self.claims: Claims = {}
        self.stages = Stages()
        self._leaving: set[str] = set()
        self._broken: list[Change] = []

    @property
    def is_broken(self) -> bool:
        """Something broke the intake: nothing else may be done before ``mend``."""
        return bool(self._broken)

    def take(self, changes: Iterable[Change], *, mend: bool = True) -> None:
        """Take in *changes* from the server, in order.

        A fault of ours that some object brings out must not stop all others. To *mend* the engine takes
        several times as long as to make it; it may be left to ``mend``.
        """
        changes = list(changes)
        for change in changes:
            of_kind = self.known.setdefault(change.kind, {})
            if change.is_deletion:
                of_kind.pop(change.key, None)
                if change.kind == "Pod":
                    self._leaving.discard(change.key)
            else:
                of_kind[change.key] = change
        try:
            _tell(self.engine, changes)
            if any(change.kind == "ConfigMap" for change in changes):
                _tell(self.engine, self._refused_pods())
        except Exception as error:
            _log.exception("intake_fault", changes=len(changes), error=str(error))
            self._broken = changes
            if mend:
                self.mend()

    def mend(self) -> None:
        """Make the engine anew after the intake broke: who breaks it counts as unreadable, nobody else.

        However many do, the number of engines made for it is bounded. So where more than ``SIFTINGS`` do at
        once, one that only failed after them may be among those that are left out, until it changes.
        """
        broken, self._broken = self._broken, []
        memory = memory_of(self.engine.state)
        latest = {(change.kind, change.key): change for change in broken}
        doubtful = [change for change in latest.values() if self.known[change.kind].get(change.key) is change]
        for change in doubtful:
            del self.known[change.kind][change.key]
        failed = self._sift(doubtful, memory)
        for _ in range(SIFTINGS - 1):
            if len(failed) < 2:
                break
            self._leave_out(failed[:1])
            failed = self._sift([change for change, _ in failed[1:]], memory)
        self._leave_out(failed)
        try:
            self._rebuild(self.engine.config, memory)
        except Exception as error:  # they break it together
            self._leave_out([_Failed(change, error) for change in doubtful])
            self._rebuild(self.engine.config, memory)

    def resume(self, evictions: Iterable[tuple[str, str]]) -> None:
        """Pods (key, UID) are on their way out by evictions of an earlier leader, which are gone on with."""
        for key, uid in evictions:
            if evict_resumed(self.engine.state, key, uid):
                self._leaving.add(key)

    def settle(self, outcomes: Iterable[Outcome]) -> None:
        """Take in what became of orders."""
        for outcome in outcomes:
            settle(self.engine.state, outcome)
            if isinstance(outcome, EvictFailed):
                self._leaving.discard(outcome.key)

    def cycle(self, now: float) -> CycleResult:
        """One cycle at *now* (epoch seconds).

        Raises:
            CycleFault: something in it failed. The engine has been made anew and nothing is decided.
        """
        self.stages, self.claims = Stages(), {}
        session: list[Session] = []
        try:
            result = self._cycle(now, session)
        except CycleFault:
            decided = frozenset(decision.pod for one in session for decision in one.decisions)
            undone = Undone(decided, frozenset(self._leaving))
            self._rebuild(self.engine.config, memory_of(self.engine.state, broken_off=undone))
            raise
        self._leaving.update(decision.pod for decision in result.decisions if decision.kind == "evict")
        return result

    def renew(self, config: SchedulerConfig) -> None:
        """Go on under *config*; raises ``ConfigError``, and then nothing has changed."""
        self._rebuild(config, memory_of(self.engine.state))

    def recall(self, changes: Iterable[Change], memory: Memory) -> None:
        """Know *changes* and *memory*, as written at the beginning of a journal's segment."""
        for change in changes:
            self.known.setdefault(change.kind, {})[change.key] = change
        self._rebuild(self.engine.config, memory)
        self._leaving = {placed.key for placed in memory.placed if placed.leaves}

    def _cycle(self, now: float, opened: list[Session]) -> CycleResult:
        run = self.stages.run
        engine = self.engine
        session: Session = run("open", partial(engine.open, now))
        opened.append(session)
        for action in engine.actions:
            run(action.name, partial(action.run, session))
        result: CycleResult = run("close", partial(engine.close, session))
        self.claims = run("claims", partial(pin_claims, engine, result.decisions))
        return result

    def _made(self, config: SchedulerConfig) -> Engine:
        names, queue = self.scheduler_names, self.default_queue
        return Engine(config, scheduler_names=names, default_queue=queue)

    def _rebuild(self, config: SchedulerConfig, memory: Memory) -> None:
        engine = self._made(config)
        recall_holds(engine.state, memory)
        _tell(engine, in_order(self.known))
        remember(engine.state, memory)
        self.engine = engine

    def _refused_pods(self) -> list[Change]:
        """Pods that mean nothing to the engine as its cards are configured; perhaps they did or will."""
        problems, pods = self.engine.state.problems, self.known.get("Pod", {})
        return [each for key, each in pods.items() if each.item is not None and f"Pod {key}" in problems]

    def _sift(self, doubtful: Iterable[Change], memory: Memory) -> list[_Failed]:
        """Tell an engine made for it of each of *doubtful*, which are not known.

        Returns:
            Those that it failed on; the first one for certain. All others are known from now on.
        """
        engine = self._made(self.engine.config)
        recall_holds(engine.state, memory)
        _tell(engine, in_order(self.known))
        failed = []
        for change in doubtful:
            try:
                _tell(engine, [change])
            except Exception as error:
                failed.append(_Failed(change, error))
            else:
                self.known[change.kind][change.key] = change
        return failed

    def _leave_out(self, failed: Iterable[_Failed]) -> None:
        """They count as unreadable."""
        for change, error in failed:
            fault = Problem("", f"is more than the scheduler can read: {type(error).__name__}: {error}")
            _log.error("object_left_out", kind=change.kind, object=change.key, uid=change.uid, why=str(error))
            self.known[change.kind][change.key] = replace(change, item=None, problems=(fault,))


def in_order(known: Known) -> Iterator[Change]:
    """All of *known*, kinds that others refer to first and pods last."""
    first = [kind for kind in KIND_ORDER if kind in known]
    others = sorted(kind for kind in known if kind not in KIND_ORDER and kind != "Pod")
    for kind in (*first, *others, "Pod"):
        yield from known.get(kind, {}).values()


def _tell(engine: Engine, changes: Iterable[Change]) -> None:
    """Apply *changes*; objects that come in a row are booked together."""
    state, items = engine.state, []
    for change in changes:
        if change.item is not None:
            items.append(change.item)
            continue
        state.upsert_all(items)
        items = []
        engine.delete(change.kind, change.key)
        if change.problems:
            state.mark(change.kind, change.key, list(change.problems))
    state.upsert_all(items)


def _innermost(error: BaseException) -> str:
    """Where *error* came from: the last frame that is not the framework's, else the last one."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if "scheduler" not in PurePath(frame.filename).parts]
    chosen = (theirs or frames)[-1:]
    return "".join(f"{PurePath(one.filename).name}:{one.lineno} in {one.name}" for one in chosen)
