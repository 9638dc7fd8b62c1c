"""A protobuf body into the document that JSON would have brought.

The envelope is a magic word and a message that names kind and version and holds the object. Fields that the
table does not know are passed over, as protobuf has it.
"""

from __future__ import annotations

import base64
import csv
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import msgspec

from volcano_py.simulator.apiserver.status import Document, bad_request

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Field(NamedTuple):
    """How one field is read; see ``generate.Row``."""

    name: str
    type: str
    many: str
    zero: str


def read_protobuf(body: bytes, fallback: tuple[str, str]) -> Document:
    """The document in a body.

    *fallback* is the (apiVersion, kind) to assume where the envelope names none.

    Raises:
        Refused: 400, for what is no such body or holds a kind that has no table.
    """
    try:
        return _read(body, fallback)
    except (IndexError, struct.error, UnicodeDecodeError, OverflowError) as error:
        raise bad_request(f"the object provided is unrecognized: {error}") from error


def _read(body: bytes, fallback: tuple[str, str]) -> Document:
    if not body.startswith(_MAGIC):
        raise bad_request("the object provided is unrecognized (no protobuf envelope)")
    envelope = dict(_fields(body[len(_MAGIC) :]))
    named = {number: _bytes(value).decode() for number, value in _fields(_bytes(envelope.get(1, b"")))}
    api_version = named.get(1) or fallback[0]
    kind = named.get(2) or fallback[1]
    message = _message_of(api_version, kind)
    if message not in _table():
        raise bad_request(f"{kind} in version {api_version} can't be read from protobuf here; send JSON")
    document = _message(_bytes(envelope.get(2, b"")), message)
    return {"kind": kind, "apiVersion": api_version, **document}


def _message_of(api_version: str, kind: str) -> str:
    if kind == "DeleteOptions":
        return "meta.v1.DeleteOptions"
    group, _, version = api_version.rpartition("/")
    return f"{group.partition('.')[0] or 'core'}.{version}.{kind}"


@cache
def _table() -> dict[str, dict[int, Field]]:
    table: dict[str, dict[int, Field]] = {}
    text = files("volcano_py.simulator.apiserver.protobuf").joinpath("fields.csv").read_text()
    for row in csv.DictReader(text.splitlines()):
        field = Field(row["field"], row["type"], row["many"], row["zero"])
        table.setdefault(row["message"], {})[int(row["number"])] = field
    return table


def _message(data: bytes, name: str) -> Document:
    known = _table().get(name, {})
    document: Document = {}
    for number, raw in _fields(data):
        field = known.get(number)
        if field is not None:
            _put(document, field, raw)
    return document


def _put(document: Document, field: Field, raw: int | bytes) -> None:
    if field.many == "map":
        key, value = _entry(_bytes(raw), field.type)
        document.setdefault(field.name, {})[key] = value
    elif field.many == "list":
        document.setdefault(field.name, []).append(_value(raw, field.type))
    elif field.zero == "inline":
        document.update(_message(_bytes(raw), field.type))
    else:
        value = _value(raw, field.type)
        if field.zero == "keep" or value not in ("", 0, False, None, {}):
            document[field.name] = value


def _entry(data: bytes, kind: str) -> tuple[str, Any]:
    parts = dict(_fields(data))
    empty: int | bytes = 0 if kind in ("int32", "int64", "bool") else b""
    return _bytes(parts.get(1, b"")).decode(), _value(parts.get(2, empty), kind)


def _value(raw: int | bytes, kind: str) -> Any:
    match kind:
        case "string":
            return _bytes(raw).decode()
        case "int32" | "int64":
            return _signed(raw)
        case "bool":
            return bool(raw)
        case "bytes":
            return base64.b64encode(_bytes(raw)).decode()
        case "api.resource.Quantity":
            return _bytes(dict(_fields(_bytes(raw))).get(1, b"")).decode()
        case "util.intstr.IntOrString":
            return _int_or_string(dict(_fields(_bytes(raw))))
        case "meta.v1.Time" | "meta.v1.MicroTime":
            return _time(dict(_fields(_bytes(raw))), micro=kind.endswith("MicroTime"))
        case "meta.v1.FieldsV1":
            return msgspec.json.decode(_bytes(dict(_fields(_bytes(raw))).get(1, b"{}")))
        case "authentication.v1.ExtraValue" | "authorization.v1.ExtraValue":
            return [_bytes(value).decode() for _, value in _fields(_bytes(raw))]
        case _:
            return _message(_bytes(raw), kind)


def _int_or_string(parts: dict[int, int | bytes]) -> int | str:
    if parts.get(1):
        return _bytes(parts.get(3, b"")).decode()
    return _signed(parts.get(2, 0))


def _time(parts: dict[int, int | bytes], *, micro: bool) -> str | None:
    """RFC 3339; None for the time that was never set."""
    if not parts:
        return None
    moment = _EPOCH + timedelta(
        seconds=_signed(parts.get(1, 0)), microseconds=_signed(parts.get(2, 0)) // 1000
    )
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


# the wire


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and raw value of each field."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
                yield tag >> 3, value
            case 2:
                length, at = _varint(data, at)
                if at + length > len(data):
                    raise IndexError("a field is longer than the body")
                yield tag >> 3, data[at : at + length]
                at += length
            case 1:
                yield tag >> 3, struct.unpack_from("<Q", data, at)[0]
                at += 8
            case 5:
                yield tag >> 3, struct.unpack_from("<I", data, at)[0]
                at += 4
            case other:
                raise IndexError(f"wire type {other} is not used here")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _signed(raw: int | bytes) -> int:
    value = raw if isinstance(raw, int) else 0
    return value - (1 << 64) if value >= 1 << 63 else value


def _bytes(raw: int | bytes) -> bytes:
    if isinstance(raw, int):
        raise IndexError("a number where text or a message belongs")
    return raw
