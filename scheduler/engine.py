"""The engine: a function of (cluster state, configuration, clock) to decisions.

A cycle, and where each step is decided:

    open      framework/session.py       plugins hang functions on extension points (framework/points.py);
              framework/reservations.py  room kept for waiting gangs is promised again
    enqueue   actions/enqueue.py         which groups are let through the gate
    allocate  actions/allocate.py        who starts on what is idle, queue by queue, gangs whole
    preempt   actions/preempt.py         who starts in place of less important work of its own queue
    reclaim   actions/reclaim.py         which queues take back what others have borrowed
    backfill  actions/backfill.py        pods that ask for nothing
    close     framework/reservations.py  gangs that wait keep their room;
              framework/close.py         phases and conditions of PodGroups

The configuration says which actions run, and in which order. Whoever drives the engine (the scheduler,
``plan``, the simulator) feeds objects in and carries decisions out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from volcano_py.crds.schedulerconfig import SchedulerConfig
from volcano_py.scheduler.decoding import decode_object, identity_of
from volcano_py.scheduler.framework.close import GroupStatus, close_jobs
from volcano_py.scheduler.framework.decision import Decision
from volcano_py.scheduler.framework.gate import GateBooks
from volcano_py.scheduler.framework.placement import Placer
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.framework.registry import has_foreign_policies, make_actions, make_plugins
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.shares import QueueShares
from volcano_py.scheduler.model.cards import CardSource
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem
from volcano_py.scheduler.model.queues import DEFAULT_QUEUE

SCHEDULER_NAMES: Final = ("volcano-py", "volcano")


@dataclass(frozen=True, slots=True)
class CycleResult:
    """What one cycle decided.

    Attributes:
        decisions: in the order they were made.
        pod_groups: "namespace/name" -> status, of the groups whose status changed in this cycle.
        refusals: "namespace/name" of a pod -> why it was not placed.
        job_refusals: "namespace/name" of a PodGroup -> why it waits as a whole.
        shares: what queues were owed, as the share plugin computed it.
    """

    decisions: list[Decision]
    pod_groups: dict[str, GroupStatus]
    refusals: dict[str, Refusal]
    job_refusals: dict[str, Refusal]
    shares: QueueShares | None


class Engine:
    """One scheduler's mind.

    Attributes:
        config: the configuration in force.
        plugins, actions: as configured; they live as long as the engine.
        has_foreign_policies: some of these did not come with the scheduler.
        state: the cluster as known.
        placer, gate: what is kept from cycle to cycle about nodes, and about who was let in.
    """

    def __init__(
        self,
        config: SchedulerConfig,
        *,
        scheduler_names: Iterable[str] = SCHEDULER_NAMES,
        tie_key: Callable[[str], object] | None = None,
        default_queue: str = DEFAULT_QUEUE,
    ) -> None:
        """Start with an empty cluster; raises ``ConfigError`` if *config* can't be carried out.

        Args:
            config: the parsed configuration.
            scheduler_names: ``schedulerName`` values of pods that are ours.
            tie_key: what equals are ordered by, from a name; the name itself unless given.
            default_queue: of groups that name none; it is there even where no object defines it.
        """
        self.config = config
        self.plugins = make_plugins(config)
        self.actions = make_actions(config)
        self.has_foreign_policies = has_foreign_policies(config)
        self.state = ClusterState(
            scheduler_names,
            card_source=self._card_source(),
            tie_key=tie_key,
            default_queue=default_queue,
        )
        self.placer = Placer(self.state)
        self.gate = GateBooks()

    def cycle(self, now: float) -> CycleResult:
        """One cycle at *now* (epoch seconds)."""
        session = self.open(now)
        for action in self.actions:
            action.run(session)
        return self.close(session)

    def open(self, now: float) -> Session:
        """The session of a cycle at *now*, for those who run actions themselves."""
        self.state.holds.pass_time(now)
        session = Session(self.state, self.config, self.placer, now, self.gate)
        session.open(self.plugins)
        return session

    def close(self, session: Session) -> CycleResult:
        """End *session*: reservations, PodGroup statuses, reasons."""
        session.close()
        groups = close_jobs(session)
        keys = self.state.tasks.keys
        jobs = self.state.jobs
        return CycleResult(
            session.decisions,
            groups,
            {keys[task]: refusal for task, refusal in session.refusals.items() if keys[task]},
            {jobs[row].key: refusal for row, refusal in session.job_refusals.items()},
            session.shares,
        )

    def apply(self, document: Mapping[str, Any]) -> list[Problem]:
        """Take in one Kubernetes object as a document (as read from YAML or JSON).

        Returns:
            What is wrong with it. A wrong object counts as absent; everything else goes on.
        """
        try:
            item = decode_object(document)
        except ObjectError as error:
            kind, key = identity_of(document)
            self.state.delete(kind, key)
            return self.state.mark(kind, key, list(error.problems))
        return [] if item is None else self.state.upsert(item)

    def delete(self, kind: str, key: str) -> None:
        """The object *kind* *key* ("namespace/name", or the name) is gone."""
        self.state.delete(kind, key)

    def settle(self, now: float) -> None:
        """Let the cluster carry out what was decided: bound pods run, evicted ones are gone."""
        self.state.settle(now)

    def _card_source(self) -> CardSource | None:
        for plugin in self.plugins:
            source = plugin.card_source()
            if source is not None:
                return source
        return None
