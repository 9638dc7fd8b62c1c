"""What the engine wants done in the cluster, and what became of it.

Plain values: the run loop makes orders of decisions, the ``Writer`` carries them out, and every bind and
eviction ends in exactly one outcome. Status orders have none: they are repeated until written or until a
newer one takes their place. ``sayings`` makes those from what an object says already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "BindDone",
    "BindFailed",
    "BindOrder",
    "ClaimOrder",
    "EvictDone",
    "EvictFailed",
    "EvictOrder",
    "GroupOrder",
    "KeepOrder",
    "NominateOrder",
    "Note",
    "Order",
    "Outcome",
    "ProblemOrder",
    "QueueOrder",
    "RefusalOrder",
    "Subject",
    "Trouble",
]


@dataclass(frozen=True, slots=True)
class Subject:
    """An object by name and identity; the namespace is empty for kinds that have none."""

    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Note:
    """An event to be written about an object.

    Attributes:
        reason: one CamelCase word.
        message: for people; what lies beyond 1,024 characters is cut.
        action: what was done or tried, one CamelCase word.
    """

    reason: str
    message: str
    warning: bool = False
    action: str = "Scheduling"


@dataclass(frozen=True, slots=True)
class ClaimOrder:
    """A claim that has to be bound before its pod (``WaitForFirstConsumer``).

    Attributes:
        name: the claim, in the pod's namespace.
        volume: the volume chosen for it; "": its provisioner makes one on the pod's node.
        storage_class: its class, "" for none.
        provisioner: of that class.
    """

    name: str
    volume: str = ""
    storage_class: str = ""
    provisioner: str = ""


@dataclass(frozen=True, slots=True)
class PodOrder:
    """Something to be done with one pod, by name and identity."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        """``namespace/name`` of the pod."""
        return f"{self.namespace}/{self.name}"

    @property
    def subject(self) -> Subject:
        """The pod."""
        return Subject("Pod", self.namespace, self.name, self.uid)


@dataclass(frozen=True, slots=True)
class BindOrder(PodOrder):
    """Start a pod on a node.

    Attributes:
        annotations: ride on the Binding, so that the server writes them together with the node.
        group: "namespace/name" of its PodGroup, whose status waits until its binds are done; "" for none.
        claims: bound first.
    """

    node: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    claims: tuple[ClaimOrder, ...] = ()


@dataclass(frozen=True, slots=True)
class EvictOrder(PodOrder):
    """Let a pod go.

    Attributes:
        reason: the rule that allows it (``Decision.reason``).
        message: for people, "" has one made of the other fields.
        for_whom: the claimant, "namespace/name"; "" for none.
        lost: the work that is lost, as text.
        action: the action that decided (``reclaim``).
        notice_s: seconds between telling the pod and evicting it.
        delete: a plain delete, which no disruption budget can refuse.
        deadline: epoch seconds at which it is due, where the pod carries its notice already
            (``due_eviction``).
        group: the pod's PodGroup, which is told of it too.
    """

    reason: str = ""
    message: str = ""
    for_whom: str = ""
    lost: str = ""
    action: str = ""
    notice_s: float = 0.0
    delete: bool = False
    deadline: float | None = None
    group: Subject | None = None


@dataclass(frozen=True, slots=True)
class KeepOrder(PodOrder):
    """Withdraw the eviction of a pod, if it is still under notice; otherwise it is too late."""


@dataclass(frozen=True, slots=True)
class NominateOrder(PodOrder):
    """Write the node where room is kept for a waiting pod; "" takes it back."""

    node: str


@dataclass(frozen=True, slots=True)
class RefusalOrder(PodOrder):
    """Say on a pod why it waits: condition ``PodScheduled`` = False, and an event.

    Attributes:
        message: the refusal's sentence.
        reason: of the condition. Cluster autoscalers buy nodes for ``Unschedulable``, and for that alone.
        minor: only figures differ from what stands there; written when there is time, without an event.
        event: whether ``FailedScheduling`` is told too.
    """

    message: str
    reason: str = "Unschedulable"
    minor: bool = False
    event: bool = True


@dataclass(frozen=True, slots=True)
class GroupOrder:
    """Write a PodGroup's status.

    Attributes:
        status: the fields to write, as the API spells them; lists are whole.
        notes: events that belong to the change.
        minor: only figures of a message differ.
        blank_at: version of the object when it had no status; "": it has one.
    """

    namespace: str
    name: str
    uid: str
    status: Mapping[str, Any]
    notes: tuple[Note, ...] = ()
    minor: bool = False
    blank_at: str = ""

    @property
    def subject(self) -> Subject:
        """The PodGroup."""
        return Subject("PodGroup", self.namespace, self.name, self.uid)

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class QueueOrder:
    """Write a Queue's status; see ``GroupOrder``."""

    name: str
    uid: str
    status: Mapping[str, Any]
    blank_at: str = ""

    @property
    def subject(self) -> Subject:
        """The Queue."""
        return Subject("Queue", "", self.name, self.uid)


@dataclass(frozen=True, slots=True)
class ProblemOrder:
    """Say on an object what is wrong with it: condition ``volcano-py.io/Valid`` = False, and an event.

    Kinds without conditions get the event alone. Without problems the condition is taken back.

    Attributes:
        problems: one sentence each.
        used: the object could be read some way and counts; else it counts as absent.
        waits: an unreadable pod that waits for us: it gets ``PodScheduled`` = False, ``SchedulerError``
            as well.
    """

    subject: Subject
    problems: tuple[str, ...]
    used: bool = False
    waits: bool = False


Order = (
    BindOrder | EvictOrder | KeepOrder | NominateOrder | RefusalOrder | GroupOrder | QueueOrder | ProblemOrder
)

Trouble = Literal["gone", "refused", "volumes", "fenced", "closed", "cancelled", "fault"]
"""Why an order failed: the pod is gone or went elsewhere; the server refused; its claims were not bound; we
are not the leader any more; the writer was closed; the order was withdrawn; a fault of our own. ``refused``,
``volumes`` and ``fault`` are the pod's trouble and may come again: such a pod is tried later each time."""


@dataclass(frozen=True, slots=True)
class BindDone:
    """The server has the pod on *node*. ``seconds``: from submit to here."""

    key: str
    uid: str
    node: str
    group: str
    seconds: float


@dataclass(frozen=True, slots=True)
class BindFailed:
    """This order does not bind the pod, now or later. ``why`` in the server's words where it has some."""

    key: str
    uid: str
    node: str
    group: str
    why: str
    trouble: Trouble


@dataclass(frozen=True, slots=True)
class EvictDone:
    """The pod is on its way out, or gone."""

    key: str
    uid: str
    for_whom: str


@dataclass(frozen=True, slots=True)
class EvictFailed:
    """The pod stays; its marks are taken off."""

    key: str
    uid: str
    for_whom: str
    why: str
    trouble: Trouble


Outcome = BindDone | BindFailed | EvictDone | EvictFailed
