"""One look at the node: what tenants hold of their cards, how they stand, what their libraries say.

What the decision is made from comes from the driver and the kernel. The regions, which containers can write,
are read for metrics alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from volcano_py.shim.agent.attribution import Attribution, ContainerKey, Use
from volcano_py.shim.agent.cgroup.errors import CgroupError
from volcano_py.shim.agent.cgroup.freezer import Freezer, State
from volcano_py.shim.agent.cgroup.names import ContainerCgroup
from volcano_py.shim.agent.overuse import Held, Memories, Seen, Standing
from volcano_py.shim.agent.readings import Reading
from volcano_py.shim.agent.region import Region, RegionError, read
from volcano_py.shim.agent.tenants import Tenant


@dataclass(frozen=True, slots=True)
class Look:
    """The node at one moment.

    Attributes:
        at_s: of the clock that decides.
        tenants: who holds slices.
        readings: of the cards.
        attribution: who is on them.
        cgroups: containers of pods, by key.
        regions: what libraries say, by key; who has none, or none that can be read, is missing.
        memories: what is remembered of each since.
    """

    at_s: float = 0.0
    tenants: tuple[Tenant, ...] = ()
    readings: tuple[Reading, ...] = ()
    attribution: Attribution = field(default_factory=Attribution)
    cgroups: Mapping[ContainerKey, ContainerCgroup] = field(default_factory=dict)
    regions: Mapping[ContainerKey, Region] = field(default_factory=dict)
    standings: Mapping[ContainerKey, Standing] = field(default_factory=dict)
    memories: Memories = field(default_factory=dict)

    def seen(self) -> list[Seen]:
        """Every tenant, for the decision."""
        return [
            Seen(
                each,
                self.standings.get(each.key, Standing.ABSENT),
                {uuid: self.held(each, uuid) for uuid in each.holds},
            )
            for each in self.tenants
        ]

    def held(self, tenant: Tenant, uuid: str) -> Held:
        """What *tenant* holds of the card *uuid*; nothing is known of a card that did not answer."""
        if uuid not in self.attribution.read:
            return Held(None)
        use = self.attribution.uses.get(tenant.key, {}).get(uuid, Use(busy_percent=0))
        # With a process that the driver says nothing of, what is known is too little to be within a limit.
        limit = tenant.holds[uuid].memory_bytes
        known = not use.untold or use.memory_bytes > limit
        return Held(use.memory_bytes if known else None, use.busy_percent)


def standings(
    tenants: Iterable[Tenant], cgroups: Mapping[ContainerKey, ContainerCgroup], freezer: Freezer
) -> dict[ContainerKey, Standing]:
    """How each of *tenants* stands, as the kernel says."""
    return {each.key: _standing(cgroups.get(each.key), freezer) for each in tenants}


def _standing(cgroup: ContainerCgroup | None, freezer: Freezer) -> Standing:
    try:
        state = State.GONE if cgroup is None else freezer.state(cgroup)
        if cgroup is None or state is State.GONE:
            return Standing.ABSENT
        if state is State.THAWED:
            return Standing.RUNNING
        return Standing.FROZEN if freezer.is_ours(cgroup) else Standing.PAUSED
    except CgroupError:
        return Standing.ABSENT  # what may not be touched is not there for us


def read_regions(tenants: Sequence[Tenant]) -> tuple[dict[ContainerKey, Region], dict[ContainerKey, str]]:
    """What libraries say, and why some of it can't be read."""
    found, faults = {}, {}
    for each in tenants:
        if each.region is not None:
            try:
                found[each.key] = read(each.region)
            except RegionError as error:
                faults[each.key] = str(error)
    return found, faults
