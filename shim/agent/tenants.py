"""Who holds slices on this node: what the keeper watches, limits and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from volcano_py.crds.annotations import GROUP, GROUP_QUEUE, JOB_QUEUE
from volcano_py.shim.agent.attribution import ContainerKey
from volcano_py.shim.agent.pods import Pod
from volcano_py.shim.agent.slices import Owner

_MIB: Final = 1 << 20


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
        holds: by UUID of the card or MIG instance, in the container's own order.
        queue, group: of its pod, "" without.
        priority: among those who share a card; lower goes first.
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


def tenants_of(
    owners: Iterable[Owner], pods: Mapping[str, Pod], region_of: Callable[[Owner], Path]
) -> tuple[Tenant, ...]:
    """The running containers that *owners* speak of.

    Left out are slices whose holder the kubelet has not told, and those whose container does not stand in its
    pod's status yet: nobody is held to what may be another one's.

    Args:
        owners: slices of this node; of one container and card the latest counts.
        pods: of this node, by UID.
        region_of: where an owner's region is.
    """
    found: dict[ContainerKey, Tenant] = {}
    for owner in sorted(owners, key=lambda each: each.sequence):
        pod = pods.get(owner.pod_uid)
        identity = _container_ids(pod).get(owner.container) if pod is not None else None
        if pod is not None and identity and owner.confirmed:
            made = _tenant(owner, pod, identity, region_of(owner) if owner.limited else None)
            known = found.get(made.key, made)
            found[made.key] = replace(made, holds={**known.holds, **made.holds})
    return tuple(found.values())


def _tenant(owner: Owner, pod: Pod, identity: str, region: Path | None) -> Tenant:
    notes = pod.metadata.annotations
    return Tenant(
        owner.pod_uid,
        identity,
        owner.namespace,
        owner.pod,
        owner.container,
        {share.uuid: Hold(share.memory_mib * _MIB, share.cores) for share in owner.shares},
        queue=notes.get(JOB_QUEUE, notes.get(GROUP_QUEUE, "")),
        group=notes.get(GROUP, ""),
        priority=owner.priority,
        region=region,
    )


def _container_ids(pod: Pod) -> dict[str, str]:
    """Ids of the runtime, by a container's name; a status says ``containerd://<id>``."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return {each.name: each.container_id.rpartition("://")[2] for each in statuses if each.container_id}
