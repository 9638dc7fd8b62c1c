"""A plan's data: the issue's own Job, queues in numbers, and a reason for every pod that waits."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.clusters import Document, engine, group, node, pod, queue
from volcano_py.crds.schedulerconfig import DEFAULT_CONFIG
from volcano_py.scheduler.engine import SCHEDULER_NAMES, Engine
from volcano_py.simulator.expand import expand
from volcano_py.simulator.report import plan_report

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z
CAPACITY = """
actions: allocate
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: capacity}]
"""

USER = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: train-queue
spec:
  weight: 1
  reclaimable: false
  policy: besteffort
  capability:
    cpu: 64
    memory: 256Gi
    huawei.com/Ascend910: 8
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: train
  namespace: ml
spec:
  schedulerName: volcano
  queue: train-queue
  minAvailable: 2
  policies:
  - event: PodFailed
    action: RestartJob
  tasks:
  - name: worker
    replicas: 2
    template:
      spec:
        containers:
        - name: main
          image: mindspore
          resources:
            requests: {huawei.com/Ascend910: 1}
            limits: {huawei.com/Ascend910: 1}
"""


def user_objects() -> list[Document]:
    """The two manifests of a Volcano user, as they stand."""
    return expand(list(yaml.safe_load_all(USER)), SCHEDULER_NAMES)


def chips(name: str, count: int) -> Document:
    return node(name, cpu="96", memory="512Gi", amounts={"huawei.com/Ascend910": str(count)})


def report_of(made: Engine, *, cycles: int = 1) -> dict[str, Any]:
    report = plan_report(made, [made.cycle(NOW) for _ in range(cycles)], NOW)
    assert json.loads(json.dumps(report)) == report, "plain JSON"
    return report


def named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (found,) = [entry for entry in entries if entry["name"] == name]
    return found


# -- the Job ----------------------------------------------------------------------------


def test_both_workers_bind_where_there_are_chips() -> None:
    made = engine(chips("n1", 8), chips("n2", 8), *user_objects(), config=DEFAULT_CONFIG)
    report = report_of(made)
    assert sorted(d["pod"] for d in report["decisions"]) == ["ml/train-worker-0", "ml/train-worker-1"]
    assert {(d["kind"], d["cycle"], d["podGroup"]) for d in report["decisions"]} == {("bind", 1, "ml/train")}
    assert named(report["podGroups"], "ml/train")["phase"] == "Running"
    assert report["pending"] == {}


@pytest.mark.parametrize("gate", [True, False])
def test_with_one_free_chip_none_binds_and_the_reason_says_so(gate: bool) -> None:
    config = DEFAULT_CONFIG if gate else DEFAULT_CONFIG.replace("enqueue, ", "")
    made = engine(chips("n1", 1), chips("n2", 0), *user_objects(), config=config)
    report = report_of(made)
    assert report["decisions"] == []
    assert sorted(report["pending"]) == ["ml/train-worker-0", "ml/train-worker-1"]
    for entry in report["pending"].values():
        assert "huawei.com/Ascend910" in entry["reason"]
        assert set(entry["missing"]) == {"huawei.com/Ascend910"}
    (condition,) = named(report["podGroups"], "ml/train")["conditions"]
    assert condition["type"] == "Unschedulable"
    assert "huawei.com/Ascend910" in condition["message"]


def test_a_queues_max_is_shown_as_stated() -> None:
    made = engine(chips("n1", 8), *user_objects(), config=DEFAULT_CONFIG)
    entry = named(report_of(made)["queues"], "train-queue")
    assert entry["max"] == {"cpu": "64", "memory": "256Gi", "huawei.com/Ascend910": "8"}
    assert entry["allocated"]["huawei.com/Ascend910"] == "2"


# -- queues -------------------------------------------------------------------------------------


def borrowing() -> Engine:
    """Of 4 CPU, queue a holds 3 and is entitled to 1; b waits for 2, holds none, and is entitled to 3."""
    return engine(
        node("n1", cpu="4"),
        queue("a", deserved={"cpu": "1"}),
        queue("b", deserved={"cpu": "3"}, capability={"cpu": "3500m"}, guarantee={"resource": {"cpu": "1"}}),
        group("x", 1, "a", "Running"),
        *(pod(f"x-{i}", "x", on="n1") for i in range(3)),
        group("y", 1, "b"),
        pod("y-0", "y", "2"),
        config=CAPACITY,
    )


def test_over_and_under_are_measured_against_the_entitlement() -> None:
    queues = report_of(borrowing())["queues"]
    a, b = named(queues, "a"), named(queues, "b")
    assert (a["allocated"]["cpu"], a["entitlement"]["cpu"], a["over"]) == ("3", "1", {"cpu": "2"})
    assert a["share"] == 3.0
    assert (b["allocated"], b["entitlement"]["cpu"], b["under"]["cpu"]) == ({}, "3", "3")
    assert (b["share"], b["over"]) == (0.0, {})
    assert (b["guarantee"], b["max"]) == ({"cpu": "1"}, {"cpu": "3500m"})


def test_resources_nobody_has_are_left_out_of_what_was_computed() -> None:
    made = borrowing()
    made.state.vocabulary.column("example.com/unheard-of")
    entry = named(report_of(made)["queues"], "b")
    assert set(entry["entitlement"]) <= {"cpu", "memory"}
    assert "pods" not in entry["deserved"], "nobody limits pods here"


def test_without_a_share_plugin_nothing_is_owed() -> None:
    made = engine(node("n1"), group("x"), pod("x-0", "x"))
    entry = named(report_of(made)["queues"], "default")
    assert (entry["deserved"], entry["entitlement"], entry["share"]) == ({}, {}, None)
    assert entry["allocated"] == {"cpu": "1", "pods": "1"}


def test_a_queue_that_is_wrong_says_why() -> None:
    made = engine(node("n1"), queue("a", parent="b"), queue("b", parent="a"))
    assert "circle" in named(report_of(made)["queues"], "a")["problem"]


# -- groups and decisions -----------------------------------------------------------------------


def test_groups_count_their_pods_by_status() -> None:
    gang = "actions: allocate\ntiers:\n- plugins: [{name: gang}]\n"
    made = engine(node("n1", cpu="1"), group("x", 1), pod("x-0", "x"), pod("x-1", "x"), config=gang)
    entry = named(report_of(made)["podGroups"], "ml/x")
    assert entry["pods"] == {"Pending": 1, "Binding": 1}
    assert (entry["queue"], entry["minMember"]) == ("default", 1)


def test_decisions_say_in_which_cycle() -> None:
    made = engine(node("n1", cpu="1"), group("x", 1), pod("x-0", "x"))
    first = made.cycle(NOW)
    assert not made.apply(node("n1", cpu="2"))
    assert not made.apply(pod("x-1", "x"))
    report = plan_report(made, [first, made.cycle(NOW)], NOW)
    assert [(d["cycle"], d["pod"]) for d in report["decisions"]] == [(1, "ml/x-0"), (2, "ml/x-1")]
    assert report["cycles"] == 2


def test_card_slices_are_told_with_the_decision() -> None:
    cards = "GPU-0,10,16384,100,NVIDIA-A100,0,true:"
    made = engine(
        node("n1", annotations={"hami.io/node-nvidia-register": cards}, amounts={"nvidia.com/gpu": "10"}),
        group("x", 1),
        pod(
            "x-0",
            "x",
            requests={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4096", "nvidia.com/gpucores": "30"},
        ),
        config="actions: allocate\ntiers:\n- plugins: [{name: predicates}, {name: deviceshare}]\n",
    )
    (decision,) = report_of(made)["decisions"]
    assert decision["slices"] == [
        {"container": "main", "card": 0, "uuid": "GPU-0", "memory": 4096, "cores": 30}
    ]


# -- what waits ---------------------------------------------------------------------------------


def reason(made: Engine, name: str = "ml/x-0") -> tuple[str, str]:
    entry = report_of(made)["pending"][name]
    return entry["code"], entry["reason"]


def test_no_node_takes_it() -> None:
    made = engine(node("n1", cpu="1"), node("n2", cpu="2"), group("x"), pod("x-0", "x", "3"))
    entry = report_of(made)["pending"]["ml/x-0"]
    assert entry["code"] == "NodesUnfit"
    assert (entry["nodes"], entry["failed"]) == (2, {"Insufficient cpu": 2})
    assert (entry["missing"], entry["nearest"]) == ({"cpu": "1"}, "n2")


def test_its_queue_is_closed_or_missing_or_wrong() -> None:
    waiting = (node("n1"), group("x", queue="q"), pod("x-0", "x"))
    assert reason(engine(*waiting)) == ("NoQueue", "queue q does not exist")
    closed = {**queue("q"), "status": {"state": "Closed"}}
    assert reason(engine(*waiting, closed))[0] == "QueueClosed"
    broken = engine(*waiting)
    assert broken.apply(queue("q", weight=-1))
    code, text = reason(broken)
    assert code == "InvalidObject"
    assert "spec.weight" in text


def test_its_group_is_missing_or_wrong() -> None:
    assert reason(engine(node("n1"), pod("x-0", "x"))) == ("NoPodGroup", "PodGroup ml/x does not exist")
    broken = engine(node("n1"), pod("x-0", "x"))
    assert broken.apply(group("x", -1))
    code, text = reason(broken)
    assert code == "InvalidObject"
    assert "spec.minMember" in text


def test_it_has_gates_of_its_own() -> None:
    gated = pod("x-0", "x", schedulingGates=[{"name": "example.com/wait"}])
    assert reason(engine(node("n1"), group("x"), gated))[0] == "SchedulingGated"


def test_nobody_looked_at_it() -> None:
    waiting = (node("n1"), group("x"), pod("x-0", "x"))
    idle = engine(*waiting, config="actions: enqueue\ntiers: []\n")
    code, text = reason(idle)
    assert code == "NotLookedAt"
    assert "no configured action places pods" in text
    never = plan_report(engine(*waiting), [], NOW)
    assert never["pending"]["ml/x-0"]["reason"] == "not looked at: no cycle has run"
