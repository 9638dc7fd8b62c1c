"""Tables: ages, JSON paths, columns of custom kinds, what goes with a row."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.definitions import COLUMNS, every_keyword, probe, registry
from tests.apiserver.objects_for_tables import PODS
from volcano_py.simulator.apiserver.schema.tables.ages import age, span
from volcano_py.simulator.apiserver.schema.tables.json_path import PathError, find

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400
NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z
SPANS = {
    -5: "<invalid>",
    -1: "0s",
    0: "0s",
    119: "119s",
    2 * MINUTE: "2m",
    3 * MINUTE + 5: "3m5s",
    10 * MINUTE + 5: "10m",
    179 * MINUTE: "179m",
    3 * HOUR: "3h",
    3 * HOUR + 5 * MINUTE: "3h5m",
    7 * HOUR + 5 * MINUTE: "7h5m",
    8 * HOUR + 5 * MINUTE: "8h",
    47 * HOUR: "47h",
    2 * DAY: "2d",
    3 * DAY + 5 * HOUR: "3d5h",
    8 * DAY + 5 * HOUR: "8d",
    700 * DAY: "700d",
    2 * YEAR: "2y",
    3 * YEAR + 5 * DAY: "3y5d",
    9 * YEAR: "9y",
}


@pytest.mark.parametrize(("seconds", "text"), SPANS.items())
def test_spans(seconds: int, text: str) -> None:
    assert span(seconds) == text


def test_ages() -> None:
    assert age("2025-12-31T23:59:00Z", NOW) == "60s"
    assert age("2025-12-31T23:59:00.500000Z", NOW) == "59s"
    assert age(None, NOW) == "<unknown>"


DOCUMENT: dict[str, Any] = {
    "a": {"b.c": 1, "list": [{"t": "x", "v": 1}, {"t": "y", "v": 2, "on": True}]},
    "n": None,
}
PATHS: list[tuple[str, list[Any]]] = [
    (".a.list[0].v", [1]),
    (".a.list[-1].v", [2]),
    (".a.list[5].v", []),
    (".a.list[*].v", [1, 2]),
    (".a.list[0:1].t", ["x"]),
    (".a.list[?(@.t=='y')].v", [2]),
    ('.a.list[?(@.t != "y")].v', [1]),
    (".a.list[?(@.v > 1)].t", ["y"]),
    (".a.list[?(@.on==true)].t", ["y"]),
    (".a.list[?(@.on)].t", ["y"]),
    (r".a.b\.c", [1]),
    (".a['b.c']", [1]),
    ("..t", ["x", "y"]),
    (".missing.x", []),
    (".n", [None]),
    ("{.a.list[0].t}", ["x"]),
]


@pytest.mark.parametrize(("path", "values"), PATHS, ids=[path for path, _ in PATHS])
def test_json_paths(path: str, values: list[Any]) -> None:
    assert find(path, DOCUMENT) == values


def test_a_path_that_cannot_be_read() -> None:
    with pytest.raises(PathError, match="unrecognized character"):
        find(".a[", DOCUMENT)


def rows(
    documents: list[dict[str, Any]], include: str = "Metadata", *, headers: bool = True
) -> dict[str, Any]:
    made = registry(every_keyword())
    kind = made.resolve("test.volcano-py.io", "v1", "probes")
    assert kind is not None
    metadata = {"resourceVersion": "5"}
    return made.table(kind, documents, include, metadata=metadata, headers=headers, now=NOW)


NAMED: list[Any] = [one["name"] for one in COLUMNS]


def test_columns_of_a_custom_kind() -> None:
    full = probe(
        text="ab",
        choice=2,
        list=["x", "y"],
        object={"a": 1},
        flag=True,
        number=2.5,
        map=[{"name": "a", "value": 3}, {"name": "b", "value": 4}],
    )
    full["metadata"]["creationTimestamp"] = "2025-12-31T23:00:00Z"
    table = rows([full, probe("empty")])
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        *NAMED,
    ]
    cells = [row["cells"] for row in table["rows"]]
    assert cells[0] == ["a", "ab", "60m", 2, '["x","y"]', '{"a":1}', True, 2.5, "3", None, "a"]
    assert cells[1] == ["empty", *[None] * 10]
    assert table["metadata"] == {"resourceVersion": "5"}


def test_a_kind_that_declares_no_columns_shows_its_age() -> None:
    made = registry()
    kind = made.resolve("bus.volcano.sh", "v1alpha1", "commands")
    assert kind is not None
    command = {"metadata": {"name": "c", "creationTimestamp": "2025-12-31T23:00:00Z"}}
    table = made.table(kind, [command], "None", metadata={}, now=NOW)
    assert [(column["name"], column["type"]) for column in table["columnDefinitions"]] == [
        ("Name", "string"),
        ("Age", "date"),
    ]
    assert table["rows"] == [{"cells": ["c", "60m"], "object": None}]


def test_what_goes_with_a_row() -> None:
    document = probe(text="ab")
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}}
    assert rows([document])["rows"][0]["object"] == partial
    assert rows([document], "Object")["rows"][0]["object"] == document
    assert rows([document], "None")["rows"][0]["object"] is None


def test_a_watch_describes_columns_once() -> None:
    assert rows([probe()], headers=False)["columnDefinitions"] is None


STATES = {
    "pending": ("0/1", "Pending"),
    "running": ("1/1", "Running"),
    "waiting": ("0/1", "ContainerCreating"),
    "crashed": ("0/1", "ExitCode:3"),
    "half-done": ("1/2", "NotReady"),
    "half-done-ready": ("1/2", "Running"),
    "signalled": ("0/1", "Signal:9"),
    "completed": ("0/1", "Completed"),
    "evicted": ("0/1", "Evicted"),
    "initializing": ("0/2", "Init:0/2"),
    "init-failed": ("0/2", "Init:ExitCode:1"),
    "sidecar": ("2/2", "Running"),
}


@pytest.mark.parametrize(("name", "shown"), STATES.items())
def test_states_of_pods(name: str, shown: tuple[str, str]) -> None:
    made = registry()
    kind = made.resolve("", "v1", "pods")
    assert kind is not None
    pod = next(one for one in PODS if one["metadata"]["name"] == name)
    (row,) = made.table(kind, [pod], "None", metadata={}, now=NOW)["rows"]
    assert tuple(row["cells"][1:3]) == shown
    assert ("conditions" in row) == (name in ("completed", "evicted"))


def test_a_pod_that_is_going_says_so() -> None:
    made = registry()
    kind = made.resolve("", "v1", "pods")
    assert kind is not None
    pod = {**PODS[3], "metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    (row,) = made.table(kind, [pod], "None", metadata={}, now=NOW + 90)["rows"]
    assert row["cells"][2:4] == ["Terminating", "3 (90s ago)"]
