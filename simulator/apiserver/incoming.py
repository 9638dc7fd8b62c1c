"""A body into a document of its kind: names checked, unknown fields dropped, defaults filled in."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import yaml

from volcano_py.simulator.apiserver.defaults import fill_defaults
from volcano_py.simulator.apiserver.fieldsets import child_shape
from volcano_py.simulator.apiserver.protobuf.reading import PROTOBUF, read_protobuf
from volcano_py.simulator.apiserver.requests import IGNORE, STRICT, Target, Write
from volcano_py.simulator.apiserver.schema.kinds import ANY, Cause, Malformed, ServedKind, Shape
from volcano_py.simulator.apiserver.status import Document, Refused, bad_request, unsupported_media

JSON: Final = "application/json"
YAML: Final = "application/yaml"
_FIRST: Final = ("kind", "apiVersion", "metadata", "spec", "status")


def read_body(body: bytes, media_type: str, kind: ServedKind) -> Document:
    """The object in a body; *kind* is what it is expected to be.

    Raises:
        Refused: 400 for what can't be read, 415 for formats that are not taken.
    """
    if media_type == PROTOBUF:
        return read_protobuf(body, (kind.api_version, kind.kind))
    if media_type not in ("", JSON, YAML):
        raise unsupported_media([JSON, YAML, PROTOBUF])
    try:
        document = yaml.safe_load(body) if media_type == YAML else msgspec.json.decode(body)
    except (msgspec.DecodeError, yaml.YAMLError) as error:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): {error}"
        ) from error
    if not isinstance(document, dict):
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): it is no object"
        )
    return document


def take_in(target: Target, document: Document, write: Write) -> Document:
    """*document* as an object of the target's kind, without what the kind does not know.

    Raises:
        Refused: 400, for another kind, another name, fields of the wrong type, or (strictly) unknown ones.
    """
    kind = target.kind
    _check_kind(kind, document)
    document.update(kind=kind.kind, apiVersion=kind.api_version)
    metadata = document.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: no metadata'
        )
    _drop_unknown(kind, document, write)
    _check_names(target, metadata)
    return {name: document[name] for name in (*_FIRST, *document) if name in document}


def take_in_patched(target: Target, document: Document, write: Write) -> None:
    """Like ``take_in``, in place, for what a patch has made of the kept object.

    Raises:
        Refused: 400, or 422 for what is no object of the kind any more.
    """
    kind = target.kind
    metadata = document.get("metadata")
    if (document.get("kind"), document.get("apiVersion")) != (kind.kind, kind.api_version):
        raise _no_patch(document, f"it is no {kind.kind} of {kind.api_version} any more")
    if not isinstance(metadata, dict):
        raise _no_patch(document, "it has no metadata any more")
    _check_names(target, metadata)
    try:
        _drop_unknown(kind, document, write)
    except Refused as refused:
        raise _no_patch(document, refused.message) from refused


def _no_patch(document: Document, why: str) -> Refused:
    shown = msgspec.json.encode(msgspec.json.encode(document).decode()).decode()
    cause = Cause("FieldValueInvalid", f"Invalid value: {shown}: {why}", "patch")
    message = f' "" is invalid: patch: {cause.message}'
    return Refused(422, "Invalid", message, details={"causes": [cause._asdict()]})


def _drop_unknown(kind: ServedKind, document: Document, write: Write) -> None:
    """Take unknown fields out, and say so as the request wants it.

    Raises:
        Refused: 400.
    """
    try:
        dropped = kind.read(document, strict=write.validation == STRICT)
    except Malformed as error:
        raise bad_request(error.message) from error
    told = [f'unknown field "{path}"' for path in dropped]
    if told and write.validation == STRICT:
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"strict decoding error: {', '.join(told)}"
        )
    if write.validation != IGNORE:
        write.warnings.extend(told)


def _drop_empty(value: Document, shape: Shape) -> None:
    """Take out nulls, empty lists and empty maps, in place: in a built-in kind they say nothing."""
    for name in list(value):
        if name == "managedFields":
            # An empty list there is an order: forget who owns what.
            continue
        below, its_shape = value[name], child_shape(shape, name)
        if isinstance(below, dict):
            _drop_empty(below, its_shape)
            if not below and its_shape.each is not None:
                del value[name]
        elif isinstance(below, list):
            for item in below:
                if isinstance(item, dict):
                    _drop_empty(item, its_shape.each or ANY)
            if not below:
                del value[name]
        elif below is None:
            del value[name]


def complete(kind: ServedKind, document: Document) -> None:
    """Fill in the defaults of the kind, in place."""
    if kind.custom:
        kind.default(document)
    else:
        _drop_empty(document, kind.shape)
        fill_defaults(kind.bucket, document)
        if "status" in kind.subresources:
            document.setdefault("status", {})


def _check_kind(kind: ServedKind, document: Document) -> None:
    said, version = document.get("kind") or "", document.get("apiVersion") or ""
    if kind.custom and not said:
        raise bad_request("Object 'Kind' is missing")
    if not kind.custom:
        said, version = said or kind.kind, version or kind.api_version
    if not isinstance(said, str) or not isinstance(version, str):
        raise bad_request("Object 'Kind' is missing or no text")
    if version != kind.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({kind.api_version})"
            if kind.custom
            else f'{said} in version "{version}" cannot be handled as a {kind.kind}: '
            f'no kind "{said}" is registered for version "{version}"'
        )
    if said != kind.kind:
        raise bad_request(
            f'{said} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"the object is a {said}, not a {kind.kind}"
        )


def _check_names(target: Target, metadata: Document) -> None:
    space: Any = metadata.get("namespace") or ""
    if target.kind.namespaced and space and space != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    name: Any = metadata.get("name") or ""
    if target.name and name and name != target.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )
