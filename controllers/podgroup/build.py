"""The PodGroup for a plain pod, as a document.

Which annotations and labels of the pod and its owner count follows Volcano's podgroup controller. What can't
be used is left out and named, so that its owner can be told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import msgspec

from volcano_py.controllers import keys
from volcano_py.controllers.podgroup.amounts import min_resources
from volcano_py.controllers.records import Document, annotations_of, controller_of, labels_of, owners_of
from volcano_py.crds.annotations import COOLDOWN, GROUP_QUEUE, PREEMPTABLE
from volcano_py.crds.messages import shown
from volcano_py.crds.quantity import whole_number
from volcano_py.scheduler.model.kube.objects import ObjectError, Pod, decode

__all__ = ["Draft", "Rules", "draft"]

_ANNOTATIONS: Final = (PREEMPTABLE, COOLDOWN, keys.REVOCABLE_ZONE)
_LABELS: Final = (PREEMPTABLE, COOLDOWN)


@dataclass(frozen=True, slots=True)
class Rules:
    """How pods become PodGroups.

    Attributes:
        inherit: whether annotations of ReplicaSets and the like count for their pods.
        default_queue: of pods that name none.
    """

    inherit: bool = True
    default_queue: str = keys.DEFAULT_QUEUE


@dataclass(frozen=True, slots=True)
class Draft:
    """A PodGroup to be made.

    Attributes:
        document: the whole object.
        doubts: what was left out of it and why, one sentence each.
    """

    document: Document
    doubts: tuple[str, ...]

    @property
    def made_from(self) -> str:
        """The digest of everything in it that follows from the pod and its owner."""
        digest: str = self.document["metadata"]["annotations"][keys.MADE_FROM]
        return digest

    @property
    def change(self) -> Document:
        """What brings an older PodGroup to this state."""
        meta = self.document["metadata"]
        return {
            "metadata": {"annotations": meta["annotations"], "labels": meta["labels"]},
            "spec": self.document["spec"],
        }


def draft(seed: Document, name: str, inherited: Mapping[str, str], default_queue: str) -> Draft:
    """The PodGroup *name* for the pod *seed*; *inherited*: annotations of its owners."""
    doubts: list[str] = []
    spec = _spec(seed, inherited, doubts)
    queue = annotations_of(seed).get(GROUP_QUEUE, default_queue)
    if GROUP_QUEUE in annotations_of(seed) or queue != keys.DEFAULT_QUEUE:  # what the CRD fills in
        spec["queue"] = queue
    meta = {
        "name": name,
        "namespace": seed["metadata"]["namespace"],
        "labels": _picked(labels_of(seed), _LABELS),
        "annotations": _annotations(annotations_of(seed), inherited),
    }
    digest = blake2b(msgspec.json.encode([spec, meta], order="deterministic"), digest_size=8).hexdigest()
    meta["annotations"] = {**meta["annotations"], keys.MADE_FROM: digest}
    meta["ownerReferences"] = _owner_references(seed)
    document = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": meta,
        "spec": spec,
        "status": {"phase": "Pending"},
    }
    return Draft(document, tuple(doubts))


def _spec(seed: Document, inherited: Mapping[str, str], doubts: list[str]) -> dict[str, Any]:
    annotations = annotations_of(seed)
    members = _min_member(inherited.get(keys.GROUP_MIN_MEMBER), doubts)
    spec: dict[str, Any] = {"minMember": members, "minResources": _min_resources(seed, members, doubts)}
    if seed["spec"].get("priorityClassName"):
        spec["priorityClassName"] = seed["spec"]["priorityClassName"]
    topology = _topology(annotations, doubts)
    if topology:
        spec["networkTopology"] = topology
    return spec


def _min_member(stated: str | None, doubts: list[str]) -> int:
    """As the owner's annotation says; 1 where it says nothing that can be used."""
    if stated is None:
        return 1
    members = whole_number(stated)
    if members is None or members < 0:
        doubts.append(
            f"the owner's annotation {keys.GROUP_MIN_MEMBER} must be a whole number from 0, not "
            f"{shown(stated)}; one pod is the minimum now"
        )
        return 1
    return members


def _min_resources(seed: Document, members: int, doubts: list[str]) -> dict[str, str]:
    try:
        pod = decode(seed)
        return min_resources(pod, members) if isinstance(pod, Pod) else {}
    except ObjectError as error:
        doubts.append(f"the gate asks for no resources, since the pod's can't be added up: {error}")
        return {}


def _topology(annotations: Mapping[str, str], doubts: list[str]) -> dict[str, Any]:
    """How far apart members may be; empty where no annotation says."""
    mode, tier = annotations.get(keys.TOPOLOGY_MODE), annotations.get(keys.TOPOLOGY_TIER)
    if mode is None and tier is None:
        return {}
    topology: dict[str, Any] = {"mode": "hard"}
    if mode is not None and mode.lower() in ("hard", "soft"):
        topology["mode"] = mode.lower()
    elif mode is not None:
        doubts.append(f"annotation {keys.TOPOLOGY_MODE} must be hard or soft, not {shown(mode)}; hard holds")
    highest = None if tier is None else whole_number(tier)
    if highest is not None and highest >= 0:
        topology["highestTierAllowed"] = highest
    elif tier is not None:
        doubts.append(f"annotation {keys.TOPOLOGY_TIER} must be a whole number from 0, not {shown(tier)}")
    return topology


def _annotations(own: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, str]:
    """The owners' of Volcano's prefix, then the pod's; of the two budgets the minimum wins."""
    found = {key: text for key, text in inherited.items() if key.startswith(keys.INHERITED_PREFIX)}
    found |= _picked(own, _ANNOTATIONS)
    for budget in (keys.MIN_AVAILABLE, keys.MAX_UNAVAILABLE):
        if budget in own:
            return found | {budget: own[budget]}
    return found


def _picked(source: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: source[name] for name in names if name in source}


def _owner_references(seed: Document) -> list[Document]:
    """The pod's owners where one controls it, else the pod: with them goes the group.

    None of them waits for the group when it is deleted in the foreground; that would need further rights.
    """
    if controller_of(seed) is not None:
        return [{**owner, "blockOwnerDeletion": False} for owner in owners_of(seed)]
    meta = seed["metadata"]
    pod = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    return [{**pod, "controller": True, "blockOwnerDeletion": False}]
