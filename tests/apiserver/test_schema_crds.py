"""This project's own definitions: each of their rules accepts and refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from tests.apiserver.definitions import own, registry
from volcano_py.simulator.apiserver.schema.kinds import Invalid
from volcano_py.simulator.apiserver.schema.rules import RULES, rule_faults, rule_tree


class Example(NamedTuple):
    good: list[Any]
    bad: list[Any]


SELECTORS = {"exactMatch": {"name": "n"}, "regexMatch": {"pattern": "n"}, "labelMatch": {}}
# By the rule's message, which is unique to it.
EXAMPLES = {
    "set 'highestTierAllowed' or 'highestTierName', not both": Example(
        good=[{}, {"highestTierAllowed": 1}, {"highestTierName": "rack"}],
        bad=[{"highestTierAllowed": 1, "highestTierName": "rack"}],
    ),
    "set 'event' (or 'events') or 'exitCode', one of them": Example(
        good=[
            {"event": "PodFailed"},
            {"events": ["PodFailed"]},
            {"exitCode": 3},
            {"exitCode": 3, "events": []},
        ],
        bad=[
            {},
            {"events": []},
            {"exitCode": 3, "event": "PodFailed"},
            {"exitCode": 3, "events": ["PodFailed"]},
        ],
    ),
    "exitCode 0 is success and sets nothing off": Example(
        good=[{"exitCode": 1}, {"event": "PodFailed"}], bad=[{"exitCode": 0}]
    ),
    "set one of 'exactMatch', 'regexMatch' and 'labelMatch'": Example(
        good=[{name: value} for name, value in SELECTORS.items()],
        bad=[{}, SELECTORS, {"exactMatch": {"name": "n"}, "labelMatch": {}}],
    ),
    "set 'min' or 'guarantee.resource', not both": Example(
        good=[{}, {"min": {"cpu": 1}}, {"guarantee": {"resource": {}}}, {"min": {}, "guarantee": {}}],
        bad=[{"min": {}, "guarantee": {"resource": {}}}],
    ),
    "set 'max' or 'capability', not both": Example(
        good=[{}, {"max": {}}, {"capability": {}}], bad=[{"max": {}, "capability": {"cpu": 1}}]
    ),
    "a queue cannot be its own parent": Example(
        good=[{"spec": {}}, {"metadata": {"name": "q"}, "spec": {"parent": "other"}}, {}],
        bad=[{"metadata": {"name": "q"}, "spec": {"parent": "q"}}],
    ),
}


class Place(NamedTuple):
    """Where a rule stands: the definition's schema, the path of its value, the rule's message."""

    schema: Mapping[str, Any]
    path: tuple[str, ...]
    message: str


def places(schema: Mapping[str, Any]) -> Iterator[Place]:
    def walk(part: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Place]:
        for rule in part.get(RULES) or ():
            yield Place(schema, path, rule["message"])
        for name, field in (part.get("properties") or {}).items():
            yield from walk(field, (*path, name))
        if isinstance(items := part.get("items"), Mapping):
            yield from walk(items, (*path, "[0]"))
        if isinstance(rest := part.get("additionalProperties"), Mapping):
            yield from walk(rest, (*path, "key"))

    yield from walk(schema, ())


def nested(path: tuple[str, ...], value: Any) -> Any:
    """A document that holds *value* at *path* and nothing else."""
    for step in reversed(path):
        value = [value] if step == "[0]" else {step: value}
    return value


PLACES = [
    (definition["spec"]["names"]["kind"], place)
    for definition in own()
    for place in places(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
]


def broken(place: Place, value: Any) -> list[tuple[str, str]]:
    tree = rule_tree(place.schema)
    assert tree is not None
    found = rule_faults(tree, nested(place.path, value))
    return [(cause.field, cause.message) for cause in found if place.message in cause.message]


def test_every_rule_has_examples() -> None:
    assert {place.message for _, place in PLACES} == set(EXAMPLES)
    assert len(PLACES) >= 30


@pytest.mark.parametrize(
    "place",
    [place for _, place in PLACES],
    ids=[f"{kind}-{'.'.join(place.path)}-{place.message[:20]}" for kind, place in PLACES],
)
def test_a_rule_accepts_and_refuses(place: Place) -> None:
    example = EXAMPLES[place.message]
    for value in example.good:
        assert broken(place, value) == [], value
    where = re.sub(r"\.\[", "[", ".".join(place.path)) or "<nil>"
    for value in example.bad:
        assert broken(place, value) == [(where, f"Invalid value: {place.message}")], value


def test_a_queue_is_refused_as_a_whole_with_every_fault() -> None:
    kind = registry().resolve("scheduling.volcano.sh", "v1beta1", "queues")
    assert kind is not None
    queue: dict[str, Any] = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": {"weight": 0, "parent": "q", "max": {}, "capability": {}},
    }
    kind.read(queue, strict=True)
    kind.default(queue)
    with pytest.raises(Invalid) as refusal:
        kind.check(queue, None, "")
    assert [cause.field for cause in refusal.value.causes] == ["spec.weight", "<nil>", "spec"]
    assert queue["spec"]["dequeueStrategy"] == "traverse"
