"""Jobs and single pods become what Volcano's controllers would make of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.clusters import Document, engine, group, node, pod
from volcano_py.crds.schedulerconfig import DEFAULT_CONFIG
from volcano_py.simulator.expand import expand

NAMES = ("volcano-py", "volcano")
GROUP = "scheduling.k8s.io/group-name"


def template(cpu: str = "1", **spec: Any) -> Document:
    requests = {"cpu": cpu}
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}], **spec}}


def task(name: str, replicas: int, *, cpu: str = "1", **more: Any) -> Document:
    return {"name": name, "replicas": replicas, "template": template(cpu), **more}


def job(
    *tasks: Document, meta: Document | None = None, status: Document | None = None, **spec: Any
) -> Document:
    document: Document = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "ml", **(meta or {})},
        "spec": {"tasks": list(tasks), **spec},
    }
    return document | ({"status": status} if status else {})


def single(name: str, *, cpu: Any = "1", meta: Document | None = None, **spec: Any) -> Document:
    """A pod of ours that names no group."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", **(meta or {})},
        "spec": {"schedulerName": "volcano", **template(cpu)["spec"], **spec},
    }


def of_kind(kind: str, documents: list[Document]) -> list[Document]:
    return [document for document in documents if document["kind"] == kind]


def names(documents: list[Document]) -> list[str]:
    return [document["metadata"]["name"] for document in documents]


def the_group(*documents: Document) -> Document:
    (found,) = of_kind("PodGroup", expand(documents, NAMES))
    return found


# -- Jobs ---------------------------------------------------------------------------------------


def test_a_job_becomes_a_group_and_its_pods() -> None:
    made = expand([job(task("ps", 1), task("worker", 2), queue="research", minAvailable=2)], NAMES)
    assert [d["kind"] for d in made] == ["PodGroup", "Pod", "Pod", "Pod"]
    assert names(made) == ["train", "train-ps-0", "train-worker-0", "train-worker-1"]
    assert made[0]["spec"] == {
        "minMember": 2,
        "minTaskMember": {"ps": 1, "worker": 2},
        "minResources": {"cpu": "2"},
        "queue": "research",
    }
    assert "status" not in made[0], "the gate decides: the group starts Pending"


def test_pods_say_what_they_belong_to() -> None:
    meta = {"uid": "u-1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    made = expand([job(task("worker", 2), meta=meta, status={"version": 3}, queue="research")], NAMES)
    last = made[-1]
    assert names(made)[0] == "train-u-1"
    assert last["metadata"]["annotations"] == {
        GROUP: "train-u-1",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/job-name": "train",
        "volcano.sh/queue-name": "research",
        "volcano.sh/task-index": "1",
        "volcano.sh/job-version": "3",
    }
    assert last["metadata"]["namespace"] == "ml"
    assert last["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert last["metadata"]["ownerReferences"][0]["uid"] == "u-1"
    assert last["spec"]["schedulerName"] == "volcano"


def test_the_template_has_the_last_word_on_its_pods() -> None:
    own = template(schedulerName="other", priorityClassName="low")
    own["metadata"] = {"labels": {"app": "x"}, "annotations": {"note": "y"}}
    made = expand(
        [job({"replicas": 1, "template": own}, priorityClassName="high", schedulerName="volcano-py")], NAMES
    )
    assert made[1]["spec"]["schedulerName"] == "other"
    assert made[1]["spec"]["priorityClassName"] == "low"
    assert made[1]["metadata"]["labels"]["app"] == "x"
    assert made[1]["metadata"]["annotations"]["note"] == "y"
    assert made[0]["spec"]["priorityClassName"] == "high"


def test_what_the_job_says_counts_where_the_template_is_silent() -> None:
    made = expand([job(task("", 1), priorityClassName="high", schedulerName="volcano-py")], NAMES)
    assert names(made) == ["train", "train-default0-0"]
    assert made[1]["spec"]["schedulerName"] == "volcano-py"
    assert made[1]["spec"]["priorityClassName"] == "high"


def test_the_gang_is_all_pods_unless_something_is_said() -> None:
    assert the_group(job(task("a", 2), task("b", 3)))["spec"]["minMember"] == 5
    assert the_group(job(task("a", 2, minAvailable=1), task("b", 3)))["spec"]["minMember"] == 4
    assert the_group(job(task("a", 2), task("b", 3), minAvailable=3))["spec"]["minMember"] == 3


def test_partitions_become_sub_groups() -> None:
    policy = {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2}
    made = expand([job(task("w", 6, partitionPolicy=policy))], NAMES)
    assert made[0]["spec"]["minMember"] == 4
    assert made[0]["spec"]["subGroupPolicy"] == [
        {
            "name": "w",
            "subGroupSize": 2,
            "minSubGroups": 2,
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "w"}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
        }
    ]
    labels = [d["metadata"]["labels"] for d in of_kind("Pod", made)]
    assert [label["volcano.sh/partition-id"] for label in labels] == ["0", "0", "1", "1", "2", "2"]
    assert {label["volcano.sh/task-spec"] for label in labels} == {"w"}


def test_the_jobs_notes_reach_its_group() -> None:
    meta = {
        "labels": {"team": "a"},
        "annotations": {
            "volcano.sh/preemptable": "false",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
        },
    }
    topology = {"mode": "hard", "highestTierAllowed": 1}
    made = the_group(job(task("w", 1), meta=meta, networkTopology=topology))
    assert made["metadata"]["annotations"] == {"volcano.sh/preemptable": "false"}
    assert made["metadata"]["labels"] == {"team": "a"}
    assert made["spec"]["networkTopology"] == topology


def priority_class(name: str, value: int) -> Document:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


@pytest.mark.parametrize(
    ("minimum", "cpu"),
    [
        (2, "8"),  # below the roles' minimums: the first two by priority, all replicas of which count
        (5, "14"),  # one small and two large, then the third large, then a second small one
        (3, "9"),  # the minimums of both roles
    ],
)
def test_min_resources_counts_pods_of_high_priority_first(minimum: int, cpu: str) -> None:
    large = task("large", 3, cpu="4", minAvailable=2)
    large["template"]["spec"]["priorityClassName"] = "high"
    tasks = [task("small", 3, minAvailable=1), large]
    made = the_group(priority_class("high", 100), job(*tasks, minAvailable=minimum))
    assert made["spec"]["minResources"] == {"cpu": cpu}


def test_a_dependent_task_has_no_pods_and_is_not_waited_for() -> None:
    tasks = [
        task("master", 4, minAvailable=2),
        task("work", 2, minAvailable=1, dependsOn={"name": ["master"]}),
    ]
    made = expand([job(*tasks, minAvailable=3)], NAMES)
    assert names(of_kind("Pod", made)) == [f"train-master-{i}" for i in range(4)]
    assert made[0]["spec"]["minMember"] == 2
    assert made[0]["spec"]["minTaskMember"] == {"master": 2}
    assert made[0]["spec"]["minResources"] == {"cpu": "2"}


def running(name: str, *, ready: bool = True) -> Document:
    status = {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    return pod(name, "train", on="n1", status=status)


def test_a_dependent_task_starts_when_enough_of_the_other_run() -> None:
    tasks = [task("master", 2), task("work", 2, dependsOn={"name": ["master"]})]
    both = [running("train-master-0"), running("train-master-1")]
    half = [running("train-master-0"), running("train-master-1", ready=False)]
    assert "train-work-1" in names(expand([*both, job(*tasks)], NAMES))
    assert "train-work-1" not in names(expand([*half, job(*tasks)], NAMES))


@pytest.mark.parametrize(("iteration", "starts"), [("any", True), ("all", False), ("", False)])
def test_any_or_all_of_the_tasks_waited_for(iteration: str, starts: bool) -> None:
    waits = {"name": ["a", "b"], **({"iteration": iteration} if iteration else {})}
    tasks = [task("a", 1), task("b", 1), task("c", 1, dependsOn=waits)]
    made = expand([running("train-a-0"), job(*tasks)], NAMES)
    assert ("train-c-0" in names(made)) is starts


def test_what_is_there_already_wins() -> None:
    known = [group("train", 1, phase="Inqueue"), running("train-w-0")]
    made = expand([job(task("w", 2)), *known], NAMES)
    assert names(made) == ["train-w-1", "train", "train-w-0"]
    assert made[1] is known[0]
    assert made[2] is known[1]


def test_a_group_whose_members_already_run_has_passed_the_gate() -> None:
    pods = [running(f"train-w-{i}") for i in range(2)]
    assert the_group(job(task("w", 3), minAvailable=2), *pods)["status"] == {"phase": "Running"}
    assert "status" not in the_group(job(task("w", 3), minAvailable=3), *pods)


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Aborted", "Terminating"])
def test_a_job_that_ended_makes_nothing(phase: str) -> None:
    assert expand([job(task("w", 2), status={"state": {"phase": phase}})], NAMES) == []


def test_a_job_being_deleted_makes_nothing() -> None:
    assert expand([job(task("w", 2), meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})], NAMES) == []


def test_jobs_that_only_have_a_prefix_are_numbered() -> None:
    nameless = job(task("w", 1))
    nameless["metadata"] = {"generateName": "run-"}
    made = expand([nameless, copy.deepcopy(nameless)], NAMES)
    assert names(of_kind("PodGroup", made)) == ["run-1", "run-2"]


def test_volumes_of_the_job_become_claims_that_all_pods_use() -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"mountPath": "/data", "volumeClaim": claim}, {"mountPath": "/in", "volumeClaimName": "mine"}]
    made = expand([job(task("w", 1), volumes=volumes)], NAMES)
    assert names(of_kind("PersistentVolumeClaim", made)) == ["train-pvc-0"]
    used = [v["persistentVolumeClaim"]["claimName"] for v in made[-1]["spec"]["volumes"]]
    assert used == ["train-pvc-0", "mine"]


def test_a_bad_job_is_passed_on_as_it_is() -> None:
    bad = job(task("w", 2), minAvailable=3)
    assert expand([bad], NAMES) == [bad]


def test_a_bad_template_is_complained_of_once() -> None:
    made = expand([job(task("w", 50, cpu="abc"))], NAMES)
    assert names(made) == ["train", "train-w-0"]
    (problem,) = engine().apply(made[1])
    assert problem.field == "spec.containers[0].resources.requests.cpu"


def test_nothing_given_is_changed() -> None:
    given = [job(task("w", 2), volumes=[{"mountPath": "/in", "volumeClaimName": "mine"}]), single("a")]
    before = copy.deepcopy(given)
    expand(given, NAMES)
    assert given == before


# -- single pods --------------------------------------------------------------------------------


def test_a_single_pod_gets_a_group_of_one() -> None:
    made = expand([single("a", cpu="500m", priorityClassName="high")], NAMES)
    assert names(made) == ["podgroup-a", "a"]
    assert made[0]["spec"] == {
        "minMember": 1,
        "minResources": {"cpu": "500m"},
        "priorityClassName": "high",
        "queue": "default",
    }
    assert made[1]["metadata"]["annotations"] == {GROUP: "podgroup-a"}


def test_a_single_pods_notes_reach_its_group() -> None:
    notes = {
        "scheduling.volcano.sh/group-min-member": "3",
        "scheduling.volcano.sh/queue-name": "research",
        "volcano.sh/preemptable": "true",
        "volcano.sh/network-topology-mode": "hard",
        "volcano.sh/network-topology-highest-tier": "2",
        "other": "x",
    }
    made = the_group(single("a", meta={"uid": "u-1", "annotations": notes}))
    assert made["metadata"]["name"] == "podgroup-u-1"
    assert made["spec"]["minMember"] == 3
    assert made["spec"]["minResources"] == {"cpu": "3"}
    assert made["spec"]["queue"] == "research"
    assert made["spec"]["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}
    assert made["metadata"]["annotations"]["volcano.sh/preemptable"] == "true"
    assert "other" not in made["metadata"]["annotations"]


def test_pods_of_one_controller_share_a_group_and_inherit_from_it() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs-1", "controller": True}
    notes = {"volcano.sh/preemptable": "false", "scheduling.volcano.sh/group-min-member": "2"}
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "ml", "annotations": notes},
    }
    pods = [single(name, meta={"ownerReferences": [owner]}) for name in ("a", "b")]
    made = expand([*pods, replica_set], NAMES)
    assert names(made) == ["podgroup-rs-1", "a", "b", "web"]
    assert made[0]["spec"]["minMember"] == 2
    assert made[0]["metadata"]["annotations"] == {"volcano.sh/preemptable": "false"}
    assert {d["metadata"]["annotations"][GROUP] for d in made[1:3]} == {"podgroup-rs-1"}


def test_the_namespace_names_the_queue_of_those_that_name_none() -> None:
    notes = {"scheduling.volcano.sh/queue-name": "team"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "annotations": notes}}
    assert the_group(space, single("a"))["spec"]["queue"] == "team"
    assert the_group(space, job(task("w", 1)))["spec"]["queue"] == "team"
    assert the_group(space, job(task("w", 1), queue="own"))["spec"]["queue"] == "own"


@pytest.mark.parametrize(
    "document",
    [
        pod("a", "g"),
        single("a", schedulerName="default-scheduler"),
        single("a", cpu="abc"),
        {"apiVersion": "v1", "kind": "Pod", "metadata": "x", "spec": []},
        {"kind": None},
        node("n1"),
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {}},
    ],
)
def test_whoever_needs_nothing_is_passed_on_itself(document: Document) -> None:
    (made,) = expand([document], NAMES)
    assert made is document


def test_a_minimum_that_is_no_number_is_the_groups_fault() -> None:
    notes = {"scheduling.volcano.sh/group-min-member": "many"}
    made = the_group(single("a", meta={"annotations": notes}))
    (problem,) = engine().apply(made)
    assert problem.field == "spec.minMember"


def test_a_single_pod_applied_again_does_not_send_its_group_back_to_the_gate() -> None:
    made = engine(node("n1"), config=DEFAULT_CONFIG)
    for _ in range(2):
        for document in expand([single("a")], NAMES):
            assert not made.apply(document)
        made.cycle(0.0)
    job_of = made.state.jobs.named("ml/podgroup-a")
    assert job_of is not None
    assert job_of.phase == "Running"


# -- workloads of Kubernetes -----------------------------------------------------------------------


def workload(kind: str, replicas: int, *, meta: Document | None = None, **more: Any) -> Document:
    version = "batch/v1" if kind == "Job" else "apps/v1"
    spec = {"parallelism" if kind == "Job" else "replicas": replicas, "template": template(**MINE)}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "w", "namespace": "ml", **(meta or {})},
        "spec": spec,
        **more,
    }


MINE: dict[str, Any] = {"schedulerName": "volcano"}


def owned(name: str, kind: str, owner: str, phase: str = "Running") -> Document:
    references = [{"kind": kind, "name": owner, "controller": True}]
    return single(name, meta={"ownerReferences": references}) | {"status": {"phase": phase}}


def test_pods_of_a_deployment_share_a_group_as_its_owner_says() -> None:
    notes = {"scheduling.volcano.sh/group-min-member": "2", "scheduling.volcano.sh/queue-name": "lab"}
    made = expand([workload("Deployment", 3, meta={"annotations": notes})], NAMES)
    assert [d["kind"] for d in made] == ["PodGroup", "Pod", "Pod", "Pod"]
    assert (made[0]["spec"]["minMember"], made[0]["spec"]["queue"]) == (2, "lab")


def test_what_a_workload_has_already_is_not_made_again() -> None:
    there = [owned("w-0", "Job", "w"), owned("x", "Job", "other"), owned("y", "Job", "w", "Failed")]
    assert names(expand([*there, workload("Job", 3)], NAMES))[-2:] == ["w-1", "w-2"]
    sets = [owned("w-7f-a", "ReplicaSet", "w-7f"), owned("w-x-7f-a", "ReplicaSet", "w-x-7f")]
    pods = of_kind("Pod", expand([*sets, workload("Deployment", 2)], NAMES))
    assert names(pods) == ["w-7f-a", "w-x-7f-a", "w-0"]


@pytest.mark.parametrize(
    "document",
    [
        workload("Job", 2, status={"active": 2}),
        workload("ReplicaSet", 2, meta={"ownerReferences": [{"kind": "Deployment", "name": "d"}]}),
        workload("Deployment", 2) | {"apiVersion": "example.com/v1"},
        workload("Deployment", 2) | {"spec": {"replicas": "two", "template": template()}},
        workload("Deployment", 2) | {"spec": {"replicas": 2}},
    ],
    ids=["at work", "owned", "another's", "unsound", "no template"],
)
def test_other_workloads_are_passed_on(document: Document) -> None:
    assert expand([document], NAMES) == [document]
