"""Carries out what was decided about containers: stops, lets go, ends, holds launches.

Every act stands alone: one that fails keeps no other from being done. Acts block for as long as the kernel
does, so they are done in a thread; ``close`` makes the end safe against one that is under way there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from volcano_py.shim.agent import region
from volcano_py.shim.agent.attribution import ContainerKey
from volcano_py.shim.agent.cgroup.errors import CgroupError
from volcano_py.shim.agent.cgroup.freezer import Freezer, State
from volcano_py.shim.agent.cgroup.kill import Killer
from volcano_py.shim.agent.cgroup.names import ContainerCgroup
from volcano_py.shim.agent.overuse import Act, Kind
from volcano_py.shim.agent.region_layout import MOST_BLOCKED_NS

_FREEZE_S: Final = 0.2
"""How long a freeze is waited for; one that takes longer is seen to be under way at the next look."""
_THAW_S: Final = 2.0
_KILL_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Failed:
    """An act that could not be carried out."""

    act: Act
    error: str


class Hand:
    """The only one who changes how containers stand.

    Args:
        freezer: of the host.
        block_s: how long launches are held by one act; a little longer than until the next look. More than
            ``MOST_BLOCKED_NS`` is not believed, so no more is ever asked.
        clock: CLOCK_MONOTONIC in nanoseconds.
    """

    def __init__(
        self, freezer: Freezer, block_s: float, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.freezer = freezer
        self._killer = Killer(freezer)
        self._block_ns = min(int(block_s * 1e9), MOST_BLOCKED_NS)
        self._clock = clock
        self._lock = threading.Lock()
        self._closed = False
        self._log = structlog.get_logger()
        self.done: dict[Kind, int] = dict.fromkeys(Kind, 0)

    def carry_out(self, acts: Iterable[Act], cgroups: Mapping[ContainerKey, ContainerCgroup]) -> list[Failed]:
        """Do *acts* in their order, but for events, which others tell; those that failed."""
        failed = []
        for act in acts:
            with self._lock:
                if self._closed:
                    break
                error = self._tried(act, cgroups.get(act.tenant.key))
            if error:
                failed.append(Failed(act, error))
            else:
                self.done[act.kind] += 1
        return failed

    def let_go(self, cgroups: Iterable[ContainerCgroup]) -> list[str]:
        """Thaw those of *cgroups* that we stopped; what went wrong.

        For containers that are no tenants any more: of those nobody decides, and a frozen one of v1 can't
        even be ended by its runtime.
        """
        faults = []
        for cgroup in cgroups:
            try:
                if self.freezer.is_ours(cgroup):
                    self._log.info("container", act="thaw", of=cgroup.path, why="it holds no slice any more")
                    self.freezer.thaw(cgroup, _THAW_S)
            except CgroupError as error:
                faults.append(str(error))
        return faults

    def open(self) -> list[ContainerCgroup]:
        """Let go whom an earlier life left stopped. Raises ``CgroupError``."""
        return self.freezer.thaw_all(_THAW_S)

    def close(self) -> list[ContainerCgroup]:
        """Let everybody go and do nothing any more. Raises ``CgroupError`` where some may stay stopped."""
        with self._lock:
            self._closed = True
        return self.freezer.thaw_all(_THAW_S)

    def _tried(self, act: Act, cgroup: ContainerCgroup | None) -> str:
        """What went wrong with *act*; "" for nothing."""
        try:
            return self._do(act, cgroup)
        except (CgroupError, region.RegionError, OSError) as error:
            return str(error)

    def _do(self, act: Act, cgroup: ContainerCgroup | None) -> str:
        if act.kind is Kind.BLOCK:
            if act.tenant.region is None:
                return "it has no region, so its launches can't be held"
            region.block(act.tenant.region, self._clock() + self._block_ns)
        elif act.kind is not Kind.TELL and cgroup is not None:
            return self._stand(act, cgroup)
        return ""

    def _stand(self, act: Act, cgroup: ContainerCgroup) -> str:
        self._log.info("container", act=act.kind.name.lower(), of=act.tenant.name, why=act.text)
        if act.kind is Kind.FREEZE:
            self.freezer.freeze(cgroup, _FREEZE_S)
            return ""
        if act.kind is Kind.THAW:
            state = self.freezer.thaw(cgroup, _THAW_S)
            return "" if state in (State.THAWED, State.GONE) else f"it is still {state.value}"
        return "" if self._killer.kill(cgroup, _KILL_S) else "some of its processes are still there"
