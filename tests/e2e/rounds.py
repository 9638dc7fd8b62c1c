"""Rounds of work and trouble on a live cluster: what is asked for is drawn, what may not be is checked."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

from tests.e2e import objects
from tests.e2e.cluster import Cluster

NODES = 6
NODE_CPU = 8


@dataclass
class Rounds:
    """A cluster that lives.

    Attributes:
        cluster: where.
        dice: what is drawn comes from here; its seed is printed by the test.
        gangs: those that exist: name -> members.
    """

    cluster: Cluster
    dice: random.Random
    gangs: dict[str, int] = field(default_factory=dict)
    _made: int = 0

    def prepare(self) -> None:
        """Nodes and two queues, one of them capped."""
        self.cluster.default_queue()
        self.cluster.nodes(NODES, cpu=str(NODE_CPU))
        self.cluster.create(objects.queue("capped", capability={"cpu": "12"}))

    def happen(self) -> None:
        """Something that users do: gangs come and go."""
        for _ in range(self.dice.randint(1, 3)):
            self._submit()
        while sum(self.gangs.values()) > NODES * NODE_CPU * 0.8:
            self._remove(self.dice.choice(sorted(self.gangs)))

    def begin(self) -> None:
        """Something happens, and the scheduler, which may take long to start, is at work."""
        self.happen()
        self.cluster.until(self.cluster.bound, within_s=300.0, what="the first bind")

    def check(self) -> None:
        """What holds at any moment, even with the scheduler dead in the middle of a gang."""
        self.cluster.assert_never_too_much()

    def settle(self, within_s: float = 180.0) -> None:
        """Wait until nothing changes any more; then every gang is whole or not there at all."""
        until, before, quiet = time.monotonic() + within_s, "", 0
        while quiet < 6:
            assert time.monotonic() < until, f"the cluster does not come to rest: {before}"
            now = str(sorted(self.cluster.bound().items()))
            quiet = quiet + 1 if now == before and self.all_decided() else 0
            before = now
            time.sleep(0.25)
        self.cluster.assert_sound()

    def all_decided(self) -> bool:
        """Every gang stands whole or not at all."""
        bound = self.cluster.bound()
        stands = {name: sum(pod.startswith(f"{name}-") for pod in bound) for name in self.gangs}
        return all(stands[name] in (0, members) for name, members in self.gangs.items())

    def _submit(self) -> None:
        self._made += 1
        name, members = f"g{self._made}", self.dice.randint(1, 6)
        queue = self.dice.choice(("default", "default", "capped"))
        self.gangs[name] = members
        self.cluster.create(*objects.gang(self.cluster.space, name, members, queue=queue))

    def _remove(self, name: str) -> None:
        for number in range(self.gangs.pop(name)):
            self.cluster.delete("Pod", f"{self.cluster.space}/{name}-{number}", grace_s=0)
        self.cluster.delete("PodGroup", f"{self.cluster.space}/{name}")
