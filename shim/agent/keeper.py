"""Keeps containers to their slices from outside: looks, shares out, decides, acts, and tells.

One round after the other, each in a thread, since driver and kernel may take their time. Nothing is kept on
disk: who is stopped bears a mark, and whoever starts lets all of them go first. So a keeper that ends,
however it does, leaves nobody stopped for longer than until the next one starts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pynvml
import structlog

from volcano_py.shim.agent.attribution import ContainerKey, HostProcesses, attribute
from volcano_py.shim.agent.cgroup.devices import CardFiles, DeviceGuard, card_files
from volcano_py.shim.agent.cgroup.errors import CgroupError, CgroupGone
from volcano_py.shim.agent.cgroup.freezer import Freezer
from volcano_py.shim.agent.cgroup.names import ROOTS, ContainerCgroup, Layout
from volcano_py.shim.agent.cgroup.namespace import join_host_cgroups
from volcano_py.shim.agent.cgroup.tree import find_tree
from volcano_py.shim.agent.hand import Hand
from volcano_py.shim.agent.look import Look, read_regions, standings
from volcano_py.shim.agent.overuse import Kind, Memories, decide
from volcano_py.shim.agent.policy import Policy
from volcano_py.shim.agent.processes import note_host_pids
from volcano_py.shim.agent.readings import Reading, read_cards
from volcano_py.shim.agent.tenants import Tenant

_BLOCK_ROUNDS: Final = 2.5
"""Launches are held for so many rounds, so that one late round lets nobody through."""
_MOST_EVENTS: Final = 100
"""Events that may be on their way at once."""
_LATE_ROUNDS: Final = 5.0
"""After so many rounds without one, what was seen last is no longer told."""


@dataclass(frozen=True, slots=True)
class Watch:
    """How and where it is kept.

    Attributes:
        policy: what is done.
        every_s: between two looks.
        guard: whether containers are held to the device files of their own cards.
        cgroups, proc, devices: where the host's are mounted.
        kubelet_roots: values of the kubelet's ``--cgroup-root``; "" is the top.
    """

    policy: Policy = field(default_factory=Policy)
    every_s: float = 2.0
    guard: bool = True
    cgroups: Path = Path("/sys/fs/cgroup")
    proc: Path = Path("/proc")
    devices: Path = Path("/dev")
    kubelet_roots: tuple[str, ...] = ROOTS


Event = tuple[Tenant, str, str]
"""About whom, reason, text."""
Tell = Callable[[Tenant, str, str], Coroutine[Any, Any, None]]
"""Writes an event."""


class Keeper:
    """Runs beside the rest of the agent.

    Args:
        watch: what to do.
        tenants: who holds slices now; asked in the event loop.
        tell: writes events.
        cards: reads the cards.

    Attributes:
        look: the latest.
        rounds, failures: how many there were.

    Raises ``CgroupError`` where the host's cgroups can't be used.
    """

    def __init__(
        self,
        watch: Watch,
        tenants: Callable[[], Sequence[Tenant]],
        tell: Tell,
        cards: Callable[[], tuple[Reading, ...]] = read_cards,
    ) -> None:
        self._watch, self._tenants, self._tell, self._cards = watch, tenants, tell, cards
        join_host_cgroups(watch.proc)
        tree = find_tree(watch.cgroups, watch.proc, Layout(watch.kubelet_roots))
        self._tree, self._processes = tree, HostProcesses(tree)
        self._guard = DeviceGuard(tree)
        self.hand = Hand(Freezer(tree), watch.every_s * _BLOCK_ROUNDS)
        self._log = structlog.get_logger()
        self._said: dict[tuple[str, str], str] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self.look = Look()
        self.rounds = 0
        self.failures = 0

    async def run(self) -> None:
        """Keep until cancelled; then everybody who was stopped runs again."""
        try:
            await asyncio.to_thread(self._thaw, self.hand.open)
            while True:
                await self.round()
                await asyncio.sleep(self._watch.every_s)
        finally:
            # Not in a thread: one may be held up in the driver, and this must not wait for it.
            self._thaw(self.hand.close)

    def _thaw(self, let_go: Callable[[], list[ContainerCgroup]]) -> None:
        try:
            join_host_cgroups(self._watch.proc)
            for cgroup in let_go():
                self._log.warning("thawed, an agent had stopped it", cgroup=cgroup.path)
        except CgroupError as error:
            self._log.error("not all could be thawed", error=str(error))

    async def round(self) -> None:
        """One look and what follows from it."""
        try:
            look, told = await asyncio.to_thread(self._round, tuple(self._tenants()), self.look.memories)
        except (CgroupError, OSError) as error:
            self._fault("node", "look", str(error))
            return
        self._fault("node", "look", "")
        self.look = look
        self.rounds += 1
        for event in told:
            self._tell_beside(event)

    def _tell_beside(self, event: Event) -> None:
        """Write *event* without waiting for it: whoever is stopped must not wait for an API server."""
        tenant, reason, text = event
        if len(self._telling) >= _MOST_EVENTS:
            self._log.warning("an event is left out, too many are on their way", of=tenant.name, said=text)
            return
        task = asyncio.get_running_loop().create_task(self._tell(tenant, reason, text))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def is_late(self, now_s: float) -> bool:
        """Whether the latest look is too old to be told."""
        return not self.rounds or now_s - self.look.at_s > _LATE_ROUNDS * self._watch.every_s

    # -- in the thread ------------------------------------------------------------------------------

    def _round(self, tenants: tuple[Tenant, ...], memories: Memories) -> tuple[Look, list[Event]]:
        join_host_cgroups(self._watch.proc)  # each thread has a view of its own
        look = self._look(tenants)
        self._forget(tenants, look.cgroups)
        memories, acts = decide(self._watch.policy, look.seen(), memories, look.at_s)
        for failed in self.hand.carry_out(acts, look.cgroups):
            self._fault(failed.act.tenant.name, failed.act.kind.name.lower(), failed.error)
        self._tried(self._note_numbers, look)
        if self._watch.guard:
            self._tried(self._hold_devices, look)
        told = [(act.tenant, act.reason, act.text) for act in acts if act.kind is Kind.TELL]
        return replace(look, memories=memories), told

    def _forget(self, tenants: Sequence[Tenant], cgroups: Mapping[ContainerKey, ContainerCgroup]) -> None:
        """Who holds no slice any more is let go, and what was said of it may be said again."""
        keys, names = {each.key for each in tenants}, {each.name for each in tenants} | {"node", "driver"}
        gone = [cgroup for key, cgroup in cgroups.items() if key not in keys]
        self._fault("node", "no tenants", "; ".join(self.hand.let_go(gone)))
        self._said = {about: error for about, error in self._said.items() if about[0] in names}

    def _look(self, tenants: tuple[Tenant, ...]) -> Look:
        readings = self._read_cards()
        attribution = attribute(readings, self._processes.find)
        cgroups = self._tree.containers()
        regions, faults = read_regions(tenants)
        for each in tenants:
            self._fault(each.name, "region", faults.get(each.key, ""))
        return Look(
            time.monotonic(),
            tenants,
            readings,
            attribution,
            cgroups,
            regions,
            standings(tenants, cgroups, self.hand.freezer),
        )

    def _read_cards(self) -> tuple[Reading, ...]:
        try:
            readings = self._cards()
        except pynvml.NVMLError as error:
            self._fault("driver", "cards", str(error))
            return ()
        self._fault("driver", "cards", "; ".join(one.trouble for one in readings if one.trouble))
        return readings

    def _tried(self, work: Callable[[Look], None], look: Look) -> None:
        """Do *work*; where it can't be done, what was decided stays remembered all the same."""
        try:
            work(look)
            self._fault("node", work.__name__, "")
        except (CgroupError, OSError) as error:
            self._fault("node", work.__name__, str(error))

    def _note_numbers(self, look: Look) -> None:
        for each in look.tenants:
            if each.key in look.regions and each.key in look.cgroups:
                note_host_pids(each, look.regions[each.key], look.cgroups[each.key], self._tree)

    def _hold_devices(self, look: Look) -> None:
        """Who holds a card that did not tell its number is left as it is: nobody is kept from his own."""
        files = card_files(self._watch.devices)
        minors = {each.uuid: each.minor for each in look.readings if each.minor is not None}
        for tenant in look.tenants:
            own = [files[minors[uuid]] for uuid in tenant.holds if minors.get(uuid) in files]
            cgroup = look.cgroups.get(tenant.key)
            if cgroup is not None and len(own) == len(tenant.holds):
                self._hold(tenant, cgroup, CardFiles(frozenset(files.values()), frozenset(own)))

    def _hold(self, tenant: Tenant, cgroup: ContainerCgroup, files: CardFiles) -> None:
        try:
            self._guard.hold(cgroup, files)
            self._fault(tenant.name, "devices", "")
        except CgroupGone:
            return
        except CgroupError as error:
            self._fault(tenant.name, "devices", str(error))

    def _fault(self, whose: str, what: str, error: str) -> None:
        """Log *error* once for as long as it stays the same; "" says that all is well."""
        if error and self._said.get((whose, what)) != error:
            self._log.warning("keeping slices", of=whose, what=what, error=error)
        self.failures += bool(error)
        if error:
            self._said[whose, what] = error
        else:
            self._said.pop((whose, what), None)
