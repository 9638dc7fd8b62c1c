"""When a cycle is due: at once, with the next period, at a known time, or not at all.

A cycle decides about pods that wait and groups at the gate. What it decides can only be something new if what
it reads has changed since the last one, and everything it reads has a version in the model:

    nodes.epoch      amounts, cards, ports, labels, taints, coming and going of nodes; storage
    queues.epoch     every booking of a queue, the tree, limits and states
    jobs.epoch       what PodGroups and priority classes say
    volumes.version  claims and volumes
    pods.renoted     annotations that only a third party's policy may read

Echoes of our own decisions, heartbeats and notes that nobody reads leave them as they are (``model``). If
nobody waits, no version matters. Who lost the room that was kept for it is looked at again at once, since
its claim was not made while that stood. Besides, PodGroups are told how many of their pods run: jobs that
were touched make a cycle due with the next period. Time by itself matters where work grows old enough to
be a victim and where binds have failed before; and where policies of others are configured, of whose
clocks nothing is known here, at every period.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from volcano_py.scheduler.engine import CycleResult, Engine
from volcano_py.scheduler.framework.decision import Decision
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.tasks import Status

NEVER: Final = math.inf
TAKING_ACTIONS: Final = frozenset({"preempt", "reclaim"})
"""Built-in actions for which it matters how old victims are."""
RETRY_S: Final = 60.0
"""A cycle runs so often while somebody waits, although nothing has changed; what it finds is a fault here."""
_VICTIMS: Final = (Status.BOUND, Status.RUNNING)

Versions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Due:
    """When the next cycle has to run.

    Attributes:
        at: epoch seconds; ``NEVER`` unless something changes.
        now: run it as soon as it may: something that waits may get what it waits for.
        why: one word for metrics: ``first``, ``change``, ``report``, ``policy``, ``age`` (work comes of
            age), ``hold`` (a failed bind is tried again), ``retry`` or ``idle``.
    """

    at: float
    now: bool
    why: str


class Triggers:
    """Compares an engine with what it was after its last cycle.

    Attributes:
        decides_anew: the last cycle decided something that was not promised before.
    """

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._engine: Engine | None = None
        self._seen: Versions = ()
        self._cycled_at = -math.inf
        self._follow = False
        self._promised: dict[str, str] = {}
        self._given_up = False
        self.decides_anew = False

    def cycled(self, engine: Engine, result: CycleResult | None, now: float) -> None:
        """A cycle has run at *now*; None: it failed, and everything is still to be decided."""
        tasks, nodes = engine.state.tasks, engine.state.nodes
        self._engine = engine if result is not None else None
        self._seen = versions(engine)
        self._cycled_at = now
        self.decides_anew = result is not None and any(map(self._is_new, result.decisions))
        self._follow = self.decides_anew or bool(result is not None and result.pod_groups)
        started = () if result is None else (each.pod for each in result.decisions if each.kind == "bind")
        promised = {tasks.keys[task]: nodes.names[row] for task, row in tasks.nominated.items()}
        self._given_up = bool(self._promised.keys() - promised.keys() - set(started))
        self._promised = promised

    def due(self, engine: Engine, now: float) -> Due:
        """When the next cycle of *engine* has to run, as things stand at *now* (epoch seconds)."""
        if engine is not self._engine:
            return Due(now, True, "first")
        someone = waits(engine)
        if someone and (self._given_up or versions(engine) != self._seen):
            return Due(now, True, "change")
        self._cycled_at = min(self._cycled_at, now)  # the clock may have been set back
        next_period = self._cycled_at + self._period_s
        if engine.state.jobs.changed or self._follow:
            return Due(next_period, False, "report")
        if engine.has_foreign_policies:
            return Due(next_period, False, "policy")
        return self._by_time(engine, waits=someone)

    def _is_new(self, decision: Decision) -> bool:
        """Whether *decision* is more than a promise that stood before: victims may take long to leave."""
        return decision.kind != "pipeline" or self._promised.get(decision.pod) != decision.node

    def forget(self) -> None:
        """Somebody else may have decided since: everything is to be looked at again."""
        self._engine = None

    def _by_time(self, engine: Engine, *, waits: bool) -> Due:
        """When time alone makes a difference."""
        if not waits:
            return Due(NEVER, False, "idle")
        at, why = self._cycled_at + RETRY_S, "retry"
        held = engine.state.holds.next_due()
        if held is not None:
            at, why = min((at, why), (held, "hold"))
        if TAKING_ACTIONS.intersection(engine.config.actions):
            at, why = min((at, why), (comes_of_age(engine.state, self._cycled_at), "age"))
        return Due(at, False, why)


def versions(engine: Engine) -> Versions:
    """See the module; policies of others may read any annotation."""
    state = engine.state
    return (
        state.nodes.epoch,
        state.queues.epoch,
        state.jobs.epoch,
        state.volumes.version,
        state.pods.renoted if engine.has_foreign_policies else 0,
        len(state.tasks.nominated),
    )


def waits(engine: Engine) -> bool:
    """Whether there is anybody whom a cycle could decide about; policies of others may find somebody."""
    jobs, tasks = engine.state.jobs, engine.state.tasks
    return bool(jobs.with_pending or jobs.gate_waiting or tasks.nominated) or engine.has_foreign_policies


def comes_of_age(state: ClusterState, since: float) -> float:
    """The first moment after *since* (epoch seconds) at which running work reaches its minimum run time."""
    tasks, size = state.tasks, state.tasks.size
    least = tasks.min_run_s[:size]
    if not least.any():
        return NEVER
    began = np.where(tasks.started[:size] > 0, tasks.started[:size], tasks.created[:size])
    ends = (began + least)[(least > 0) & np.isin(tasks.status[:size], _VICTIMS) & (began > 0)]
    ends = ends[ends > since]
    return float(ends.min()) if len(ends) else NEVER


class Pace:
    """How soon the next cycle may begin: at once after a pause, else with rests in between.

    While changes stream in, cycles take at most ``1 / (1 + REST)`` of a processor; a change that comes
    alone is met after ``gather_s``.

    Attributes:
        gather_s: seconds in which changes gather before they are taken.
        feed_rest_s: seconds that the feed may rest between two events: more while nothing matters.
        is_calm: for a while nothing has mattered, and nobody waits: only a new pod can.
    """

    REST: Final = 4.0
    """Seconds of rest for each second of processor time that the last cycle took."""
    LONGEST_REST_S: Final = 0.07
    """Bound of what a change waits behind others that did not matter; a tenth of a second is promised."""
    CALM_REST_S: Final = 0.5
    """The same where new pods are heard of beforehand. Waking up costs as much as 20 changes."""
    CALM_AFTER_S: Final = 2.0
    """Listening for new pods is worth a request after so long."""
    MANY: Final = 64
    """Changes that may gather in a calm; more would stay with the server for too long."""

    def __init__(self, *, gather_s: float, longest_s: float) -> None:
        self.gather_s, self.feed_rest_s, self.is_calm = gather_s, 0.0, False
        self._longest_s = longest_s
        self._rest_until = self._stirred = -math.inf

    def worked(self, seconds: float, ended: float) -> None:
        """A cycle took *seconds* of processor time and ended at *ended* (monotonic seconds)."""
        self._rest_until = ended + min(self.REST * seconds, self._longest_s)

    def rest_s(self, now: float) -> float:
        """Seconds until the next cycle may begin."""
        return max(0.0, self._rest_until - now)

    def took(self, changes: int, now: float, *, mattered: bool, waits: bool, listens: bool) -> None:
        """Changes were taken: while nothing matters, they may gather for longer.

        Args:
            changes: how many.
            now: monotonic seconds.
            mattered: they moved something.
            waits: there is somebody whom a change may help.
            listens: a new pod ends the feed's rest.
        """
        if mattered or waits:
            self._stirred = now
        self.is_calm = now - self._stirred >= self.CALM_AFTER_S
        long = self.is_calm and listens and changes <= self.MANY
        longer_s = max(2 * self.feed_rest_s, self.gather_s)
        longest_s = self.CALM_REST_S if long else self.LONGEST_REST_S
        self.feed_rest_s = 0.0 if mattered else min(longer_s, longest_s)
