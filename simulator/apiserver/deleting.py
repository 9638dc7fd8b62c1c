"""Everything that ends an object: grace periods, finalizers, preconditions, collections.

A pod on a node gets a deletionTimestamp and stays until its kubelet deletes it with grace period 0; one on
no node goes at once. An object with finalizers stays until they are gone. What depends on the object is the
collector's business; the policy of a delete reaches it as a finalizer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from volcano_py.simulator.apiserver import metadata as meta
from volcano_py.simulator.apiserver.admission import IMMORTAL, NAMESPACES
from volcano_py.simulator.apiserver.objects import Objects, outward
from volcano_py.simulator.apiserver.pods import FINISHED
from volcano_py.simulator.apiserver.requests import BACKGROUND, FOREGROUND, ORPHAN, Deletion, Target
from volcano_py.simulator.apiserver.schema.kinds import ServedKind
from volcano_py.simulator.apiserver.status import Document, conflict, forbidden, success
from volcano_py.simulator.apiserver.store import Item

FOREGROUND_FINALIZER: Final = "foregroundDeletion"
ORPHAN_FINALIZER: Final = "orphan"
DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""Holds a definition until its objects are gone."""
_FINALIZER_OF: Final = {FOREGROUND: FOREGROUND_FINALIZER, ORPHAN: ORPHAN_FINALIZER}
_DYING: Final = {
    "type": "Terminating",
    "status": "True",
    "reason": "InstanceDeletionPending",
    "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
}
_ANSWERED_WITH_OBJECT: Final = frozenset(
    [
        "pods",
        "services",
        "serviceaccounts",
        "persistentvolumes",
        "persistentvolumeclaims",
        "podtemplates",
        "resourcequotas",
        "storageclasses.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
    ]
)
"""Kinds whose delete answers with the object that is gone, not with a Status."""


class Deleting:
    """Deletes objects of one store."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._store = objects.store

    def delete(self, target: Target, deletion: Deletion, *, dry_run: bool = False) -> Document:
        """Begin or finish the deletion of an object; the answer is what the client gets.

        Raises:
            Refused: 404, 409 for a precondition, 403 for what can't be deleted.
        """
        item = self._objects.item(target)
        self._check(target, item, deletion)
        last, gone = self._delete(target.kind, item, deletion, dry_run)
        if gone and target.kind.bucket not in _ANSWERED_WITH_OBJECT:
            return success(target.kind, item.name, item.uid)
        return last

    def delete_all(
        self, kind: ServedKind, items: Iterable[Item], deletion: Deletion, *, dry_run: bool = False
    ) -> None:
        """Delete a collection, as far as it is still what was listed."""
        for item in items:
            if self._store.get(kind.bucket, item.namespace, item.name) is item:
                self._delete(kind, item, deletion, dry_run)

    def _check(self, target: Target, item: Item, deletion: Deletion) -> None:
        kind = target.kind
        if kind.bucket == NAMESPACES and item.name in IMMORTAL:
            raise forbidden(kind, item.name, "this namespace may not be deleted")
        if deletion.uid and deletion.uid != item.uid:
            raise _precondition(
                kind,
                item.name,
                f"the UID in the precondition ({deletion.uid}) does not match the UID in record "
                f"({item.uid}). The object might have been deleted and then recreated",
            )
        if deletion.version and deletion.version != str(item.version):
            raise _precondition(
                kind,
                item.name,
                f"the ResourceVersion in the precondition ({deletion.version}) does not match the "
                f"ResourceVersion in record ({item.version}). The object might have been modified",
            )

    def _delete(
        self, kind: ServedKind, item: Item, deletion: Deletion, dry_run: bool
    ) -> tuple[Document, bool]:
        document = item.document()
        grace = grace_of(kind, document, deletion)
        finalizers = finalizers_after(document, deletion.policy)
        if kind.bucket == DEFINITIONS and not item.ending:
            finalizers = list(dict.fromkeys([*finalizers, CLEANUP]))
        stays = bool(finalizers) or grace > 0 or kind.bucket == NAMESPACES
        changed = self._begin(kind, document, grace, finalizers, stays)
        if dry_run:
            return document, not stays
        if not stays:
            return self._finish(kind, document, changed), True
        if changed:
            item = self._store.put(kind.bucket, document)
        return outward(kind, item), False

    def _begin(
        self, kind: ServedKind, document: Document, grace: int, finalizers: list[str], stays: bool
    ) -> bool:
        """Write the beginning of the end into *document*; whether that changed it."""
        metadata = document["metadata"]
        was = dict(metadata)
        if finalizers:
            metadata["finalizers"] = finalizers
        else:
            metadata.pop("finalizers", None)
        if (stays or kind.bucket == "pods") and self._shortens(metadata, grace):
            self._stamp(kind, metadata, grace)
        if kind.bucket == NAMESPACES:
            document.setdefault("status", {})["phase"] = "Terminating"
        elif kind.bucket == DEFINITIONS:
            condition = {**_DYING, "lastTransitionTime": metadata["deletionTimestamp"]}
            conditions = document.setdefault("status", {}).setdefault("conditions", [])
            if not any(one["type"] == condition["type"] for one in conditions):
                conditions.append(condition)
        return bool(metadata != was)

    def _stamp(self, kind: ServedKind, metadata: Document, grace: int) -> None:
        first = not metadata.get("deletionTimestamp")
        metadata["deletionTimestamp"] = meta.timestamp(self._objects.clock() + grace)
        if kind.bucket in (NAMESPACES, DEFINITIONS):
            return
        metadata["deletionGracePeriodSeconds"] = grace
        if first and metadata.get("generation"):
            metadata["generation"] += 1

    def _shortens(self, metadata: Document, grace: int) -> bool:
        """Whether a period of *grace* seconds, begun now, is news."""
        if not metadata.get("deletionTimestamp"):
            return True
        return grace < int(metadata.get("deletionGracePeriodSeconds") or 0)

    def _finish(self, kind: ServedKind, document: Document, changed: bool) -> Document:
        metadata = document["metadata"]
        space, name = metadata.get("namespace") or "", metadata["name"]
        if changed and kind.bucket == "pods":
            # Watches see the end of a pod begin before it is gone.
            document = self._store.put(kind.bucket, document).document()
        return outward(kind, self._store.remove(kind.bucket, space, name, document))


def grace_of(kind: ServedKind, document: Document, deletion: Deletion) -> int:
    """Seconds between the beginning and the end of a deletion; 0 for all but running pods."""
    if kind.bucket != "pods":
        return 0
    spec: Document = document.get("spec") or {}
    phase = (document.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in FINISHED:
        return 0
    if deletion.grace_s is not None:
        return max(deletion.grace_s, 0)
    return int(spec.get("terminationGracePeriodSeconds") or 0)


def finalizers_after(document: Document, policy: str) -> list[str]:
    """The finalizers of an object whose deletion is asked for with *policy*."""
    finalizers = list(document["metadata"].get("finalizers") or [])
    if policy == "":
        return finalizers
    kept = [one for one in finalizers if one not in _FINALIZER_OF.values()]
    return kept if policy == BACKGROUND else [*kept, _FINALIZER_OF[policy]]


def _precondition(kind: ServedKind, name: str, why: str) -> Exception:
    refused = conflict(kind, name, why)
    refused.message = f'Operation cannot be fulfilled on {kind.kind} "{name}": {why}'
    refused.details["kind"] = kind.kind
    return refused
