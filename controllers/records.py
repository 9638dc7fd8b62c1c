"""What is kept of an object: the few fields that decide something, read once from the document.

A cluster may have 50,000 pods, so a pod that has its group keeps only names. Documents are what the server
sent; it has checked their types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from volcano_py.controllers import keys
from volcano_py.crds.annotations import GROUP

__all__ = [
    "READERS",
    "CommandRecord",
    "GroupRecord",
    "Identity",
    "Owner",
    "PodRecord",
    "QueueRecord",
    "Record",
    "WorkloadRecord",
]

Document = Mapping[str, Any]

_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_NOTHING: Final[Document] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Identity:
    """Which object, and which version of it.

    Attributes:
        namespace: empty for kinds that have none.
        version: resourceVersion as a number; larger is newer.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    version: int
    terminating: bool

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Owner:
    """An ownerReference, as far as it says where annotations come from."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PodRecord:
    """A pod of one of our schedulers.

    Attributes:
        group: the PodGroup it names; empty: none.
        own_group: the name that a PodGroup made for it has.
        owner: its controller.
        finished: no container will run again.
        revision: of the StatefulSet's template that it was made from.
        seed: what a PodGroup is made from, while the pod has none; None afterwards.
    """

    identity: Identity
    group: str
    own_group: str
    owner: Owner | None
    finished: bool
    revision: str
    seed: Document | None

    @property
    def is_live(self) -> bool:
        """Whether it runs or will run."""
        return not self.finished and not self.identity.terminating


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A PodGroup.

    Attributes:
        owner: its controller.
        made_from: the digest that we wrote; empty on those that somebody else made.
    """

    identity: Identity
    owner: Owner | None
    queue: str
    phase: str
    made_from: str


@dataclass(frozen=True, slots=True)
class WorkloadRecord:
    """A ReplicaSet or StatefulSet. *revision*: of the template that new pods are made from."""

    identity: Identity
    replicas: int
    revision: str
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class QueueRecord:
    """A Queue.

    Attributes:
        state: as its status says; empty: none written yet.
        closed_by_parent: it was closed with its parent and opens with it.
        counts: PodGroups by phase, as its status says.
    """

    identity: Identity
    parent: str
    state: str
    closed_by_parent: bool
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CommandRecord:
    """An order to a queue. *queue_uid* may be empty: any queue of that name."""

    identity: Identity
    created: str
    action: str
    queue: str
    queue_uid: str
    message: str


Record = PodRecord | GroupRecord | WorkloadRecord | QueueRecord | CommandRecord

PHASES: Final = ("pending", "running", "inqueue", "unknown", "completed")


def controller_of(document: Document) -> Owner | None:
    """The owner that controls the object; None where none does."""
    for owner in owners_of(document):
        if owner.get("controller"):
            return Owner(owner["kind"], owner["name"], owner["uid"])
    return None


def owners_of(document: Document) -> list[Document]:
    """Its ownerReferences."""
    return document["metadata"].get("ownerReferences") or []


def annotations_of(document: Document) -> Mapping[str, str]:
    """Its annotations."""
    return document["metadata"].get("annotations") or {}


def labels_of(document: Document) -> Mapping[str, str]:
    """Its labels."""
    return document["metadata"].get("labels") or {}


def _identity(kind: str, document: Document) -> Identity:
    meta = document["metadata"]
    return Identity(
        kind,
        meta.get("namespace") or "",
        meta["name"],
        meta["uid"],
        int(meta["resourceVersion"]),
        bool(meta.get("deletionTimestamp")),
    )


def _pod(document: Document) -> PodRecord:
    identity = _identity("Pod", document)
    owner = controller_of(document)
    group = annotations_of(document).get(GROUP, "")
    return PodRecord(
        identity,
        group=group,
        own_group=f"{keys.GROUP_PREFIX}{owner.uid if owner else identity.uid}",
        owner=owner,
        finished=(document.get("status") or {}).get("phase") in _FINISHED,
        revision=labels_of(document).get(keys.REVISION_HASH, ""),
        seed=None if group else seed_of(document),
    )


def seed_of(document: Document) -> Document:
    """All of a pod that a PodGroup is made from."""
    meta, spec = document["metadata"], document.get("spec") or {}
    kept_meta = ("name", "namespace", "uid", "labels", "annotations", "ownerReferences")
    kept_spec = ("priorityClassName", "overhead", "resources")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {key: meta[key] for key in kept_meta if key in meta},
        "spec": {key: spec[key] for key in kept_spec if key in spec}
        | {key: [_container(it) for it in spec.get(key) or ()] for key in ("containers", "initContainers")},
    }


def _container(container: Document) -> Document:
    kept = ("name", "resources", "restartPolicy")
    return {key: container[key] for key in kept if key in container}


def _group(document: Document) -> GroupRecord:
    return GroupRecord(
        _identity("PodGroup", document),
        owner=controller_of(document),
        queue=(document.get("spec") or {}).get("queue") or keys.DEFAULT_QUEUE,
        phase=(document.get("status") or {}).get("phase") or "",
        made_from=annotations_of(document).get(keys.MADE_FROM, ""),
    )


def _workload(kind: str) -> Callable[[Document], WorkloadRecord]:
    def read(document: Document) -> WorkloadRecord:
        replicas = (document.get("spec") or {}).get("replicas")
        return WorkloadRecord(
            _identity(kind, document),
            replicas=1 if replicas is None else replicas,
            revision=(document.get("status") or {}).get("updateRevision") or "",
            annotations=dict(annotations_of(document)),
        )

    return read


def _queue(document: Document) -> QueueRecord:
    status = document.get("status") or _NOTHING
    return QueueRecord(
        _identity("Queue", document),
        parent=(document.get("spec") or {}).get("parent") or keys.ROOT,
        state=status.get("state") or "",
        closed_by_parent=annotations_of(document).get(keys.CLOSED_BY_PARENT) == "true",
        counts={phase: status.get(phase) or 0 for phase in PHASES},
    )


def _command(document: Document) -> CommandRecord | None:
    target = document.get("target") or _NOTHING
    group = (target.get("apiVersion") or "").partition("/")[0]
    if target.get("kind") != "Queue" or group != "scheduling.volcano.sh":
        return None
    return CommandRecord(
        _identity("Command", document),
        created=document["metadata"].get("creationTimestamp") or "",
        action=document.get("action") or "",
        queue=target.get("name") or "",
        queue_uid=target.get("uid") or "",
        message=document.get("message") or "",
    )


READERS: Final[Mapping[str, Callable[[Document], Record | None]]] = MappingProxyType(
    {
        "Pod": _pod,
        "PodGroup": _group,
        "ReplicaSet": _workload("ReplicaSet"),
        "StatefulSet": _workload("StatefulSet"),
        "Queue": _queue,
        "Command": _command,
    }
)
"""Kind -> document to record; None for a document that is no business of ours."""
