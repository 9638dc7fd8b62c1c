"""Create, read, replace, patch and apply: what a write does to the store, whoever asks.

A write is one synchronous step, so nothing comes between reading the old object and keeping the new one.
Neighbours: ``incoming`` (bodies into documents), ``rules`` (which parts may change), ``ownership`` and
``apply`` (managedFields), ``deleting`` (everything that ends an object).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from volcano_py.simulator.apiserver import metadata as meta
from volcano_py.simulator.apiserver.admission import admit_new, tolerate
from volcano_py.simulator.apiserver.apply import apply_configuration
from volcano_py.simulator.apiserver.finishing import finish_new
from volcano_py.simulator.apiserver.incoming import complete, take_in, take_in_patched
from volcano_py.simulator.apiserver.ownership import own_update
from volcano_py.simulator.apiserver.patching import patched
from volcano_py.simulator.apiserver.pods import check_nomination
from volcano_py.simulator.apiserver.requests import Target, Write
from volcano_py.simulator.apiserver.rules import born_by_update, needs_version, prepare_create, prepare_update
from volcano_py.simulator.apiserver.schema.kinds import Cause, Invalid, ServedKind
from volcano_py.simulator.apiserver.status import (
    MODIFIED,
    Document,
    Refused,
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
    version_needed,
)
from volcano_py.simulator.apiserver.store import Item, Store

Clock = Callable[[], float]
_NAME_TRIES = 8


class Objects:
    """The objects of one store, as requests see them.

    Args:
        clock: seconds since the epoch.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock

    # reading

    def item(self, target: Target) -> Item:
        """What is kept at *target*.

        Raises:
            Refused: 404.
        """
        item = self.store.get(target.kind.bucket, target.namespace, target.name)
        if item is None:
            raise not_found(target.kind, target.name)
        return item

    def read(self, target: Target) -> Document:
        """The object, in the version that was asked for.

        Raises:
            Refused: 404.
        """
        return outward(target.kind, self.item(target))

    # writing

    def create(self, target: Target, document: Document, write: Write) -> Document:
        """Keep a new object; the answer is what is kept.

        Raises:
            Refused: 400, 403, 404, 409 or 422.
        """
        return self._create(target, take_in(target, document, write), write, entries=False)

    def replace(self, target: Target, document: Document, write: Write) -> Document:
        """Put *document* in the place of the object.

        Raises:
            Refused: 400, 404, 409 or 422.
        """
        document = take_in(target, document, write)
        if not document["metadata"].get("name"):
            raise bad_request(
                'the name of the object ("" based on URL) was undeterminable: name must be provided'
            )
        item = self.store.get(target.kind.bucket, target.namespace, target.name)
        if item is None and born_by_update(target.kind) and not document["metadata"].get("uid"):
            return self._create(target, document, write, entries=False)
        old = self.read(target)
        if needs_version(target.kind) and not document["metadata"].get("resourceVersion"):
            raise version_needed(target.kind, target.name)
        self._check_uid(target, document, old)
        return self.save(target, document, old, write)

    def patch(self, target: Target, media_type: str, patch: Any, write: Write) -> Document:
        """Change the object by a JSON, merge or strategic merge patch.

        Raises:
            Refused: 400, 404, 409, 415 or 422.
        """
        old = self.read(target)
        document = patched(target.kind, media_type, old, patch)
        take_in_patched(target, document, write)
        return self.save(target, document, old, write)

    def apply(self, target: Target, wanted: Document, write: Write) -> tuple[Document, bool]:
        """Server-side apply; and whether the object was made.

        Raises:
            Refused: 400, 404, 409 or 422.
        """
        if (wanted.get("metadata") or {}).get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        wanted = take_in(target, wanted, write)
        item = self.store.get(target.kind.bucket, target.namespace, target.name)
        if item is None:
            if target.subresource or wanted["metadata"].get("uid"):
                raise not_found(target.kind, target.name)
            return self._apply_new(target, wanted, write), True
        old = outward(target.kind, item)
        document = self._applied(target, old, wanted, write)
        return self.save(target, document, old, write, applied=True), False

    def save(
        self, target: Target, document: Document, old: Document, write: Write, *, applied: bool = False
    ) -> Document:
        """Keep *document* where *old* is, as far as the request may change it; no change, no new version.

        *applied* says that managedFields are already right.

        Raises:
            Refused: 409 or 422.
        """
        kind = target.kind
        self._check_version(target, document, old)
        # The status of a custom object is taken without its metadata, whatever that says.
        bare = kind.custom and target.subresource == "status"
        causes = [] if bare else meta.check_metadata_update(document, old)
        meta.carry_over(document, old)
        document = prepare_update(kind, document, old, target.subresource)
        complete(kind, document)
        if kind.bucket == "pods" and not target.subresource:
            tolerate(document.get("spec") or {})
        self._check(kind, document, old, target.subresource, causes)
        if not applied:
            own_update(kind, document, old, write.manager, target.subresource, self._now())
        document["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if _same(document, old):
            return old
        if write.dry_run:
            return document
        return self._keep(kind, document)

    def put(self, kind: ServedKind, document: Document) -> Document:
        """Keep a document that the server itself made out of a kept one, without asking anybody."""
        return self._keep(kind, document)

    # inside

    def _create(self, target: Target, document: Document, write: Write, *, entries: bool) -> Document:
        kind = target.kind
        if target.name:
            document["metadata"].setdefault("name", target.name)
        if document["metadata"].get("resourceVersion"):
            raise Refused(500, "", "resourceVersion should not be set on objects to be created")
        meta.stamp_new(document, kind, target.namespace, self.clock())
        self._name(kind, document)
        prepare_create(kind, document)
        complete(kind, document)
        if not entries:
            # What the server adds from here on has no owner.
            document["metadata"].pop("managedFields", None)
            own_update(kind, document, None, write.manager, "", self._now())
        admit_new(self.store, target, document)
        finish_new(kind.bucket, document)
        self._check(kind, document, None, target.subresource, [])
        self._check_free(kind, document)
        return document if write.dry_run else self._keep(kind, document)

    def _apply_new(self, target: Target, wanted: Document, write: Write) -> Document:
        made = self._applied(target, {"metadata": {}}, wanted, write)
        return self._create(target, copy.deepcopy(made), write, entries=True)

    def _applied(self, target: Target, old: Document, wanted: Document, write: Write) -> Document:
        return apply_configuration(
            target.kind,
            old,
            wanted,
            manager=write.manager,
            subresource=target.subresource,
            force=write.force,
            now=self._now(),
        )

    def _name(self, kind: ServedKind, document: Document) -> None:
        """Give a name to an object that asks for one."""
        metadata = document["metadata"]
        if metadata.get("name") or not metadata.get("generateName"):
            return
        for _ in range(_NAME_TRIES):
            metadata["name"] = meta.generated_name(metadata["generateName"])
            if self.store.get(kind.bucket, metadata.get("namespace") or "", metadata["name"]) is None:
                return

    def _check_free(self, kind: ServedKind, document: Document) -> None:
        metadata = document["metadata"]
        if self.store.get(kind.bucket, metadata.get("namespace") or "", metadata["name"]) is not None:
            raise already_exists(kind, metadata["name"])

    def _check(
        self,
        kind: ServedKind,
        document: Document,
        old: Document | None,
        subresource: str,
        causes: list[Cause],
    ) -> None:
        found = [*causes, *meta.check_metadata(kind, document)]
        try:
            kind.check(document, old, "" if subresource == "scale" else subresource)
        except Invalid as error:
            found.extend(error.causes)
        if kind.bucket == "pods" and old is not None:
            found.extend(check_nomination(document, old))
        if found:
            raise invalid(kind, document["metadata"].get("name") or "", dict.fromkeys(found))

    def _check_version(self, target: Target, document: Document, old: Document) -> None:
        asked = document["metadata"].get("resourceVersion")
        if asked and asked != old["metadata"]["resourceVersion"]:
            raise conflict(target.kind, target.name, MODIFIED)

    def _check_uid(self, target: Target, document: Document, old: Document) -> None:
        asked = document["metadata"].get("uid")
        kept = old["metadata"].get("uid")
        if asked and asked != kept:
            why = f"Precondition failed: UID in precondition: {asked}, UID in object meta: {kept}"
            raise conflict(target.kind, target.name, why)

    def _keep(self, kind: ServedKind, document: Document) -> Document:
        stored = kind.inward(document) if kind.converts else document
        metadata = stored["metadata"]
        if metadata.get("deletionTimestamp") and _may_go(kind, stored):
            space = metadata.get("namespace") or ""
            return outward(kind, self.store.remove(kind.bucket, space, metadata["name"], stored))
        return outward(kind, self.store.put(kind.bucket, stored))

    def _now(self) -> str:
        return meta.timestamp(self.clock())


def outward(kind: ServedKind, item: Item) -> Document:
    """A kept object as the version *kind* shows it; the caller may change it."""
    document = item.document()
    return kind.outward(document) if kind.converts else document


def _may_go(kind: ServedKind, document: Document) -> bool:
    """Whether nothing holds an object back whose deletion has begun."""
    metadata = document["metadata"]
    if kind.bucket == "namespaces" and (document.get("spec") or {}).get("finalizers"):
        return False
    return not metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds")


def _same(document: Document, old: Document) -> bool:
    """Whether nothing changed but, perhaps, times in managedFields."""
    if document == old:
        return True
    return _timeless(document) == _timeless(old)


def _timeless(document: Document) -> Document:
    metadata = dict(document["metadata"])
    entries = metadata.get("managedFields") or []
    metadata["managedFields"] = [{**entry, "time": ""} for entry in entries]
    return {**document, "metadata": metadata}
