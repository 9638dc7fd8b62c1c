"""Bad input as users meet it: every fault names its object and place, none is told twice or of another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.simulator.test_planning import GOOD, VOLCANO, binds, line, planned
from volcano_py.simulator import job_objects, planning
from volcano_py.simulator.manifests import Text, read_paths, read_text
from volcano_py.simulator.planning import not_planned

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ml}\n"
LONG = "x" * 10_000


def told(report: dict[str, Any], kind: str) -> list[tuple[int, str, str]]:
    return [(fault["line"], fault["object"], fault["field"]) for fault in report[kind]]


def test_a_pod_in_a_missing_group_is_the_one_to_mend() -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  namespace: ml\n  annotations:\n"
        "    scheduling.k8s.io/group-name: ghost\nspec: {containers: [{name: main}]}\n---\n"
    )
    report = planned(text + text.replace("name: a", "name: b", 1))
    [fault] = report["errors"]
    assert fault["object"] == "Pod ml/a"
    assert fault["line"] == line(7)
    assert fault["field"] == "metadata.annotations[scheduling.k8s.io/group-name]"
    assert fault["message"].startswith("PodGroup ml/ghost does not exist, and 1 more pod names it")


def test_a_pod_that_is_wrong_is_told_once() -> None:
    report = planned(
        POD + "spec: {schedulerName: volcano, containers: [{name: c}], tolerations: [{operator: No}]}"
    )
    assert told(report, "errors") == [(line(4), "Pod ml/a", "spec.tolerations[0].operator")]
    assert report["warnings"] == []


def test_a_node_that_is_not_there_is_told_once() -> None:
    text = POD + "spec:\n  nodeName: ghost\n  containers: [{name: c}]\nstatus: {phase: Running}\n---\n"
    report = planned(text + text.replace("name: a", "name: b", 1))
    assert told(report, "warnings") == [(line(5), "Pod ml/a", "spec.nodeName")]
    assert "node ghost, where this and 1 more pod run, does not exist" in report["warnings"][0]["message"]


def test_a_finished_pod_needs_no_node() -> None:
    report = planned(POD + "spec: {nodeName: ghost, containers: [{name: c}]}\nstatus: {phase: Succeeded}")
    assert report["warnings"] == []


@pytest.mark.parametrize(
    "text",
    [
        POD.replace("namespace: ml}", f"annotations: {{scheduling.k8s.io/group-name: {LONG}}}}}"),
        f"{VOLCANO}\nkind: PodGroup\nmetadata: {{name: a}}\nspec: {{queue: {LONG}}}",
        f"{VOLCANO}\nkind: Queue\nmetadata: {{name: a}}\nspec: {{parent: {LONG}}}",
        POD + f"spec: {{schedulerName: volcano, nodeName: {LONG}, containers: [{{name: c}}]}}",
        POD + f"spec: {{schedulerName: volcano, priorityClassName: {LONG}, containers: [{{name: c}}]}}",
    ],
    ids=["group", "queue", "parent", "node", "priority"],
)
def test_a_name_that_nothing_can_have_fills_no_screen(text: str) -> None:
    report = planned(text)
    [fault] = report["errors"]
    assert "at most 253 characters, not 10000" in fault["message"]
    assert all(len(str(part)) < 300 for part in (report["errors"], report["warnings"], report["pending"]))
    assert binds(report) == ["ml/good"]


def test_more_pods_than_a_cluster_holds_are_not_left_out_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that is as small as a test can bear: planning 150,000 pods takes a while."""
    most = 100
    monkeypatch.setattr(job_objects, "MOST_PODS", most)
    monkeypatch.setattr(planning, "MOST_PODS", most)
    text = (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec:\n  tasks:\n"
        f"  - replicas: {most + 1}\n    template: {{spec: {{containers: [{{name: c}}]}}}}\n"
    )
    report = planned(text)
    assert told(report, "errors") == [(line(6), "Job j", "spec.tasks[0].replicas")]
    assert str(most) in report["errors"][0]["message"]
    assert binds(report) == ["ml/good"]


def test_a_text_that_is_cut_off_names_its_object() -> None:
    text = GOOD + POD + "spec:\n  containers: [{name: c, resources: {requ"
    _, [fault] = read_text(text, "in.yaml")
    assert fault.name == "Pod ml/a"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("apiVersion: v1\nkind: Pod\nmetadata:\n  labels: {a: b}\n  name: a\nspec: {x: [", "Pod a"),
        ('{"kind": "Pod", "metadata": {"name": "a", "namespace": "ml"}, "spec": {', "Pod ml/a"),
        ("kind: Pod\nspec: {containers: [{name: c, x: [", "Pod (no name)"),
        ("x: [", ""),
    ],
)
def test_the_name_before_the_cut(text: str, name: str) -> None:
    _, [fault] = read_text(text, "in.json" if text.startswith("{") else "in.yaml")
    assert fault.name == name


def test_a_file_that_holds_nothing(tmp_path: Path) -> None:
    empty, notes = tmp_path / "empty.yaml", tmp_path / "notes.yaml"
    empty.write_text("")
    notes.write_text("# nothing yet\n---\n")
    _, faults = read_paths([str(empty), str(notes)])
    assert [(fault.file, fault.message) for fault in faults] == [
        (str(empty), "holds no object"),
        (str(notes), "holds no object"),
    ]


def test_in_a_folder_some_files_may_hold_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes.yaml").write_text("# rendered to nothing\n")
    (tmp_path / "pod.yaml").write_text(POD)
    manifests, faults = read_paths([str(tmp_path)])
    assert len(manifests) == 1
    assert faults == []


def test_an_argument_that_nobody_knows_is_told_at_its_line() -> None:
    text = (
        "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n- plugins:\n  - name: binpack\n"
        "    arguments:\n      binpack.cpu: 1\n      binpack.wieght: 3\n"
    )
    message = 'plugin binpack: unknown argument "binpack.wieght" (its value is 3)'
    report = not_planned(([], []), [message], Text("conf.yaml", text), 0.0)
    [fault] = report["errors"]
    assert (fault["line"], fault["field"]) == (9, "tiers[1].plugins[0].arguments[binpack.wieght]")
    assert fault["message"].startswith("unknown argument")


def test_pods_of_another_scheduler_are_not_planned_and_that_is_said() -> None:
    text = POD + "spec: {schedulerName: default-scheduler, containers: [{name: c}]}\n---\n"
    report = planned(text + text.replace("name: a", "name: b", 1))
    [warning] = [one for one in report["warnings"] if one["field"] == "spec.schedulerName"]
    assert warning["message"].startswith("waits for scheduler default-scheduler, not for us")
    assert warning["message"].endswith("is not planned (2 such objects)")
    assert report["errors"] == []


SAID = "annotations: {volcano.sh/preemptable: maybe, scheduling.volcano.sh/queue-name: gone}"
POD_SPEC = "{schedulerName: volcano, containers: [{name: c, image: x}]}"


@pytest.mark.parametrize(
    ("text", "name", "at", "inside"),
    [
        (f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  {SAID}\nspec: {POD_SPEC}\n", "Pod p", 5, ""),
        (
            f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: d}}\nspec:\n  template:\n"
            f"    metadata:\n      {SAID}\n    spec: {POD_SPEC}\n",
            "Deployment d",
            7,
            "spec.template.",
        ),
        (
            f"apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: j\n  {SAID}\nspec: {{template: {{spec: "
            f"{POD_SPEC}}}}}\n",
            "Job j",
            5,
            "",
        ),
    ],
    ids=["pod", "template", "owner"],
)
def test_what_a_made_group_says_wrong_is_told_of_the_annotation_that_says_so(
    text: str, name: str, at: int, inside: str
) -> None:
    report = planned(text)
    [error] = report["errors"]
    field = f"{inside}metadata.annotations[scheduling.volcano.sh/queue-name]"
    assert (error["line"], error["object"], error["field"]) == (line(at), name, field)
    told = [(w["line"], w["field"]) for w in report["warnings"] if "neither true nor false" in w["message"]]
    assert told == [(line(at), f"{inside}metadata.annotations[volcano.sh/preemptable]")]
