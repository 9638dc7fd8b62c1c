"""``metadata``: what the server writes there, and what a client may."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from volcano_py.simulator.apiserver.schema.checks.causes import each, forbidden, invalid, required, shown
from volcano_py.simulator.apiserver.schema.checks.names import (
    label_faults,
    label_value_faults,
    qualified_faults,
    subdomain_faults,
)
from volcano_py.simulator.apiserver.schema.kinds import Cause, ServedKind
from volcano_py.simulator.apiserver.status import Document

_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_GENERATED: Final = 63 - 5
_MOST_ANNOTATION_BYTES: Final = 256 << 10

_LABEL_NAMED: Final = frozenset(["namespaces", "services"])
_BARE_FINALIZERS: Final = frozenset(
    ["foregroundDeletion", "orphan", "kubernetes", "customresourcecleanup.apiextensions.k8s.io"]
)
_PATH_NAMED_GROUP: Final = "rbac.authorization.k8s.io"
_KEPT_ON_UPDATE: Final = (
    "uid",
    "creationTimestamp",
    "generation",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def timestamp(seconds: float) -> str:
    """RFC 3339 in whole seconds, as the API writes times."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def generated_name(prefix: str) -> str:
    """A name that *prefix* asks for."""
    suffix = "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(5))
    return prefix[:_LONGEST_GENERATED] + suffix


def stamp_new(document: Document, kind: ServedKind, namespace: str, now: float) -> None:
    """Write what a new object gets from the server; what a client wrote there is dropped."""
    metadata: Document = document["metadata"]
    if kind.namespaced:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = timestamp(now)
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
        metadata.pop(name, None)


def carry_over(new: Document, old: Document) -> None:
    """Give *new* what a client can't change by writing."""
    mine, theirs = new["metadata"], old["metadata"]
    for name in _KEPT_ON_UPDATE:
        if name in theirs:
            mine[name] = theirs[name]
        else:
            mine.pop(name, None)
    if "namespace" in theirs:
        mine["namespace"] = theirs["namespace"]
    if "generateName" in theirs:
        mine.setdefault("generateName", theirs["generateName"])
    if "managedFields" not in mine and "managedFields" in theirs:
        mine["managedFields"] = theirs["managedFields"]


def check_metadata(kind: ServedKind, document: Document) -> list[Cause]:
    """What is wrong with the metadata of an object to be kept."""
    metadata = document["metadata"]
    return [
        *_check_name(kind, metadata),
        *_check_labels(metadata.get("labels") or {}),
        *_check_annotations(metadata.get("annotations") or {}),
        *_check_owners(metadata.get("ownerReferences") or []),
        *_check_finalizers(metadata.get("finalizers") or []),
    ]


def check_metadata_update(new: Document, old: Document) -> list[Cause]:
    """What a client changed in the metadata and may not."""
    mine, theirs = new["metadata"], old["metadata"]
    causes = [
        invalid(f"metadata.{name}", mine[name], "field is immutable")
        for name in ("name", "namespace", "uid", "creationTimestamp")
        if mine.get(name) not in (None, "", theirs.get(name))
    ]
    if theirs.get("deletionTimestamp"):
        added = [one for one in mine.get("finalizers") or [] if one not in (theirs.get("finalizers") or [])]
        if added:
            listed = ", ".join(shown(one) for one in added)
            why = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}"
            )
            causes.append(forbidden("metadata.finalizers", why))
    return causes


def _check_name(kind: ServedKind, metadata: Document) -> Iterator[Cause]:
    prefix, name = metadata.get("generateName") or "", metadata.get("name") or ""
    if prefix:
        yield from each("metadata.generateName", prefix, _name_faults(kind, _without_dash(prefix)))
    if name:
        yield from each("metadata.name", name, _name_faults(kind, name))
    elif not prefix:
        yield required("metadata.name", "name or generateName is required")


def _without_dash(prefix: str) -> str:
    """A prefix may end with the dash that stands before what is generated."""
    return prefix[:-1] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def _name_faults(kind: ServedKind, name: str) -> list[str]:
    if kind.group == _PATH_NAMED_GROUP:
        if name in (".", ".."):
            return [f"may not be '{name}'"]
        return [f"may not contain '{sign}'" for sign in "/%" if sign in name]
    return label_faults(name) if kind.bucket in _LABEL_NAMED else subdomain_faults(name)


def _check_labels(labels: Document) -> Iterator[Cause]:
    for key, value in labels.items():
        yield from each("metadata.labels", key, qualified_faults(key))
        yield from each("metadata.labels", value, label_value_faults(str(value)))


def _check_annotations(annotations: Document) -> Iterator[Cause]:
    for key in annotations:
        yield from each("metadata.annotations", key, qualified_faults(key.lower()))
    size = sum(len(key.encode()) + len(str(value).encode()) for key, value in annotations.items())
    if size > _MOST_ANNOTATION_BYTES:
        why = f"Too long: may not be more than {_MOST_ANNOTATION_BYTES} bytes"
        yield Cause("FieldValueTooLong", why, "metadata.annotations")


def _check_owners(owners: list[Document]) -> Iterator[Cause]:
    for owner in owners:
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                why = "version must not be empty" if name == "apiVersion" else "must not be empty"
                yield invalid(f"metadata.ownerReferences.{name}", owner.get(name) or "", why)
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        first, second = (f"{owner.get('kind')}/{owner.get('name')}" for owner in controllers[:2])
        why = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{first} and {second}"
        )
        yield invalid("metadata.ownerReferences", owners, why)


def _check_finalizers(finalizers: list[str]) -> Iterator[Cause]:
    for number, finalizer in enumerate(finalizers):
        field = f"metadata.finalizers[{number}]"
        faults = qualified_faults(finalizer)
        if not faults and "/" not in finalizer and finalizer not in _BARE_FINALIZERS:
            faults = ["name is neither a standard finalizer name nor is it fully qualified"]
        yield from each(field, finalizer, faults)
