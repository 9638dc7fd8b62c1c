"""Pods that the cluster would not let us bind or evict: each failure lets more time pass before the next try.

Without that, a pod whose bind is refused every time would win the same room in every cycle and starve those
behind it, and a victim behind a disruption budget would be asked again and again. A held pod waits as if it
had a scheduling gate; a spared one is no victim. Time is the cycle's clock, so equal events make equal
states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.scheduler.model.tasks import Status

if TYPE_CHECKING:
    from volcano_py.scheduler.model.cluster import ClusterState
    from volcano_py.scheduler.model.resources import Rows32

FREE_FAILURES: Final = 1
"""Binds that may fail before the pod has to wait."""
FIRST_WAIT_S: Final = 5.0
LONGEST_WAIT_S: Final = 300.0
SPARED_S: Final = 120.0


@dataclass(slots=True)
class Hold:
    """One pod.

    Attributes:
        key: "namespace/name".
        failures: in a row.
        why: the last one's words.
        wait_s: how long it waits, from the next cycle on; 0: not at all.
        until: epoch seconds; None until a cycle has told the time.
    """

    key: str
    failures: int = 0
    why: str = ""
    wait_s: float = 0.0
    until: float | None = None


class Holds:
    """All of them, by UID.

    Attributes:
        binds: pods whose bind failed.
        evictions: pods whose eviction failed.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.binds: dict[str, Hold] = {}
        self.evictions: dict[str, Hold] = {}

    def bind_failed(self, task: int, why: str) -> None:
        """The bind of *task*, which is pending again, was refused."""
        hold = self._noted(self.binds, task, why)
        if hold.failures > FREE_FAILURES:
            hold.wait_s = min(FIRST_WAIT_S * 2.0 ** (hold.failures - FREE_FAILURES - 1), LONGEST_WAIT_S)
            self._gate(task, shut=True)

    def bind_done(self, uid: str) -> None:
        """The pod is bound: earlier failures are forgotten."""
        self.binds.pop(uid, None)

    def eviction_failed(self, task: int, why: str) -> None:
        """The eviction of *task*, which stays, was refused."""
        self._noted(self.evictions, task, why).wait_s = SPARED_S

    def is_held(self, uid: str) -> bool:
        """Whether the pod waits after failed binds."""
        hold = self.binds.get(uid)
        return hold is not None and hold.wait_s > 0

    def spared(self) -> Rows32:
        """Tasks that are no victims for now."""
        tasks = self._state.tasks
        rows = [tasks.index[hold.key] for hold in self.evictions.values() if hold.key in tasks.index]
        return np.array(rows, np.int32)

    def reasons(self, tasks: list[int]) -> list[tuple[int, str]]:
        """Those of *tasks* that are held, and why."""
        uids = self._state.tasks.uids
        return [
            (task, f"its bind failed {hold.failures} times and is tried again later: {hold.why}")
            for task in tasks
            if (hold := self.binds.get(uids[task])) is not None and hold.wait_s > 0
        ]

    def pass_time(self, now: float) -> None:
        """A cycle begins at *now* (epoch seconds): who has waited long enough is let go."""
        for uid, hold in list(self.binds.items()):
            task = self._task(uid, hold)
            if task is None:
                del self.binds[uid]
            elif self._is_over(hold, now):
                hold.wait_s, hold.until = 0.0, None
                self._gate(task, shut=False)
        for uid, hold in list(self.evictions.items()):
            if self._task(uid, hold) is None or self._is_over(hold, now):
                del self.evictions[uid]

    def next_due(self) -> float | None:
        """Epoch seconds at which the first of them has waited long enough; None where nobody waits."""
        due = [
            hold.until
            for holds in (self.binds, self.evictions)
            for hold in holds.values()
            if hold.until is not None
        ]
        return min(due, default=None)

    def _noted(self, holds: dict[str, Hold], task: int, why: str) -> Hold:
        tasks = self._state.tasks
        hold = holds.setdefault(tasks.uids[task], Hold(tasks.keys[task]))
        hold.failures += 1
        hold.why, hold.until = why, None
        return hold

    def _is_over(self, hold: Hold, now: float) -> bool:
        """Whether the wait has ended; it begins with the first cycle that is asked."""
        if hold.wait_s <= 0:
            return False
        latest = now + hold.wait_s  # the clock may have been set back since the wait began
        hold.until = latest if hold.until is None else min(hold.until, latest)
        return now >= hold.until

    def _task(self, uid: str, hold: Hold) -> int | None:
        tasks = self._state.tasks
        task = tasks.index.get(hold.key)
        return task if task is not None and tasks.uids[task] == uid else None

    def _gate(self, task: int, *, shut: bool) -> None:
        """Shut or open the gate of pending *task*; one with scheduling gates stays shut."""
        state = self._state
        pod = state.tasks.pods[task]
        shut = shut or (pod is not None and bool(pod.spec.scheduling_gates))
        if state.tasks.status[task] != Status.PENDING or bool(state.tasks.gated[task]) == shut:
            return
        batch = state.accounts.batch([task])
        state.accounts.book(batch, -1)
        state.tasks.gated[task] = shut
        state.accounts.book(batch, 1)
