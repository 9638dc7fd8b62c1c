"""A pod as a kubelet reads it: what it shall run, and what became of it.

Other fields than the scheduler's (``scheduler.model.kube.pod``): commands, times, restart policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

import msgspec

NO_STRINGS: Final[Mapping[str, str]] = MappingProxyType({})
ENDED: Final = frozenset({"Succeeded", "Failed"})


class _Part(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of all parts."""


class Metadata(_Part, frozen=True):
    """Identity, script annotations and the wish to be gone."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: Mapping[str, str] = NO_STRINGS
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None


class Resources(_Part, frozen=True):
    """Amounts by resource, as Kubernetes writes them."""

    requests: Mapping[str, Any] = NO_STRINGS
    limits: Mapping[str, Any] = NO_STRINGS


class Container(_Part, frozen=True):
    """A container and what it shall do; restart policy ``Always`` on an init container: a sidecar."""

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    restart_policy: str = ""
    resources: Resources = Resources()


class Spec(_Part, frozen=True):
    """Where the pod runs and what."""

    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    restart_policy: str = "Always"
    overhead: Mapping[str, Any] = NO_STRINGS
    resources: Resources = Resources()


class Running(_Part, frozen=True):
    """A container that runs."""

    started_at: datetime | None = None


class State(_Part, frozen=True):
    """What a container does, as far as it matters after a restart of the kubelet."""

    running: Running | None = None


class ContainerStatus(_Part, frozen=True):
    """One container's state."""

    name: str = ""
    state: State = State()


class Status(_Part, frozen=True):
    """What was written of the pod so far."""

    phase: str = "Pending"
    start_time: datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()


class PodView(_Part, frozen=True):
    """A pod."""

    metadata: Metadata
    spec: Spec = Spec()
    status: Status = Status()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def has_ended(self) -> bool:
        """Whether all its containers ended for good."""
        return self.status.phase in ENDED

    @property
    def acknowledged_s(self) -> float | None:
        """When its kubelet first saw it, seconds since the epoch."""
        seen = self.status.start_time
        return None if seen is None else seen.timestamp()

    @property
    def running_since_s(self) -> float | None:
        """When the last of its containers started, seconds since the epoch; None: it does not run."""
        if self.status.phase != "Running":
            return None
        starts = [status.state.running.started_at for status in self.status.container_statuses
                  if status.state.running is not None]  # fmt: skip
        known = [start.timestamp() for start in starts if start is not None]
        return max(known, default=self.acknowledged_s)

    @property
    def asked_to_leave_s(self) -> float | None:
        """When its deletion was asked for, seconds since the epoch; None: nobody did."""
        by = self.metadata.deletion_timestamp
        return None if by is None else by.timestamp() - self.grace_s

    @property
    def grace_s(self) -> float:
        """How long it may take to leave."""
        return float(self.metadata.deletion_grace_period_seconds or 0)


class _PodList(_Part, frozen=True):
    items: tuple[PodView, ...]


decode_pod: Final = msgspec.json.Decoder(PodView).decode
decode_pods: Final = msgspec.json.Decoder(_PodList).decode
