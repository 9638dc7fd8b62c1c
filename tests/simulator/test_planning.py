"""What is wrong with the input of a plan: told with its place, and the rest is planned all the same."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.crds.arguments import ConfigError
from volcano_py.crds.schedulerconfig import DEFAULT_CONFIG, load_scheduler_config
from volcano_py.scheduler.framework.registry import known_actions, known_plugins
from volcano_py.simulator.manifests import Text, read_text
from volcano_py.simulator.planning import not_planned, plan_manifests

NOW = 1_767_225_600.0
GOOD = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: good, namespace: ml}
spec:
  schedulerName: volcano-py
  containers: [{name: main, resources: {requests: {cpu: "1"}}}]
---
"""
VOLCANO = "apiVersion: scheduling.volcano.sh/v1beta1"
LONG = "x" * 10_000


def planned(text: str, **how: Any) -> dict[str, Any]:
    """The plan of GOOD and *text*."""
    config = load_scheduler_config(DEFAULT_CONFIG, known_plugins(), known_actions())
    return plan_manifests(read_text(GOOD + text, "in.yaml"), config, NOW, **how)


def binds(report: dict[str, Any]) -> list[str]:
    return [decision["pod"] for decision in report["decisions"] if decision["kind"] == "bind"]


def line(number: int) -> int:
    """Line *number* of the text behind GOOD."""
    return GOOD.count("\n") + number


@pytest.mark.parametrize(
    ("text", "at", "name", "field", "says"),
    [
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ml}\nspec:\n  schedulerName: volcano\n"
            "  containers:\n  - name: main\n    resources:\n      requests:\n        cpu: abc\n",
            10,
            "Pod ml/a",
            "spec.containers[0].resources.requests.cpu",
            '"abc" is not a quantity',
            id="a-pod-asking-for-abc",
        ),
        pytest.param(
            f"{VOLCANO}\nkind: Queue\nmetadata: {{name: q}}\nspec:\n  parent: q\n",
            5,
            "Queue q",
            "spec.parent",
            "cannot be its own parent",
            id="a-queue-above-itself",
        ),
        pytest.param(
            f"{VOLCANO}\nkind: Queue\nmetadata: {{name: q}}\nspec: {{parent: p}}\n",
            4,
            "Queue q",
            "spec.parent",
            "parent queue p does not exist",
            id="a-queue-below-nothing",
        ),
        pytest.param(
            f"{VOLCANO}\nkind: Queue\nmetadata: {{name: q}}\nspec:\n  weight: -1\n",
            5,
            "Queue q",
            "spec.weight",
            "at least 1, not -1",
            id="negative-weight",
        ),
        pytest.param(
            f"{VOLCANO}\nkind: PodGroup\nmetadata: {{name: g, namespace: ml}}\nspec:\n  queue: nowhere\n",
            5,
            "PodGroup ml/g",
            "spec.queue",
            "queue nowhere does not exist; there are default",
            id="a-missing-queue",
        ),
        pytest.param(
            f"{VOLCANO}\nkind: PodGroup\nmetadata: {{name: g, namespace: ml}}\nspec:\n  minMember: 3\n---\n"
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: g-0\n  namespace: ml\n"
            "  annotations: {scheduling.k8s.io/group-name: g}\nspec: {containers: []}\n",
            5,
            "PodGroup ml/g",
            "spec.minMember",
            "needs 3 pods and has 1",
            id="a-minimum-above-its-pods",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Node\nmetadata: {name: n2}\nstatus: {allocatable: {cpu: -4}}\n",
            4,
            "Node n2",
            "status.allocatable.cpu",
            "must not be negative",
            id="a-negative-node",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  namespace: ml\n",
            3,
            "Pod ml/(no name)",
            "metadata.name",
            "needs a name",
            id="no-name",
        ),
        pytest.param(
            "kind: Pod\nmetadata: {name: a}\n",
            1,
            "Pod a",
            "apiVersion",
            "needs its apiVersion",
            id="no-version",
        ),
        pytest.param(
            "apiVersion: v1\nmetadata: {name: a}\n", 1, "object a", "kind", "needs its kind", id="no-kind"
        ),
        pytest.param(
            "apiVersion: apps/v1\nkind: Pod\nmetadata: {name: a}\n",
            1,
            "Pod a",
            "apiVersion",
            "a Pod has apiVersion v1",
            id="another-group",
        ),
        pytest.param(
            "apiVersion: scheduling.volcano.sh/v1alpha2\nkind: Queue\nmetadata: {name: a}\n",
            1,
            "Queue a",
            "apiVersion",
            "is read as scheduling.volcano.sh/v1beta1",
            id="another-version",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: 5\n",
            4,
            "Pod 5",
            "metadata.name",
            "must be a text",
            id="a-number-for-a-name",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a,\n", 3, "Pod a", "", "not valid YAML", id="cut-off"
        ),
    ],
)
def test_bad_input_is_told_and_the_rest_is_planned(
    text: str, at: int, name: str, field: str, says: str
) -> None:
    report = planned(text)
    assert binds(report) == ["ml/good"]
    [error] = report["errors"]
    place = {key: error[key] for key in ("file", "line", "object", "field")}
    assert place == {"file": "in.yaml", "line": line(at), "object": name, "field": field}
    assert says in error["message"]


@pytest.mark.parametrize(
    "head",
    ["v1\nkind: Node", "v1\nkind: Pod", *(f"{VOLCANO[12:]}\nkind: {kind}" for kind in ("Queue", "PodGroup"))],
)
def test_names_longer_than_kubernetes_allows(head: str) -> None:
    report = planned(f"apiVersion: {head}\nmetadata: {{name: {LONG}}}\n")
    assert binds(report) == ["ml/good"]
    [error] = report["errors"]
    assert (error["line"], error["field"]) == (line(3), "metadata.name")
    assert "at most 253 characters, not 10000" in error["message"]
    assert len(error["object"]) < 100


def test_a_job_is_blamed_for_what_its_pods_have_wrong() -> None:
    report = planned("""\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: j, namespace: ml}
spec:
  queue: nowhere
  tasks:
  - {name: a, replicas: 1, template: {spec: {containers: [{name: main}]}}}
  - name: b
    replicas: 3
    template:
      spec:
        containers:
        - name: main
          resources: {requests: {cpu: abc}}
""")
    places = [(error["line"], error["object"], error["field"]) for error in report["errors"]]
    assert places == [
        (line(5), "Job ml/j", "spec.queue"),
        (line(14), "Job ml/j", "spec.tasks[1].template.spec.containers[0].resources.requests.cpu"),
    ]


def test_pods_of_a_group_that_nobody_made() -> None:
    report = planned("""\
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: ml, annotations: {scheduling.k8s.io/group-name: ghost}}
spec: {containers: []}
""")
    [error] = report["errors"]
    assert (error["object"], error["line"]) == ("Pod ml/a", line(3))
    assert error["message"].startswith("PodGroup ml/ghost does not exist; add it")
    assert "does not exist" in report["pending"]["ml/a"]["reason"]


def test_an_inner_queue_takes_no_jobs() -> None:
    report = planned(f"""\
{VOLCANO}
kind: Queue
metadata: {{name: top}}
---
{VOLCANO}
kind: Queue
metadata: {{name: below}}
spec: {{parent: top}}
---
{VOLCANO}
kind: PodGroup
metadata: {{name: g, namespace: ml}}
spec: {{queue: top}}
""")
    [error] = report["errors"]
    assert (error["line"], error["field"]) == (line(13), "spec.queue")
    assert "has child queues" in error["message"]


@pytest.mark.parametrize(
    ("text", "at", "name", "field", "says"),
    [
        (
            f"{VOLCANO}\nkind: Queue\nmetadata: {{name: q}}\nspec:\n  policy: besteffort\n",
            5,
            "Queue q",
            "spec.policy",
            "no field of this kind",
        ),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: c}\n",
            2,
            "Secret c",
            "kind",
            "don't read kind",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  schedulerName: volcano\n"
            "  priorityClassName: high\n  containers: []\n",
            6,
            "Pod p",
            "spec.priorityClassName",
            "priority class high does not exist",
        ),
        (
            f"{VOLCANO}\nkind: PodGroup\nmetadata: {{name: g, namespace: ml}}\nspec: {{minMember: 2}}\n",
            1,
            "PodGroup ml/g",
            "",
            "has no pods",
        ),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 4, pods: 10}}\n",
            1,
            "Node n1",
            "",
            "given twice; what counts is this one, not in.yaml:1",
        ),
    ],
)
def test_what_is_merely_odd_is_a_warning(text: str, at: int, name: str, field: str, says: str) -> None:
    report = planned(text)
    assert report["errors"] == []
    found = [(w["line"], w["object"], w["field"]) for w in report["warnings"] if says in w["message"]]
    assert found == [(line(at), name, field)]


def test_kinds_nobody_reads_are_warned_of_once() -> None:
    report = planned(
        "".join(f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s{i}}}\n---\n" for i in range(3))
    )
    assert [w["message"] for w in report["warnings"]] == [
        "plans don't read kind Secret: it is ignored; so are 2 others of the kind"
    ]


def test_a_job_of_kubernetes_is_no_job_of_ours() -> None:
    report = planned("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n")
    assert report["errors"] == []
    assert [w["field"] for w in report["warnings"]] == ["kind"]


PODS = "{spec: {schedulerName: volcano, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}"


@pytest.mark.parametrize(
    ("head", "spec", "started"),
    [
        ("apiVersion: batch/v1\nkind: Job", "parallelism: 3, completions: 9", 3),
        ("apiVersion: batch/v1\nkind: Job", "parallelism: 3, completions: 2", 2),
        ("apiVersion: batch/v1\nkind: Job", "parallelism: 3, suspend: true", 0),
        ("apiVersion: apps/v1\nkind: Deployment", "replicas: 2", 2),
        ("apiVersion: apps/v1\nkind: StatefulSet", "serviceName: s", 1),
        ("apiVersion: apps/v1\nkind: ReplicaSet", "replicas: 0", 0),
    ],
)
def test_pods_of_kubernetes_own_workloads_are_planned(head: str, spec: str, started: int) -> None:
    text = f"{head}\nmetadata: {{name: w, namespace: ml}}\nspec: {{{spec}, template: {PODS}}}\n"
    report = planned(text)
    assert (report["errors"], report["warnings"]) == ([], [])
    assert set(binds(report)) == {"ml/good", *(f"ml/w-{at}" for at in range(started))}


def test_a_fault_in_a_template_is_told_where_it_is_written() -> None:
    pods = PODS.replace("cpu: 1", "cpu: lots")
    text = f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: w}}\nspec:\n  template: {pods}\n"
    [error] = planned(text)["errors"]
    assert (error["object"], error["field"]) == (
        "Deployment w",
        "spec.template.spec.containers[0].resources.requests.cpu",
    )


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (f"spec: {{template: {PODS}}}\nstatus: {{replicas: 1}}\n", "it is at work already"),
        (f"spec: {{replicas: two, template: {PODS}}}\n", "how many it wants is no whole number"),
        ("spec: {replicas: 2}\n", "it has no template for pods"),
    ],
)
def test_a_workload_of_which_no_pods_are_made_is_told_why(more: str, why: str) -> None:
    report = planned(f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: w}}\n{more}")
    [warning] = report["warnings"]
    assert warning["message"].startswith(f"no pods are planned for this Deployment: {why}")


def test_a_workload_of_another_scheduler_is_told_as_such() -> None:
    pods = PODS.replace("schedulerName: volcano, ", "")
    text = f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: w}}\nspec:\n  template: {pods}\n"
    [warning] = planned(text)["warnings"]
    assert warning["field"] == "spec.template.spec.schedulerName"
    assert "waits for scheduler default-scheduler" in warning["message"]


def test_the_clock_moves_only_where_the_cluster_settles() -> None:
    assert planned("", cycles=3)["now"] == "2026-01-01T00:00:00Z"
    assert planned("", cycles=3, settle=True)["now"] == "2026-01-01T00:00:02Z"


STAGES = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: j, namespace: ml}
spec:
  minAvailable: 3
  tasks:
  - name: worker
    replicas: 2
    template: {spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}}
  - name: master
    replicas: 1
    dependsOn: {name: [worker]}
    template: {spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}}
"""


def test_a_task_starts_once_those_it_waits_for_run() -> None:
    report = planned(STAGES, cycles=3, settle=True)
    assert report["errors"] == []
    started = {decision["pod"]: decision["cycle"] for decision in report["decisions"]}
    assert started == {"ml/good": 1, "ml/j-worker-0": 1, "ml/j-worker-1": 1, "ml/j-master-0": 2}
    [group] = [group for group in report["podGroups"] if group["name"] == "ml/j"]
    assert (group["minMember"], group["phase"]) == (3, "Running")


def test_without_settling_nothing_starts_later() -> None:
    assert "ml/j-master-0" not in binds(planned(STAGES, cycles=3))


def test_a_configuration_that_cannot_be_carried_out_is_told_by_line() -> None:
    text = "actions: allocate\ntiers:\n- plugins:\n  - name: gangg\n"
    with pytest.raises(ConfigError) as caught:
        load_scheduler_config(text, known_plugins(), known_actions())
    report = not_planned(read_text(GOOD, "in.yaml"), caught.value.messages, Text("conf.yaml", text), NOW)
    assert report["decisions"] == []
    [error] = report["errors"]
    assert (error["file"], error["line"], error["field"]) == ("conf.yaml", 4, "tiers[0].plugins[0].name")
    assert 'unknown plugin "gangg"' in error["message"]
    assert "known are binpack" in error["message"]
