"""Label and field selectors, in the words of the query string."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from volcano_py.simulator.apiserver.schema.kinds import ServedKind
from volcano_py.simulator.apiserver.selectable import SELECTABLE, field_text
from volcano_py.simulator.apiserver.status import bad_request
from volcano_py.simulator.apiserver.store import Item

Labels = Mapping[str, str]
Test = Callable[[Labels], bool]

_NONE: Final[Labels] = {}
_SET: Final = re.compile(r"^\s*(?P<key>[^\s!=(),]+)\s+(?P<word>in|notin)\s+\((?P<values>[^()]*)\)\s*$")
_EQUAL: Final = re.compile(r"^\s*(?P<key>[^\s!=(),<>]+)\s*(?P<sign>==|!=|=)\s*(?P<value>[^\s!=(),]*)\s*$")
_ORDER: Final = re.compile(r"^\s*(?P<key>[^\s!=(),<>]+)\s*(?P<sign>[<>])\s*(?P<value>-?\d+)\s*$")
_EXISTS: Final = re.compile(r"^\s*(?P<no>!?)\s*(?P<key>[^\s!=(),<>]+)\s*$")
_COMMA: Final = re.compile(r",(?![^()]*\))")


@dataclass(frozen=True, slots=True)
class Selector:
    """Which objects a request is about; without tests, all."""

    labels: tuple[Test, ...] = ()
    fields: tuple[Callable[[Item], bool], ...] = ()

    def matches(self, item: Item) -> bool:
        """Whether *item* is meant."""
        labels = item.labels or _NONE
        return all(test(labels) for test in self.labels) and all(test(item) for test in self.fields)

    @property
    def everything(self) -> bool:
        """Whether it leaves nothing out."""
        return not self.labels and not self.fields


def parse_selector(kind: ServedKind, labels: str, fields: str) -> Selector:
    """The selector of two query parameters, "" each where not given.

    Raises:
        Refused: 400, for what can't be read and for fields that can't be selected.
    """
    return Selector(parse_labels(labels), tuple(_field_tests(kind, fields)))


def parse_labels(text: str) -> tuple[Test, ...]:
    """The tests of a label selector such as ``a=b,c in (d,e),!f``."""
    if not text.strip():
        return ()
    return tuple(_label_test(part, text) for part in _COMMA.split(text))


def _label_test(part: str, whole: str) -> Test:
    if match := _SET.match(part):
        values = frozenset(value.strip() for value in match["values"].split(","))
        return _in_set(match["key"], values, match["word"] == "in")
    if match := _EQUAL.match(part):
        return _in_set(match["key"], frozenset([match["value"]]), match["sign"] != "!=")
    if match := _ORDER.match(part):
        return _in_order(match["key"], match["sign"], int(match["value"]))
    if match := _EXISTS.match(part):
        return _presence(match["key"], not match["no"])
    raise bad_request(f'unable to parse requirement: found {part!r} in "{whole}"')


def _in_set(key: str, values: frozenset[str], wanted: bool) -> Test:
    if wanted:
        return lambda labels: labels.get(key) in values
    return lambda labels: labels.get(key) not in values


def _in_order(key: str, sign: str, bound: int) -> Test:
    def test(labels: Labels) -> bool:
        try:
            value = int(labels[key])
        except (KeyError, ValueError):
            return False
        return value < bound if sign == "<" else value > bound

    return test


def _presence(key: str, wanted: bool) -> Test:
    return lambda labels: (key in labels) == wanted


def _field_tests(kind: ServedKind, text: str) -> list[Callable[[Item], bool]]:
    return [_field_test(kind, part) for part in text.split(",") if part.strip()]


def _field_test(kind: ServedKind, part: str) -> Callable[[Item], bool]:
    match = _EQUAL.match(part)
    if match is None:
        raise bad_request(f'invalid field selector: "{part}"; can\'t understand it')
    value, equal = match["value"], match["sign"] != "!="
    read = _reader(kind, match["key"])
    return lambda item: (read(item) == value) == equal


def _reader(kind: ServedKind, name: str) -> Callable[[Item], str]:
    if name == "metadata.name":
        return lambda item: item.name
    if name == "metadata.namespace":
        return lambda item: item.namespace
    if name in SELECTABLE.get(kind.bucket, {}):
        return lambda item: (item.fields or _NONE).get(name, "")
    if name in kind.selectable:
        path = kind.selectable[name]
        return lambda item: field_text(item.document(), path)
    if kind.custom or kind.bucket in SELECTABLE:
        raise bad_request(f"field label not supported: {name}")
    raise bad_request(f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"')
