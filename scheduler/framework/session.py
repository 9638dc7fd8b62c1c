"""One cycle's view: the state, the configuration's functions, and what has been decided.

A session is made at the start of a cycle and thrown away at its end. Actions ask it questions (which
job first, is the gang whole, may the queue take more) and change things through its statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.crds.schedulerconfig import SchedulerConfig
from volcano_py.scheduler.framework.decision import Decision
from volcano_py.scheduler.framework.gate import GateBooks
from volcano_py.scheduler.framework.placement import Placer
from volcano_py.scheduler.framework.points import (
    Key,
    Points,
    all_true,
    first_refusal,
    first_tier_all_true,
    order_key,
    tiered_vote,
)
from volcano_py.scheduler.framework.refusal import NO_LIMIT, Refusal, Room
from volcano_py.scheduler.framework.reservations import Reservations
from volcano_py.scheduler.framework.shares import QueueShares
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.accounts import Batch
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.groups import INQUEUE, PENDING
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.queues import Queue
from volcano_py.scheduler.model.resources import Rows32
from volcano_py.scheduler.model.tasks import Status

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.plugin import Plugin

_SUFFIX: Final = re.compile(r"(\d+)$")


class Session:
    """See the module.

    Attributes:
        state, config, now: what the cycle is a function of (*now* in epoch seconds).
        points: the extension points with this configuration's functions.
        placer, gate: placement, and what waits behind the gate; shared by all cycles.
        shares: what queues are owed; None without a share plugin.
        refusals: task -> why it was not placed.
        fitted: job row -> members that had found a place when the gang was given up.
        job_refusals: job row -> why the job as a whole waits.
        decisions: what was committed, in order.
        held: statements of gangs that wait for room being released; kept until the cycle ends.
        reservations: room kept from earlier cycles.
    """

    def __init__(
        self,
        state: ClusterState,
        config: SchedulerConfig,
        placer: Placer,
        now: float,
        gate: GateBooks,
    ) -> None:
        self.state, self.config, self.placer, self.now = state, config, placer, now
        self.gate = gate
        self._tiers = {
            option.name: (tier, option) for tier, block in enumerate(config.tiers) for option in block.plugins
        }
        self.points = Points(self._admits)
        self.shares: QueueShares | None = None
        self.refusals: dict[int, Refusal] = {}
        self.fitted: dict[int, int] = {}
        self.job_refusals: dict[int, Refusal] = {}
        self.decisions: list[Decision] = []
        self.held: list[Statement] = []
        self.reservations = Reservations()

    def open(self, plugins: Iterable[Plugin]) -> None:
        """Let *plugins* hang their functions."""
        for plugin in plugins:
            plugin.open(self)
        self.placer.begin(self)
        self.reservations.restore_all(self)

    def close(self) -> None:
        """Turn what gangs hold into reservations, and let plugins say what is left to say."""
        self.reservations.keep(self, self.held)
        for entry in self.points.closing:
            entry.call()

    def statement(self, action: str) -> Statement:
        """A new statement for *action*."""
        return Statement(self, action)

    # -- what statements report -----------------------------------------------------------------

    def booked(self, before: Batch, status: Status, nodes: Rows32 | None) -> None:
        """A batch moved; plugins with books of their own are told."""
        if self.points.booked:
            where = before.nodes if nodes is None else nodes
            after = Batch(before.tasks, before.klass, before.job, status, where)
            for entry in self.points.booked:
                entry.call(before, -1)
                entry.call(after, 1)

    def decided(self, decisions: list[Decision]) -> None:
        """Decisions that are final."""
        self.decisions += decisions

    def refuse(self, tasks: Iterable[int], refusal: Refusal) -> None:
        """Note why *tasks* were not placed; the latest word counts."""
        for task in tasks:
            self.refusals[task] = refusal

    # -- order ----------------------------------------------------------------------------------

    def job_order_key(self, job: Job) -> tuple[Key, ...]:
        """What *job* sorts by inside its queue."""
        return order_key(self.points.job_order, job, (job.created, self.state.tie_key(job.key), job.key))

    def queue_order_key(self, queue: Queue) -> tuple[Key, ...]:
        """What *queue* sorts by."""
        return order_key(
            self.points.queue_order, queue, (queue.created, self.state.tie_key(queue.name), queue.name)
        )

    def ordered(self, tasks: Iterable[int]) -> list[int]:
        """*tasks* of one job in placement order: plugins' keys, number at the name's end, age, name."""
        table, points = self.state.tasks, self.points.task_order

        def key(task: int) -> tuple[Key, ...]:
            name = table.keys[task]
            number = _SUFFIX.search(name)
            return order_key(points, task, (int(number[1]) if number else -1, table.created[task], name))

        some = list(tasks)
        return sorted(some, key=key) if len(some) > 1 else some

    # -- questions about jobs -------------------------------------------------------------------

    def waits_at_gate(self, job: Job) -> bool:
        """Pending groups are not placed while the enqueue action decides on them."""
        return job.phase == PENDING and "enqueue" in self.config.actions

    def job_problem(self, job: Job) -> Refusal | None:
        """Why *job* can't be looked at at all: no group, no sound queue, not valid."""
        return self.queue_problem(job) or first_refusal(self.points.job_valid, job)

    def _absent(self, kind: str, name: str) -> str:
        """Why an object that pods refer to is not there for us."""
        what = f"{'queue' if kind == 'Queue' else kind} {name}"
        wrong = self.state.problems.get(f"{kind} {name}")
        return f"{what} can't be read: {wrong[0]}" if wrong else f"{what} does not exist"

    def queue_problem(self, job: Job) -> Refusal | None:
        """Why no queue serves *job*: no group that names one, it is held, or the queue takes no jobs."""
        if job.group is None:
            return Refusal("NoPodGroup", self._absent("PodGroup", job.key))
        if job.held:
            return Refusal("Held", f"PodGroup {job.key} is held and starts nothing until it is released")
        if job.queue < 0:
            return Refusal("NoQueue", self._absent("Queue", job.queue_name))
        queue = self.state.queues[job.queue]
        if queue.spec_problem:
            return Refusal("QueueInvalid", queue.spec_problem)
        if not queue.leaf:
            return Refusal("QueueInvalid", f"queue {queue.name} has child queues and takes no jobs itself")
        if not queue.open:
            return Refusal("QueueClosed", f"queue {queue.name} is {queue.state.lower()} and starts nothing")
        return None

    def job_ready(self, job: Job) -> bool:
        """The gang may start (or has)."""
        return all_true(self.points.job_ready, job)

    def job_pipelined(self, job: Job) -> bool:
        """The gang could start once promised room is free."""
        return tiered_vote(self.points.job_pipelined, job)

    def job_starving(self, job: Job) -> bool:
        """The job is short enough of members to take room from others."""
        return first_tier_all_true(self.points.job_starving, job)

    def admit(self, job: Job) -> None:
        """Let *job* through the gate."""
        job.emptied = False
        self.state.set_phase(job, INQUEUE)
        for entry in self.points.job_enqueued:
            entry.call(job)

    # -- questions about queues -----------------------------------------------------------------

    def overused(self, queue: Queue) -> Refusal | None:
        """Why *queue* gets nothing more in this cycle, if so."""
        return first_refusal(self.points.overused, queue)

    def room(self, queue: Queue, klass: TaskClass, *, firm: bool, future: bool = False) -> Room:
        """How many more pods of *klass* fit under *queue*'s limits; the tightest plugin counts."""
        tightest = NO_LIMIT
        for entry in self.points.allocatable:
            room = entry.call(queue, klass, firm, future)
            if room.count < tightest.count:
                tightest = room
        return tightest

    def open_gates(self, tasks: Iterable[int]) -> list[int]:
        """Those of *tasks* without scheduling gates."""
        gated = self.state.tasks.gated
        return [task for task in tasks if not gated[task]]

    def _admits(self, plugin: str, flag: str | None) -> int | None:
        """The tier of *plugin*, or None where the configuration switches *flag* off for it."""
        entry = self._tiers.get(plugin)
        if entry is None:
            return len(self.config.tiers)
        tier, option = entry
        if flag is not None and not option.enabled(flag):
            return None
        return tier


def as_rows(tasks: Iterable[int]) -> Rows32:
    """Task rows as an array."""
    return np.fromiter(tasks, np.int32)
