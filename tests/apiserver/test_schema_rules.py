"""CEL rules: what is compiled, what is refused, and the functions that Kubernetes adds to the language."""

from __future__ import annotations

from typing import Any

import pytest
from celpy.adapter import json_to_cel

from volcano_py.simulator.apiserver.schema.rules import (
    RuleError,
    compiled,
    definition_faults,
    rule_faults,
    rule_tree,
)
from volcano_py.simulator.apiserver.schema.values import MISSING

HOLD = [
    ("self.isSorted()", [1, 2, 2]),
    ("!self.isSorted()", [2, 1]),
    ("self.sum() == 6 && self.max() == 3 && self.min() == 1", [1, 2, 3]),
    ("self.indexOf('b') == 1 && self.indexOf('z') == -1", ["a", "b"]),
    ("self.lastIndexOf(1) == 2", [1, 2, 1]),
    ("self.indexOf('l') == 2 && self.indexOf('l', 3) == 3 && self.lastIndexOf('l') == 3", "hello"),
    ("self.charAt(1) == 'e' && self.substring(1) == 'ello' && self.substring(1, 3) == 'el'", "hello"),
    (
        "self.split(',') == ['a', 'b', 'c'] && self.split(',', 2) == ['a', 'b,c']",
        "a,b,c",
    ),
    ("self.split(',', 0) == []", "a,b"),
    ("self.replace('l', 'L') == 'heLLo' && self.replace('l', 'L', 1) == 'heLlo'", "hello"),
    ("self.trim().lowerAscii() == 'a b' && self.trim().upperAscii() == 'A B'", " A b "),
    ("self.join('-') == 'a-b' && self.join() == 'ab'", ["a", "b"]),
    ("self.find('[0-9]+') == '12' && self.findAll('[0-9]+') == ['12', '3'] && self.find('x') == ''", "a12b3"),
    ("isQuantity(self) && quantity(self).isGreaterThan(quantity('1Gi')) && !isQuantity('1x')", "2Gi"),
    ("quantity(self).compareTo(quantity('1000m')) == 0 && !quantity(self).isLessThan(quantity('1'))", "1"),
    ("self.matches('^a+$') && self.startsWith('a') && size(self) == 2", "aa"),
    ("self.all(k, self[k] > 0) && 'a' in self", {"a": 1}),
    (
        "self.exists_one(x, x > 1) && self.filter(x, x > 1).size() == 1 && self.map(x, x + 1) == [2, 3]",
        [1, 2],
    ),
]


@pytest.mark.parametrize(("text", "value"), HOLD, ids=[text[:40] for text, _ in HOLD])
def test_functions(text: str, value: Any) -> None:
    assert bool(compiled(text).evaluate(json_to_cel(value), MISSING)) is True


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("bar(self)", "undeclared reference to 'bar'"),
        ("self.all(x, x.frobnicate())", "undeclared reference to 'frobnicate'"),
        ("self.foo(", "Syntax error"),
        ("self ==", "Syntax error"),
    ],
)
def test_what_cannot_be_compiled_is_named(text: str, why: str) -> None:
    with pytest.raises(RuleError, match=why):
        compiled(text)
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "x-kubernetes-validations": [{"rule": text}]}},
    }
    (cause,) = definition_faults(schema, "root")
    assert cause.field == "root.properties[a].x-kubernetes-validations[0].rule"
    assert why in cause.message


def test_every_rule_is_compiled_once() -> None:
    assert compiled("self == 12345") is compiled("self == 12345")


FIELDS = {
    "namespace": {"type": "string"},
    "a-b": {"type": "integer"},
    "when": {"type": "string", "format": "date-time"},
    "free": {"type": "object", "additionalProperties": {"type": "number"}},
}


@pytest.mark.parametrize(
    "rule",
    [
        "self.__namespace__ == 'x'",
        "self.a__dash__b == 3",
        "self.when > timestamp('2025-01-01T00:00:00Z')",
        "self.free['a-b'] > 0.5",
        "!has(self.missing)",
    ],
)
def test_fields_as_rules_see_them(rule: str) -> None:
    tree = rule_tree({"type": "object", "properties": FIELDS, "x-kubernetes-validations": [{"rule": rule}]})
    assert tree is not None
    value = {"namespace": "x", "a-b": 3, "when": "2026-01-01T00:00:00Z", "free": {"a-b": 1}}
    assert list(rule_faults(tree, value)) == []
    other = {"namespace": "y", "a-b": 4, "when": "2024-01-01T00:00:00Z", "free": {"a-b": 0}, "missing": 1}
    assert len(list(rule_faults(tree, other))) == 1


def test_a_rule_of_the_whole_sees_only_the_name_of_the_metadata() -> None:
    rule = "self.metadata.name == 'a' && !has(self.metadata.labels)"
    tree = rule_tree({"type": "object", "x-kubernetes-validations": [{"rule": rule}]})
    assert tree is not None
    assert list(rule_faults(tree, {"metadata": {"name": "a", "labels": {"x": "y"}}})) == []
