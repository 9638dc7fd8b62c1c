"""Tasks: one row for every pod the scheduler must know of.

A task is a row number ``t``; what is read in bulk stands in columns, what is read by name in lists.
``pods`` writes rows from events; afterwards only ``accounts`` moves ``status`` and ``node``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.model.cards import CardChoice
from volcano_py.scheduler.model.kube.objects import Pod
from volcano_py.scheduler.model.resources import Ints, Mask, Rows32, Vocabulary
from volcano_py.scheduler.model.rows import Column, Rows

NOWHERE: Final = -1
"""``node``, ``job`` or ``klass`` of a task that has none."""


class Status(IntEnum):
    """Where a task stands (Volcano's task statuses)."""

    PENDING = 0
    ALLOCATED = 1
    """Placed in this cycle, not committed."""
    PIPELINED = 2
    """Placed on room that is still being released."""
    BINDING = 3
    """Bind decided, not confirmed yet."""
    BOUND = 4
    RUNNING = 5
    RELEASING = 6
    """On its node, on its way out."""
    SUCCEEDED = 7
    FAILED = 8
    UNKNOWN = 9


_STAYS: Final = (Status.ALLOCATED, Status.BINDING, Status.BOUND, Status.RUNNING)
ALLOCATED: Final[Mask] = np.isin(np.arange(len(Status)), _STAYS)
"""By status: Volcano's allocated-status."""
HOLDS_NODE: Final = tuple(s in (*_STAYS, Status.RELEASING, Status.UNKNOWN) for s in Status)
"""By status: the request is in the node's ``used``. A tuple, since it is asked for every batch."""
SCHEDULED: Final = (Status.BINDING, Status.BOUND, Status.RUNNING, Status.SUCCEEDED, Status.FAILED)
"""What PodGroup phases count as scheduled (decided binds included)."""


class TaskTable(Rows):
    """All tasks.

    Attributes:
        status: (T,) ``Status``.
        node: (T,) node row or ``NOWHERE``.
        job: (T,) job row or ``NOWHERE`` (pods of others, pods without a group).
        klass: (T,) task class row.
        priority: (T,) pod priority.
        created, started: (T,) epoch seconds; 0 where unknown.
        checkpoint: (T,) epoch seconds of the last checkpoint the pod reported, else 0.
        interruptible: (T,) may be a victim and may borrow (after pod, PodGroup, queue; resolved).
        critical: (T,) critical priority class: never a victim.
        system: (T,) in kube-system, which the plugin conformance protects.
        gated: (T,) has scheduling gates.
        min_run_s: (T,) seconds a task must have run before it may be a victim.
        best_effort: (T,) asks for no resource.
        profile: (T,) label profile (namespace and labels), see ``coupling``.
        keys: task -> "namespace/name".
        uids: task -> UID.
        roles: task -> ``volcano.sh/task-spec`` or "".
        slices: tasks that hold card slices -> their choice.
        nominated: pending tasks with a reservation from an earlier cycle -> node row.
        pods: task -> Pod object.
        index: "namespace/name" -> task.
    """

    COLUMNS: ClassVar = {
        "status": Column(np.int8),
        "node": Column(np.int32, NOWHERE),
        "job": Column(np.int32, NOWHERE),
        "klass": Column(np.int32, NOWHERE),
        "priority": Column(np.int64),
        "created": Column(np.float64),
        "started": Column(np.float64),
        "checkpoint": Column(np.float64),
        "interruptible": Column(np.bool_),
        "critical": Column(np.bool_),
        "system": Column(np.bool_),
        "gated": Column(np.bool_),
        "min_run_s": Column(np.float64),
        "best_effort": Column(np.bool_),
        "profile": Column(np.int32, NOWHERE),
    }
    status: NDArray[np.int8]
    node: Rows32
    job: Rows32
    klass: Rows32
    priority: Ints
    created: NDArray[np.float64]
    started: NDArray[np.float64]
    checkpoint: NDArray[np.float64]
    interruptible: Mask
    critical: Mask
    system: Mask
    gated: Mask
    min_run_s: NDArray[np.float64]
    best_effort: Mask
    profile: Rows32

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.index: dict[str, int] = {}
        self.keys: list[str] = []
        self.uids: list[str] = []
        self.roles: list[str] = []
        self.pods: list[Pod | None] = []
        self.slices: dict[int, CardChoice] = {}
        self.nominated: dict[int, int] = {}

    def take(self, key: str, uid: str, role: str) -> int:
        """A new pending task named *key* ("namespace/name")."""
        task = self.take_row()
        if task == len(self.keys):
            for names in (self.keys, self.uids, self.roles):
                names.append("")
            self.pods.append(None)
        self.keys[task], self.uids[task], self.roles[task] = key, uid, role
        self.index[key] = task
        return task

    def drop(self, task: int) -> None:
        """Forget *task*; the caller has taken it out of every account."""
        del self.index[self.keys[task]]
        self.keys[task] = self.uids[task] = self.roles[task] = ""
        self.pods[task] = None
        self.slices.pop(task, None)
        self.nominated.pop(task, None)
        self.give_back(task)
