"""Who holds slices on this node: what the keeper watches, limits and counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from volcano_py.shim.agent.attribution import ContainerKey


@dataclass(frozen=True, slots=True)
class Hold:
    """What a container may hold of one card.

    Attributes:
        memory_bytes: 0 is no limit.
        cores: percent, 0 is no limit.
    """

    memory_bytes: int = 0
    cores: int = 0


@dataclass(frozen=True, slots=True)
class Tenant:
    """A running container that holds slices.

    Attributes:
        pod_uid, container_id: which container it is; it is known by these.
        namespace, pod, container: how people call it.
        queue, group: of its pod, "" without.
        priority: among those who share a card; lower goes first.
        holds: by UUID of the card or MIG instance.
        region: the file that it shares with the agent, None without.
    """

    pod_uid: str
    container_id: str
    namespace: str
    pod: str
    container: str
    holds: Mapping[str, Hold]
    queue: str = ""
    group: str = ""
    priority: int = 1
    region: Path | None = None

    @property
    def key(self) -> ContainerKey:
        """As attribution names it."""
        return self.pod_uid, self.container_id

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.namespace}/{self.pod}/{self.container}"
