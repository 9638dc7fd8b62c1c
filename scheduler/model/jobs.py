"""Jobs: a PodGroup with its tasks, and how many stand where.

Counts are kept by status, for the job and for every role, so that "is the gang whole" costs nothing.
Amounts and counts are written by ``accounts``, what the PodGroup says by ``groups``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np

from volcano_py.crds.podgroup import PodGroup
from volcano_py.scheduler.model.resources import Ints, Rows32, Vocabulary
from volcano_py.scheduler.model.rows import Column, Rows, put_at
from volcano_py.scheduler.model.tasks import ALLOCATED, NOWHERE, Status

STATUSES: Final = len(Status)
_ALLOCATED: Final = tuple(int(s) for s in Status if ALLOCATED[s])
_SUCCEEDED: Final = int(Status.SUCCEEDED)


_OF_GROUP: Final = (
    *("group", "queue_name", "queue", "min_member", "min_task_member", "priority", "priority_class"),
    *("created", "phase", "min_resources", "interruptible", "min_run_s", "said", "told", "started"),
    *("held", "boost", "emptied"),
)
"""Attributes of a job that its PodGroup, or the engine on its behalf, has set."""


def no_counts() -> list[int]:
    """Zero tasks in every status."""
    return [0] * STATUSES


@dataclass(eq=False, slots=True)
class Job:
    """One PodGroup (or the name of one that pods wait for).

    Attributes:
        row: row in ``JobTable``.
        key: "namespace/name" of the PodGroup.
        group: the PodGroup object; None while pods name a group that does not exist.
        queue: row of its queue, -1 while that queue does not exist.
        phase: PodGroup phase the engine works with; the cycle may change it.
        min_resources: (R,) what the gate asks for; None: nothing is asked.
        tasks: every task of the job.
        pending: pending tasks, unordered; ``Session.ordered`` sorts.
        counts: tasks by ``Status``.
        standing: those in an allocated status together, since every order and gang asks for them.
        role_counts: the same by role.
        gated: pending tasks with scheduling gates.
        pending_best_effort: pending tasks without requests.
        said: the status last reported for the PodGroup (a ``GroupStatus`` of the framework's).
        told: what all its pending tasks were last told, and what followed for the group (``Refusal`` s).
        held: nothing of it starts until somebody releases it.
        boost: goes before jobs of its queue with a lower one, whatever their priority.
        started: has been admitted and run before (lost a member since, if below its minimum).
        emptied: since it was admitted it had pods, and all of them are gone.
    """

    row: int
    key: str
    namespace: str
    name: str
    group: PodGroup | None = None
    queue_name: str = "default"
    queue: int = -1
    min_member: int = 0
    min_task_member: dict[str, int] = field(default_factory=dict)
    priority: int = 0
    priority_class: str = ""
    created: float = 0.0
    phase: str = "Pending"
    min_resources: Ints | None = None
    interruptible: bool | None = None
    min_run_s: float | None = None
    tasks: set[int] = field(default_factory=set)
    pending: set[int] = field(default_factory=set)
    counts: list[int] = field(default_factory=no_counts)
    standing: int = 0
    role_counts: dict[str, list[int]] = field(default_factory=dict)
    gated: int = 0
    pending_best_effort: int = 0
    said: object = None
    told: tuple[Any, Any] | None = None
    held: bool = False
    boost: int = 0
    started: bool = False
    emptied: bool = False

    def forget_group(self) -> None:
        """Its PodGroup is gone: what that said no longer holds, as if only its pods had ever been seen."""
        blank = Job(self.row, self.key, self.namespace, self.name)
        for said in _OF_GROUP:
            setattr(self, said, getattr(blank, said))

    @property
    def roles_enforced(self) -> bool:
        """Role minimums hold while minMember covers their sum (decisions.md 13)."""
        return bool(self.min_task_member) and self.min_member >= sum(self.min_task_member.values())

    @property
    def made_for(self) -> str:
        """Whom a controller made its group for, "Pod train-0"; "" where people have named it."""
        owners = () if self.group is None else self.group.metadata.owner_references
        return next((f"{owner.kind} {owner.name}" for owner in owners if owner.controller), "")

    def counts_of(self, role: str | None = None) -> list[int]:
        """Tasks by status, of all roles or of *role* ("" for tasks that name none)."""
        if role is None:
            return self.counts
        if role:
            return self.role_counts.get(role) or no_counts()
        columns = zip(self.counts, *self.role_counts.values(), strict=True)
        return [total - sum(named) for total, *named in columns]

    def allocated(self, role: str | None = None) -> int:
        """Tasks that hold a node for good (not releasing), of all roles or of *role*."""
        if role is None:
            return self.standing
        counts = self.counts_of(role)
        return sum(counts[status] for status in _ALLOCATED)

    def ready(self, role: str | None = None) -> int:
        """Volcano's ready count: allocated plus succeeded."""
        return self.allocated(role) + self.counts_of(role)[_SUCCEEDED]

    def waiting(self, role: str | None = None) -> int:
        """Tasks promised room that is being released."""
        return self.counts_of(role)[Status.PIPELINED]

    def count(self, status: Status, role: str | None = None) -> int:
        """Tasks in *status*, of all roles or of *role*."""
        return self.counts_of(role)[status]


class JobTable(Rows):
    """All jobs.

    Attributes:
        allocated: (J, R) charges of tasks in an allocated status (drf's share).
        with_pending, gate_waiting, homeless, changed: rows of jobs with pending tasks; in phase
            Pending; naming a queue that does not exist; touched since the last close. Kept up to
            date so that an idle cycle looks at nobody.
        epoch: changes whenever what a PodGroup (or its priority class) says may have changed.
    """

    COLUMNS: ClassVar = {"allocated": Column(np.int64, per_resource=True)}
    allocated: Ints

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.index: dict[str, int] = {}
        self.jobs: list[Job | None] = []
        self.with_pending: set[int] = set()
        self.gate_waiting: set[int] = set()
        self.homeless: set[int] = set()
        self.changed: set[int] = set()
        self.epoch = 0

    def __getitem__(self, row: int) -> Job:
        found = self.jobs[row]
        if found is None:
            raise KeyError(row)
        return found

    def named(self, key: str) -> Job | None:
        """The job of PodGroup *key* ("namespace/name"), if known."""
        row = self.index.get(key)
        return None if row is None else self.jobs[row]

    def take(self, key: str) -> Job:
        """The job called *key*, made if it is new."""
        known = self.named(key)
        if known is not None:
            return known
        namespace, _, name = key.partition("/")
        row = self.take_row()
        job = Job(row, key, namespace, name)
        put_at(self.jobs, row, job)
        self.index[key] = row
        return job

    def each(self, rows: Rows32, read: Callable[[Job], int], otherwise: int) -> Ints:
        """(T,) *read* of the job at each of *rows* (T,), asked once a job; *otherwise* at ``NOWHERE``."""
        known, where = np.unique(rows, return_inverse=True)
        values = [otherwise if row == NOWHERE else read(self[row]) for row in known.tolist()]
        return np.array(values, np.int64)[where]

    def live(self) -> list[Job]:
        """All jobs, by key."""
        return [self[self.index[key]] for key in sorted(self.index)]

    def drop(self, job: Job) -> None:
        """Forget *job*, which has neither a PodGroup nor tasks."""
        del self.index[job.key]
        self.jobs[job.row] = None
        for rows in (self.with_pending, self.gate_waiting, self.homeless, self.changed):
            rows.discard(job.row)
        self.give_back(job.row)
