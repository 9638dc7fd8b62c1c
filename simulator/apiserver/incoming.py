"""A body into a document of its kind: names checked, unknown fields dropped, defaults filled in."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import yaml

from volcano_py.simulator.apiserver.defaults import fill_defaults
from volcano_py.simulator.apiserver.protobuf.reading import PROTOBUF, read_protobuf
from volcano_py.simulator.apiserver.requests import IGNORE, STRICT, Target, Write
from volcano_py.simulator.apiserver.schema.kinds import Malformed, ServedKind
from volcano_py.simulator.apiserver.status import Document, bad_request, unsupported_media

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
    if media_type not in ("", JSON, YAML, "application/x-www-form-urlencoded", "*/*"):
        raise unsupported_media([JSON, YAML, PROTOBUF])
    try:
        document = yaml.safe_load(body) if media_type == YAML else msgspec.json.decode(body)
    except (msgspec.DecodeError, yaml.YAMLError) as error:
        raise bad_request(f"the object provided is unrecognized: {error}") from error
    if not isinstance(document, dict):
        raise bad_request("the object provided is unrecognized (must be an object)")
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
    drop_unknown(kind, document, write)
    _check_names(target, metadata)
    return {name: document[name] for name in (*_FIRST, *document) if name in document}


def drop_unknown(kind: ServedKind, document: Document, write: Write) -> None:
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


def complete(kind: ServedKind, document: Document) -> None:
    """Fill in the defaults of the kind, in place."""
    if kind.custom:
        kind.default(document)
    else:
        fill_defaults(kind.bucket, document)


def _check_kind(kind: ServedKind, document: Document) -> None:
    said, version = document.get("kind") or kind.kind, document.get("apiVersion") or kind.api_version
    if not isinstance(said, str) or not isinstance(version, str):
        raise bad_request("Object 'Kind' is missing or no text")
    if version != kind.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({kind.api_version})"
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
