"""What is done next about a claim or a volume: a function of what is known.

One step at a time: once it is carried out the same question gives the next one, so that whoever starts anew
goes on where the last one stopped. A claim ends Bound, with its volume; a volume whose claim is gone ends by
its reclaim policy.

Sources: the API documentation of PersistentVolume(Claim) and StorageClass; annotations and their order as
Kubernetes' volume controller and external provisioners write them (1.36).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from volcano_py.scheduler.model.storage import BIND_COMPLETED, DEFAULT_CLASS, SELECTED_NODE
from volcano_py.simulator.telling import NORMAL, WARNING
from volcano_py.simulator.volumes.known import CLAIM, VOLUME, Document, Key, Known, key_of, owner_of

PROVISIONER: Final = "volcano-py.io/pretend"
BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
MADE_BY: Final = ("volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner")
"""On a claim: who makes its volume. Kubernetes writes both."""
_HOST: Final = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Change:
    """A merge patch of *document*, or of its status.

    Attributes:
        ask: what has to be asked of the server first: news of claims and of volumes come on different
            watches, and what is given up here can't be taken back.
    """

    document: Document
    patch: Document
    sub: str = ""
    ask: Key | None = None


@dataclass(frozen=True, slots=True)
class Provision:
    """Make *volume* for *claim*, on *node* unless that is ""."""

    claim: Document
    volume: Document
    node: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete *volume*."""

    volume: Document


Step = Change | Provision | Remove


class Told(NamedTuple):
    """Why a claim waits: type, reason and message of an event. Reasons are Kubernetes'."""

    kind: str
    reason: str
    message: str


def next_step(known: Known, key: Key) -> Step | None:
    """What is to be done about a claim or a volume; None: nothing, until something changes."""
    kind, name = key
    document = known.of(kind).get(name)
    if document is None:
        return None
    return _claim_step(known, document) if kind == CLAIM else _volume_step(known, document)


def why_waiting(known: Known, claim: Document) -> Told | None:
    """Why there is nothing to do for *claim*, which has no volume; None: it has one, or named one."""
    spec = claim["spec"]
    if spec.get("volumeName") or "deletionTimestamp" in claim["metadata"]:
        return None
    name = spec.get("storageClassName") or ""
    kind = known.classes.get(name)
    if kind is None:
        lacks = f'there is no storage class "{name}"' if name else "it names no storage class"
        return Told(
            WARNING, "ProvisioningFailed" if name else "FailedBinding", f"no free volume suits, and {lacks}"
        )
    if _waits_for_pod(kind) and not _notes(claim).get(SELECTED_NODE):
        return Told(
            NORMAL, "WaitForFirstConsumer", "its volume comes when a pod that uses it is given a node"
        )
    if kind["provisioner"] != PROVISIONER:
        served = f"here only those of {PROVISIONER} are made"
        return Told(
            NORMAL, "ExternalProvisioning", f"waits for a volume from {kind['provisioner']}; {served}"
        )
    return Told(WARNING, "ProvisioningFailed", "a volume that has to match labels can't be made")


def playground_class(name: str) -> Document:
    """A storage class of ours, the default one: volumes are made where their pod goes."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": {DEFAULT_CLASS: "true"}},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def on_node(volume: Document, node: Document) -> Document:
    """*volume*, to be reached from *node* alone; a node without a host name can't be told from others."""
    host = (node["metadata"].get("labels") or {}).get(_HOST)
    if host is None:
        return volume
    only = {"matchExpressions": [{"key": _HOST, "operator": "In", "values": [host]}]}
    return {
        **volume,
        "spec": {**volume["spec"], "nodeAffinity": {"required": {"nodeSelectorTerms": [only]}}},
    }


# -- claims -------------------------------------------------------------------------------------


def _claim_step(known: Known, claim: Document) -> Step | None:
    spec, named = claim["spec"], claim["spec"].get("volumeName")
    if named and BIND_COMPLETED in _notes(claim):
        return _stay_bound(known, claim, named)
    if "deletionTimestamp" in claim["metadata"]:
        return None
    volume = known.volumes.get(named) if named else _volume_for(known, claim)
    if volume is not None:
        return _bind(claim, volume) if _suits(known, volume, claim) else None
    if named:
        return None
    if spec.get("storageClassName") is None and (default := default_class(known)):
        return Change(claim, {"spec": {"storageClassName": default}})
    return _provision(known, claim)


def _stay_bound(known: Known, claim: Document, named: str) -> Step | None:
    """Complete what was begun; a claim whose volume is gone or another's is lost."""
    volume = known.volumes.get(named)
    if volume is not None and _owner_uid(volume) in ("", claim["metadata"]["uid"]):
        return _bind(claim, volume)
    if _phase(claim) == "Lost":
        return None
    return Change(claim, {"status": {"phase": "Lost"}}, "status", ask=(VOLUME, named))


def _volume_for(known: Known, claim: Document) -> Document | None:
    """The one that *claim* gets of those that are there: it names it, or is the smallest that suits."""
    for volume in known.kept_for(claim):
        if _owner_uid(volume) in ("", claim["metadata"]["uid"]):
            return volume
    kind = known.classes.get(claim["spec"].get("storageClassName") or "")
    if kind is not None and _waits_for_pod(kind):
        return None  # the scheduler chooses, since it knows the node
    free = [one for one in known.volumes.values() if not owner_of(one) and _suits(known, one, claim)]
    return min(free, key=lambda one: (known.offers[key_of(one)].capacity, key_of(one)), default=None)


def _bind(claim: Document, volume: Document) -> Step | None:
    """The next of four writes: volume to claim, its status, claim to volume, its status."""
    owner = volume["spec"].get("claimRef")
    if not _owner_uid(volume):
        notes = {} if owner else {BY_CONTROLLER: "yes"}
        return Change(volume, {"metadata": {"annotations": notes}, "spec": {"claimRef": _reference(claim)}})
    if _owner_uid(volume) != claim["metadata"]["uid"]:
        return None
    if _phase(volume) != "Bound":
        return Change(volume, {"status": {"phase": "Bound"}}, "status")
    name = volume["metadata"]["name"]
    if BIND_COMPLETED not in _notes(claim):
        notes = {BIND_COMPLETED: "yes"}
        notes |= {} if claim["spec"].get("volumeName") else {BY_CONTROLLER: "yes"}
        return Change(claim, {"metadata": {"annotations": notes}, "spec": {"volumeName": name}})
    if _phase(claim) == "Bound":
        return None
    shown = {key: volume["spec"][key] for key in ("accessModes", "capacity")}
    return Change(claim, {"status": {"phase": "Bound", **shown}}, "status")


def default_class(known: Known) -> str | None:
    """The class of claims that name none: the newest default, of several the first by name."""
    names = sorted(name for name, one in known.classes.items() if _notes(one).get(DEFAULT_CLASS) == "true")
    # Times as text: RFC 3339 in UTC and whole seconds, as servers write them.
    return max(names, key=lambda name: known.classes[name]["metadata"]["creationTimestamp"], default=None)


def _provision(known: Known, claim: Document) -> Step | None:
    """Have a volume made, if its class is ours and, where it waits for a pod, the node is chosen."""
    spec = claim["spec"]
    kind = known.classes.get(spec.get("storageClassName") or "")
    if kind is None or kind["provisioner"] != PROVISIONER or spec.get("selector"):
        return None  # which labels a volume would have to get a selector does not say
    node = _notes(claim).get(SELECTED_NODE, "") if _waits_for_pod(kind) else ""
    if _waits_for_pod(kind) and not node:
        return None
    maker = dict.fromkeys(MADE_BY, PROVISIONER)
    if not maker.items() <= _notes(claim).items():
        return Change(claim, {"metadata": {"annotations": maker}})
    return Provision(claim, _new_volume(claim, kind), node)


def _new_volume(claim: Document, kind: Document) -> Document:
    spec, name = claim["spec"], f"pvc-{claim['metadata']['uid']}"
    return {
        "apiVersion": "v1",
        "kind": VOLUME,
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": _reference(claim),
            "hostPath": {"path": f"/pretend/{name}", "type": "DirectoryOrCreate"},
            "persistentVolumeReclaimPolicy": kind.get("reclaimPolicy", "Delete"),
            "storageClassName": kind["metadata"]["name"],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
        },
    }


# -- volumes ------------------------------------------------------------------------------------


def _volume_step(known: Known, volume: Document) -> Step | None:
    if "deletionTimestamp" in volume["metadata"]:
        return None
    if not _owner_uid(volume):
        is_free = _phase(volume) == "Available"
        return None if is_free else Change(volume, {"status": {"phase": "Available"}}, "status")
    claim = known.claims.get(owner_of(volume))
    if claim is None or claim["metadata"]["uid"] != _owner_uid(volume):
        return _release(volume)
    if claim["spec"].get("volumeName", "") in ("", volume["metadata"]["name"]):
        return None  # the claim's steps complete it
    if BY_CONTROLLER in _notes(volume):
        return Change(
            volume, {"metadata": {"annotations": {BY_CONTROLLER: None}}, "spec": {"claimRef": None}}
        )
    return _release(volume)


def _release(volume: Document) -> Step | None:
    """Its claim has no use for it any more."""
    if _phase(volume) != "Released":
        return Change(volume, {"status": {"phase": "Released"}}, "status", ask=(CLAIM, owner_of(volume)))
    is_ours = _notes(volume).get(PROVISIONED_BY, PROVISIONER) == PROVISIONER
    is_to_go = volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
    return Remove(volume) if is_ours and is_to_go else None


# -- what documents say -------------------------------------------------------------------------


def _suits(known: Known, volume: Document, claim: Document) -> bool:
    """By size, class, modes and labels; what can't be read suits nobody."""
    offer, asked = known.offers.get(key_of(volume)), known.asks.get(key_of(claim))
    if offer is None or asked is None or "deletionTimestamp" in volume["metadata"]:
        return False
    return offer.suits(asked, asked.storage_class or "")


def _notes(document: Document) -> dict[str, str]:
    return document["metadata"].get("annotations") or {}


def _phase(document: Document) -> str:
    return str((document.get("status") or {}).get("phase", ""))


def _waits_for_pod(kind: Document) -> bool:
    return bool(kind.get("volumeBindingMode") == "WaitForFirstConsumer")


def _owner_uid(volume: Document) -> str:
    """Identity of the claim that has *volume*, "" where it is nobody's, or kept for a name."""
    return str((volume["spec"].get("claimRef") or {}).get("uid", ""))


def _reference(claim: Document) -> Document:
    identity = {key: claim["metadata"][key] for key in ("namespace", "name", "uid")}
    return {"apiVersion": "v1", "kind": CLAIM, **identity}
