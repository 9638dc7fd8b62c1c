"""``metadata``: what the server writes there, and what a client may."""

from __future__ import annotations

import re
import secrets
import uuid
from datetime import UTC, datetime
from typing import Any, Final

from volcano_py.simulator.apiserver.schema.kinds import Cause, ServedKind
from volcano_py.simulator.apiserver.status import Document

_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_GENERATED: Final = 63 - 5
_MOST_ANNOTATION_BYTES: Final = 256 << 10

LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_RULE: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)

_LABEL_NAMED: Final = frozenset(["namespaces", "services"])
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


def invalid_value(value: Any, why: str, field: str) -> Cause:
    """The cause that says a value is wrong."""
    shown = f'"{value}"' if isinstance(value, str) else value
    return Cause("FieldValueInvalid", f"Invalid value: {shown}: {why}", field)


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
        invalid_value(mine[name], "field is immutable", f"metadata.{name}")
        for name in ("name", "namespace", "uid", "creationTimestamp")
        if mine.get(name) not in (None, "", theirs.get(name))
    ]
    if theirs.get("deletionTimestamp"):
        added = [one for one in mine.get("finalizers") or [] if one not in (theirs.get("finalizers") or [])]
        if added:
            listed = ", ".join(f'"{one}"' for one in added)
            why = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}"
            )
            causes.append(Cause("FieldValueForbidden", f"Forbidden: {why}", "metadata.finalizers"))
    return causes


def _check_name(kind: ServedKind, metadata: Document) -> list[Cause]:
    name = metadata.get("name") or ""
    if not name:
        if not metadata.get("generateName"):
            why = "Required value: name or generateName is required"
            return [Cause("FieldValueRequired", why, "metadata.name")]
        name, field = str(metadata["generateName"]) + "x", "metadata.generateName"
    else:
        field = "metadata.name"
    why = _name_fault(kind, name)
    return [invalid_value(metadata[field.partition(".")[2]], why, field)] if why else []


def _name_fault(kind: ServedKind, name: str) -> str:
    if kind.group == _PATH_NAMED_GROUP:
        if name in (".", ".."):
            return f"may not be '{name}'"
        return next((f"may not contain '{sign}'" for sign in "/%" if sign in name), "")
    if kind.bucket in _LABEL_NAMED:
        if len(name) > 63:
            return "must be no more than 63 bytes"
        return "" if LABEL.fullmatch(name) else LABEL_RULE
    if len(name) > 253:
        return "must be no more than 253 bytes"
    return "" if _SUBDOMAIN.fullmatch(name) else _SUBDOMAIN_RULE


def _check_labels(labels: Document) -> list[Cause]:
    causes = []
    for key, value in labels.items():
        if why := _key_fault(key):
            causes.append(invalid_value(key, why, "metadata.labels"))
        if not isinstance(value, str) or not _LABEL_VALUE.fullmatch(value):
            causes.append(invalid_value(value, _LABEL_VALUE_RULE, "metadata.labels"))
        elif len(value) > 63:
            causes.append(invalid_value(value, "must be no more than 63 bytes", "metadata.labels"))
    return causes


def _key_fault(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if slash and not _SUBDOMAIN.fullmatch(prefix):
        return f"prefix part {_SUBDOMAIN_RULE}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 bytes"
    return "" if _QUALIFIED.fullmatch(name) else _QUALIFIED_RULE


def _check_annotations(annotations: Document) -> list[Cause]:
    causes = [
        invalid_value(key, why, "metadata.annotations")
        for key in annotations
        if (why := _key_fault(key.lower()))
    ]
    size = sum(len(key.encode()) + len(str(value).encode()) for key, value in annotations.items())
    if size > _MOST_ANNOTATION_BYTES:
        why = f"Too long: may not be more than {_MOST_ANNOTATION_BYTES} bytes"
        causes.append(Cause("FieldValueTooLong", why, "metadata.annotations"))
    return causes


def _check_owners(owners: list[Document]) -> list[Cause]:
    causes = []
    for place, owner in enumerate(owners):
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                field = f"metadata.ownerReferences[{place}].{name}"
                why = "version must not be empty" if name == "apiVersion" else "must not be empty"
                causes.append(invalid_value(owner.get(name) or "", why, field))
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        first, second = controllers[0], controllers[1]
        why = (
            f'Only one reference can have Controller set to true. Found "true" in references for '
            f"{first.get('kind')}/{first.get('name')} and {second.get('kind')}/{second.get('name')}"
        )
        causes.append(invalid_value(owners, why, "metadata.ownerReferences"))
    return causes


def _check_finalizers(finalizers: list[str]) -> list[Cause]:
    bare = ("foregroundDeletion", "orphan", "kubernetes")
    causes = []
    for number, finalizer in enumerate(finalizers):
        field = f"metadata.finalizers[{number}]"
        if why := _key_fault(str(finalizer)):
            causes.append(invalid_value(finalizer, why, field))
        elif "/" not in finalizer and finalizer not in bare:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(invalid_value(finalizer, why, field))
    return causes
