"""The engine's thread: one turn takes in what happened, runs a cycle if one is due, and returns orders.

Nothing here waits for anything but the processor. The loop hands over what it has and gets a ``Turn`` back;
meanwhile it goes on reading, writing and leading.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from importlib.metadata import version

import structlog

from volcano_py.scheduler.cluster.feed import Change
from volcano_py.scheduler.cluster.notices import due_eviction
from volcano_py.scheduler.cluster.orders import BindDone, BindFailed, EvictFailed, Order, Outcome
from volcano_py.scheduler.engine import CycleResult
from volcano_py.scheduler.framework.decision import Kind
from volcano_py.scheduler.model.queues import DEFAULT_QUEUE
from volcano_py.scheduler.outcomes import withdrawals
from volcano_py.scheduler.run.carry import Carrier
from volcano_py.scheduler.run.journal import Beginning, Journal
from volcano_py.scheduler.run.memory import memory_of
from volcano_py.scheduler.run.metrics import Metrics
from volcano_py.scheduler.run.owner import CycleFault, Owner, in_order
from volcano_py.scheduler.run.queue_metrics import QueueFigures
from volcano_py.scheduler.run.records import (
    FORMAT,
    Configured,
    Cycled,
    Opened,
    Record,
    Resumed,
    Took,
    item_of,
    settled_of,
)
from volcano_py.scheduler.run.reload import Configured as Configuration
from volcano_py.scheduler.run.triggers import NEVER, Due, Triggers, versions, waits
from volcano_py.scheduler.run.ungrouped import Ungrouped

_log = structlog.get_logger("cycle")


@dataclass(frozen=True, slots=True)
class Given:
    """What one turn is about.

    Attributes:
        now: epoch seconds.
        may_cycle: we lead, and the next cycle need not rest.
        leads: we lead.
        light: nothing may be done that takes long.
        begins: we lead from now on, perhaps again.
    """

    now: float
    changes: list[Change] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    config: Configuration | None = None
    may_cycle: bool = False
    leads: bool = False
    light: bool = False
    begins: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """What came of it.

    Attributes:
        orders: for the writer.
        gone: (kind, key) of objects that were deleted.
        due: when the next cycle is.
        tell_at: when something is to be told without one, epoch seconds; ``NEVER`` where nothing is.
        cycle_s: processor seconds that a cycle took; None where none ran.
        fault: it was broken off.
        mattered: the changes moved something.
        waits: there may be somebody whom a change helps.
    """

    orders: list[Order]
    gone: list[tuple[str, str]]
    due: Due
    tell_at: float = NEVER
    cycle_s: float | None = None
    fault: bool = False
    mattered: bool = False
    waits: bool = True


class Worker:
    """See the module. Used by one thread at a time.

    Attributes:
        owner: of the engine.
        cycles: how many ran, those before a restart included where a journal tells of them.
        figures: what queues hold, for metrics.
    """

    def __init__(
        self,
        config: Configuration,
        scheduler_names: tuple[str, ...],
        carrier: Carrier,
        triggers: Triggers,
        metrics: Metrics,
        journal: Journal | None = None,
        cycles: int = 0,
        default_queue: str = DEFAULT_QUEUE,
    ) -> None:
        self.owner = Owner(config.config, scheduler_names, default_queue)
        self.cycles = cycles
        self.figures = QueueFigures()
        self._config_text = config.text
        self._carrier, self._triggers, self._metrics = carrier, triggers, metrics
        self._journal = journal
        self._led = False
        self._ungrouped = Ungrouped()

    def turn(self, given: Given) -> Turn:
        """Do what is *given*."""
        mended = self.owner.is_broken
        if mended:
            self.owner.mend()
        self._begin_segment(given.now)
        before = versions(self.owner.engine)
        self._take_in(given)
        if self.owner.is_broken:
            self._write_journal()
            return Turn([], _gone(given.changes), Due(given.now, True, "change"), mattered=True)
        orders = self._take_over(given.now) if given.begins or (given.leads and not self._led) else []
        self._led = given.leads
        mattered = mended or versions(self.owner.engine) != before
        if given.changes:
            self._metrics.changes.labels("moved" if mattered else "none").inc(len(given.changes))
        if given.leads and (given.changes or mended):
            orders += self._carrier.problems(self.owner.engine.state, self.owner.known)
        turn = self._cycle_if_due(given, orders, mattered=mattered)
        if given.leads:  # not with cycles alone: who is gone makes none due
            turn.orders.extend(withdrawals(self.owner.engine.state))
            turn.orders.extend(self._ungrouped.orders(given.now))
        self._write_journal()
        return replace(turn, tell_at=self._ungrouped.due_at()) if given.leads else turn

    def is_light(self) -> bool:
        """Whether the next turn is about what it is given alone: nothing to mend, no segment begins."""
        return not self.owner.is_broken and (self._journal is None or not self._journal.wants_beginning())

    def _take_over(self, now: float) -> list[Order]:
        """We lead from now on: what an earlier leader began is gone on with, and all is looked at again."""
        self._triggers.forget()
        self._carrier.begin(self.owner.known)
        pods = self.owner.known.get("Pod", {}).values()
        self._ungrouped.begin(pods, self.owner.engine.state.pods.is_ours, now)
        found = (due_eviction(change.item) for change in pods if change.item is not None)
        due = [order for order in found if order is not None]
        keys = [(order.key, order.uid) for order in due]
        self.owner.resume(keys)
        if keys:
            self._record(lambda: Resumed(keys))
        return [*due, *self._carrier.problems(self.owner.engine.state, self.owner.known)]

    def close(self) -> None:
        """Close the journal."""
        if self._journal is not None:
            self._journal.close()

    # -- what happened --------------------------------------------------------------------------

    def _take_in(self, given: Given) -> None:
        began = time.thread_time()
        if given.config is not None:
            self.owner.renew(given.config.config)
            self._config_text = given.config.text
            self._record(lambda: Configured(self._config_text))
        if given.outcomes:
            self._observe(given.outcomes, given.now)
            self.owner.settle(given.outcomes)
            self._record(lambda: settled_of(given.outcomes))
        if given.changes:
            self.owner.take(given.changes, mend=not given.light)
            self._ungrouped.take(given.changes, self.owner.engine.state.pods.is_ours, given.now)
            self._carrier.forget(key for kind, key in _gone(given.changes) if kind == "Pod")
            self._record(lambda: Took([item_of(change) for change in given.changes]))
        self._metrics.change_cpu_s.inc(time.thread_time() - began)

    def _observe(self, outcomes: list[Outcome], now: float) -> None:
        tasks = self.owner.engine.state.tasks
        for outcome in outcomes:
            if isinstance(outcome, BindDone):
                self._metrics.bind_s.observe(outcome.seconds)
                task = tasks.index.get(outcome.key)
                if task is not None and tasks.created[task] > 0:
                    self._metrics.created_to_bound_s.observe(max(0.0, now - float(tasks.created[task])))
            elif isinstance(outcome, BindFailed | EvictFailed):
                _log.warning(
                    "order_failed",
                    order=type(outcome).__name__,
                    pod=outcome.key,
                    uid=outcome.uid,
                    trouble=outcome.trouble,
                    why=outcome.why,
                )

    # -- cycles ---------------------------------------------------------------------------------

    def _cycle_if_due(self, given: Given, orders: list[Order], *, mattered: bool) -> Turn:
        engine = self.owner.engine
        gone = _gone(given.changes)
        due = self._triggers.due(engine, given.now)
        if not (given.may_cycle and (due.now or due.at <= given.now)):
            return Turn(orders, gone, due, mattered=mattered, waits=waits(engine))
        self.cycles += 1
        self._metrics.cycles.labels(due.why).inc()
        began, cpu = time.perf_counter(), time.thread_time()
        fault = ""
        try:
            result = self.owner.cycle(given.now)
        except CycleFault as error:
            result, fault = None, str(error)
            self._report_fault(error)
        took_s = time.perf_counter() - began
        self._triggers.cycled(self.owner.engine, result, given.now)
        self._record(lambda: _cycled(self.cycles, given.now, result, fault, took_s))
        if result is not None:
            orders += self._carrier.orders(self.owner, result, self.cycles, given.now)
            self._report(result, due, took_s)
        self._metrics.cycle_cpu_s.inc(time.thread_time() - cpu)
        next_due = self._triggers.due(self.owner.engine, given.now)
        took_cpu_s = time.thread_time() - cpu
        return Turn(orders, gone, next_due, cycle_s=took_cpu_s, fault=bool(fault), mattered=True)

    def _report(self, result: CycleResult, due: Due, took_s: float) -> None:
        """Logs and metrics of a cycle that went well."""
        kinds = Counter(decision.kind for decision in result.decisions)
        metrics, stages = self._metrics, self.owner.stages.seconds
        metrics.e2e_ms.observe(1000 * took_s)
        metrics.open_ms.observe(1000 * stages.get("open", 0.0))
        metrics.close_ms.observe(1000 * stages.get("close", 0.0))
        for action in self.owner.engine.actions:
            metrics.action_ms.labels(action.name).observe(1000 * stages.get(action.name, 0.0))
        if kinds["bind"]:
            metrics.attempts.labels("scheduled").inc(kinds["bind"])
        if result.refusals:
            metrics.attempts.labels("unschedulable").inc(len(result.refusals))
        metrics.refused = _reasons(result)
        metrics.unschedulable_jobs.set(len(result.job_refusals))
        if kinds["evict"]:
            metrics.victims.set(kinds["evict"])
            metrics.preemptions.inc()
        if due.why == "retry" and (kinds["bind"] or kinds["evict"]):
            metrics.late_finds.inc(kinds["bind"] + kinds["evict"])
        self.figures.take(self.owner.engine.state, result.shares)
        self._log_decisions(result, kinds, due, took_s)

    def _log_decisions(self, result: CycleResult, kinds: Counter[Kind], due: Due, took_s: float) -> None:
        for decision in result.decisions:
            if decision.kind == "evict":
                self._metrics.evictions.labels(decision.action).inc()
                _log.info(
                    "evict",
                    cycle=self.cycles,
                    pod=decision.pod,
                    node=decision.node,
                    action=decision.action,
                    for_whom=decision.for_whom,
                    rule=decision.reason,
                    lost=decision.lost,
                )
            else:
                _log.debug(
                    decision.kind,
                    cycle=self.cycles,
                    pod=decision.pod,
                    node=decision.node,
                    action=decision.action,
                    why=decision.reason,
                )
        if self._triggers.decides_anew:
            _log.info(
                "decided",
                cycle=self.cycles,
                why=due.why,
                binds=kinds["bind"],
                promises=kinds["pipeline"],
                evictions=kinds["evict"],
                refused=len(result.refusals),
                took_ms=round(1000 * took_s, 2),
            )

    def _report_fault(self, error: CycleFault) -> None:
        self._metrics.cycle_faults.labels(error.where).inc()
        self._metrics.attempts.labels("error").inc()
        waiting = self.owner.engine.state.jobs.with_pending
        jobs = self.owner.engine.state.jobs
        _log.error(
            "cycle_fault",
            cycle=self.cycles,
            step=error.where,
            at=error.culprit,
            error=f"{type(error.cause).__name__}: {error.cause}",
            waiting=sorted(jobs[row].key for row in waiting)[:10],
            exc_info=error.cause,
        )

    # -- journal --------------------------------------------------------------------------------

    def _record(self, record: Callable[[], Record]) -> None:
        if self._journal is not None:
            self._journal.add(record())

    def _begin_segment(self, now: float) -> None:
        """Begin a segment of the journal where one is wanted, with what is known before this turn."""
        journal, owner = self._journal, self.owner
        if journal is None or not journal.wants_beginning():
            return
        opened = Opened(
            FORMAT,
            version("volcano-py"),
            self._config_text,
            owner.scheduler_names,
            self.cycles,
            now,
            owner.default_queue,
        )
        journal.begin(Beginning(opened, list(in_order(owner.known)), memory_of(owner.engine.state)))

    def _write_journal(self) -> None:
        journal = self._journal
        if journal is None:
            return
        before = journal.written
        journal.flush()
        self._metrics.journal_bytes.inc(journal.written - before)
        self._metrics.journal_ok.set(0.0 if journal.trouble else 1.0)


def _gone(changes: Iterable[Change]) -> list[tuple[str, str]]:
    return [(change.kind, change.key) for change in changes if change.is_deletion]


def _cycled(number: int, now: float, result: CycleResult | None, fault: str, took_s: float) -> Cycled:
    if result is None:
        return Cycled(number, now, [], {}, {}, fault, took_s)
    return Cycled(number, now, result.decisions, result.pod_groups, _reasons(result), "", took_s)


def _reasons(result: CycleResult) -> dict[str, int]:
    return dict(Counter(refusal.reason for refusal in result.refusals.values()))
