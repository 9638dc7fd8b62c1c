"""A plan as people see it: short where much is alike, in full where somebody loses something."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import yaml
from rich.console import Console

from tests.clusters import engine, group, node, pod, queue
from volcano_py.cli.output import dump, print_plan
from volcano_py.cli.queue_bars import queue_table, usage_bar
from volcano_py.simulator.report import plan_report

NOW = 1_767_225_600.0


def report(**more: Any) -> dict[str, Any]:
    """A plan in which nothing happens, with *more* in it."""
    empty = {"now": "", "cycles": 1, "decisions": [], "podGroups": [], "queues": [], "pending": {}}
    return {**empty, "errors": [], "warnings": [], **more}


def bind(pod_name: str, node_name: str, group_name: str = "ml/serve", **more: Any) -> dict[str, Any]:
    keys = {
        "cycle": 1,
        "kind": "bind",
        "slices": [],
        "action": "allocate",
        "forWhom": "",
        "reason": "",
        "lost": "",
    }
    return {**keys, "pod": pod_name, "podGroup": group_name, "node": node_name, **more}


def waiting(reason: str) -> dict[str, Any]:
    return {"reason": reason, "code": "X", "nodes": 0, "failed": {}, "missing": {}, "nearest": ""}


def printed(data: dict[str, Any], *, width: int = 80, wide: bool = False, terminal: bool = False) -> str:
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=terminal,
        color_system="standard" if terminal else None,
    )
    print_plan(data, console, wide=wide)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def words(text: str) -> str:
    """*text* on one line, so that where it was wrapped doesn't matter."""
    return " ".join(text.split())


# -- binds --------------------------------------------------------------------------------------


def many() -> dict[str, Any]:
    nodes = ["gpu-0"] * 8 + ["gpu-2"] * 6
    return report(decisions=[bind(f"ml/serve-{i}", name) for i, name in enumerate(nodes)])


def test_few_binds_are_listed() -> None:
    text = printed(report(decisions=[bind("ml/serve-0", "gpu-0"), bind("ml/serve-1", "gpu-2")]))
    assert "ml/serve-0   gpu-0" in text
    assert "ml/serve-1   gpu-2" in text
    assert "2 started, 0 evicted, 0 waiting after 1 cycle" in text


def test_many_binds_are_summed_up_by_group() -> None:
    text = printed(many())
    assert "ml/serve: 14 pods -> gpu-0 x8, gpu-2 x6" in text
    assert "ml/serve-3" not in text


def test_wide_lists_every_bind() -> None:
    text = printed(many(), wide=True)
    assert all(f"ml/serve-{i} " in text for i in range(14))


def test_a_group_on_many_nodes_names_the_fullest() -> None:
    spread = [bind(f"ml/serve-{i}", f"n{i % 7}") for i in range(15)]
    assert "15 pods -> n0 x3, n1 x2, n2 x2, n3 x2 and 3 more nodes" in printed(report(decisions=spread))


def test_cards_are_told_and_empty_columns_are_not() -> None:
    slices = [{"container": "main", "card": 1, "uuid": "GPU-1", "memory": 4096, "cores": 50}]
    assert "main: card 1 (4096 MiB, 50 %)" in words(
        printed(report(decisions=[bind("ml/a", "n", slices=slices)]))
    )
    assert "CARDS" not in printed(report(decisions=[bind("ml/a", "n")]))


def test_several_cycles_say_which() -> None:
    text = printed(report(cycles=2, decisions=[bind("ml/a", "n"), bind("ml/b", "n", cycle=2)]))
    assert "CYCLE" in text
    assert "2       ml/b" in text


def test_only_the_last_cycles_reservations_stand() -> None:
    old = bind("ml/a", "n", kind="pipeline")
    new = bind("ml/b", "n", kind="pipeline", cycle=2)
    text = printed(report(cycles=2, decisions=[old, new]))
    assert "ml/b" in text
    assert "ml/a" not in text


# -- evictions ----------------------------------------------------------------------------------


def test_an_eviction_is_told_in_full() -> None:
    evicted = bind(
        "research/sweep-5",
        "gpu-1",
        kind="evict",
        action="reclaim",
        forWhom="product/serve",
        reason="reclaim: queue research holds 7 cpu, 2 over its entitlement of 5 [owned by product]",
        lost="2 card-hours",
    )
    for width, terminal in ((40, False), (80, False), (200, True)):
        text = words(printed(report(decisions=[evicted]), width=width, terminal=terminal))
        assert "research/sweep-5" in text
        assert "reclaim: queue" not in text
        assert "2 over its entitlement of 5 [owned by product]" in text
        for told in ("gpu-1", "product/serve", "2 card-hours"):
            assert told in text


# -- queues and groups --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "owed", "most", "bar"),
    [
        (0, 0, 0, ".........."),
        (5, 0, 10, "#####....."),
        (10, 0, 10, "##########"),
        (1, 0, 1000, "#........."),
        (8, 6, 0, "#######|##"),
        (3, 10, 10, "###......."),
        (2, 4, 10, "##..|....."),
        (20, 5, 10, "##|#######"),
    ],
)
def test_a_bar_shows_what_is_held_owed_and_allowed(held: int, owed: int, most: int, bar: str) -> None:
    assert usage_bar(held, owed, most) == bar


def planned() -> dict[str, Any]:
    made = engine(
        node("n1", cpu="4"),
        queue("team-a", deserved={"cpu": "1"}),
        queue("team-b", deserved={"cpu": "3"}, capability={"cpu": "3"}),
        queue("inner", parent="nowhere"),
        group("x", 1, "team-a", "Running"),
        *(pod(f"x-{i}", "x", on="n1") for i in range(3)),
        group("y", 2, "team-b"),
        *(pod(f"y-{i}", "y") for i in range(2)),
        config="actions: allocate\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: capacity}]\n",
    )
    return {**plan_report(made, [made.cycle(NOW)], NOW), "errors": [], "warnings": []}


def line(text: str, start: str) -> str:
    (found,) = [one for one in text.splitlines() if one.strip().startswith(start)]
    return words(found)


def test_queues_show_what_they_hold_deserve_are_entitled_to_and_may_reach() -> None:
    text = printed(planned())
    assert line(text, "team-a") == "team-a cpu ███│██████ 3 1 1 -"
    assert line(text, "team-b") == "team-b cpu ░░░░░░░░░░ 0 3 3 3"
    assert "parent queue nowhere does not exist" in words(text)


def test_cards_have_one_line_a_measure_with_units() -> None:
    held = {"nvidia.com/gpumem": "96k", "nvidia.com/gpu": "2", "volcano.sh/vgpu-memory": "96k"}
    entitled = {"nvidia.com/gpumem": "218453333m", "nvidia.com/gpu": "26666m"}
    one = {"name": "a", "state": "Open", "parent": "", "problem": "", "max": {}, "deserved": {}, "over": {}}
    table = queue_table([{**one, "allocated": held, "entitlement": entitled}])
    assert table is not None
    console = Console(file=io.StringIO(), width=100)
    console.print(table)
    rows = [words(row) for row in console.file.getvalue().splitlines()[2:]]  # type: ignore[attr-defined]
    assert rows == ["a card memory █████░░░░░ 96000Mi - 213.33Gi -", "nvidia.com/gpu █░░░░░░░░░ 2 - 26.7 -"]


def test_pods_with_room_promised_are_told_of_once() -> None:
    kept = bind("ml/a", "n7", kind="pipeline")
    text = printed(report(decisions=[kept], pending={"ml/a": waiting("promised"), "ml/b": waiting("full")}))
    assert text.count("ml/a") == 1
    assert "n7" in line(text, "ml/a")
    assert "1 pod: ml/b full" in words(text)
    assert "2 waiting" in text


def test_where_nothing_could_be_read_only_that_is_told() -> None:
    errors = [{"file": "nope.yaml", "line": 0, "message": "there is no such file or folder"}]
    queues = planned()["queues"]
    text = printed(report(queues=queues, errors=errors))
    assert "QUEUE" not in text
    assert "nope.yaml: there is no such file or folder" in text
    assert "QUEUE" in printed(report(queues=queues))


def test_groups_show_phase_and_pods() -> None:
    text = printed(planned())
    assert line(text, "ml/x") == "ml/x team-a Running 1 3 running"
    assert line(text, "ml/y") == "ml/y team-b Inqueue 2 2 pending"


def test_a_borrower_is_yellow_on_a_terminal_only() -> None:
    assert "\x1b[33m███│██████" in printed(planned(), terminal=True)
    assert "\x1b" not in printed(planned())


def test_an_output_that_takes_ascii_only_gets_nothing_else() -> None:
    raw = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    print_plan(planned(), Console(file=raw, width=80))
    raw.seek(0)
    assert "###|######" in line(raw.read(), "team-a")


# -- what waits, and what is wrong --------------------------------------------------------------


def test_waiting_pods_are_grouped_by_reason_the_commonest_first() -> None:
    pending = {f"ml/a-{i}": waiting("too little [cpu]") for i in range(5)} | {"ml/b": waiting("queue closed")}
    text = printed(report(pending=pending))
    assert "5 pods: ml/a-0, ml/a-1, ml/a-2 and 2 more" in text
    assert "1 pod: ml/b" in text
    assert text.index("too little [cpu]") < text.index("queue closed")
    assert "ml/a-4" in printed(report(pending=pending), wide=True)


def test_errors_name_file_line_object_and_field() -> None:
    where = {"file": "jobs.yaml", "line": 12, "object": "Pod ml/a", "field": "spec.x", "message": "is [bad]"}
    text = printed(report(errors=[where], warnings=[{"message": "odd"}]))
    assert "jobs.yaml:12: Pod ml/a: spec.x: is [bad]" in text
    assert "odd" in text
    assert "0 waiting, 1 error after 1 cycle" in text


def test_nothing_is_wider_than_the_terminal() -> None:
    long = "namespace-of-a-team-with-a-long-name/a-job-with-a-very-long-name-for-what-it-does-worker-12345"
    data = planned()
    data["decisions"] = [
        bind(long, "node-" + "x" * 60, long),
        bind(long, "n", long, kind="evict", reason=long * 3),
    ]
    data["pending"] = {long: waiting(long * 2)}
    data["podGroups"].append({**data["podGroups"][0], "name": long})
    assert max(len(one) for one in printed(data).splitlines()) <= 80


def test_an_empty_plan_is_one_line() -> None:
    assert printed(report()) == "0 started, 0 evicted, 0 waiting after 1 cycle\n"


# -- for programs -------------------------------------------------------------------------------


def test_json_and_yaml_say_the_same_in_the_same_order() -> None:
    data = planned()
    assert json.loads(dump(data, "json")) == data
    assert yaml.safe_load(dump(data, "yaml")) == data
    assert list(json.loads(dump(data, "json"))) == list(data)
    with pytest.raises(ValueError, match="known forms"):
        dump(data, "xml")
