"""What owners of pods need next."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.simulator.workloads.plan import HASH, plan_deployment, plan_job, plan_replicas

NOW = "2026-01-01T00:00:00Z"
Document = dict[str, Any]


def job(**spec: Any) -> Document:
    template = {"metadata": {"annotations": {"a": "b"}}, "spec": {"containers": []}}
    meta = {"name": "j", "namespace": "ml", "uid": "u"}
    spec = {"parallelism": 2, "completions": 3, "template": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def pods(*phases: str) -> list[Document]:
    made = []
    for number, phase in enumerate(phases):
        meta: Document = {"name": f"j-{number}"}
        if phase == "Leaving":
            meta["deletionTimestamp"] = NOW
        ready = [{"type": "Ready", "status": "True" if phase == "Running" else "False"}]
        made.append({"metadata": meta, "status": {"phase": phase, "conditions": ready}})
    return made


@pytest.mark.parametrize(
    ("phases", "made"),
    [
        ([], 2),
        (["Running"], 1),
        (["Running", "Running"], 0),
        (["Running", "Leaving"], 1),
        (["Succeeded", "Succeeded"], 1),
        (["Succeeded", "Succeeded", "Running"], 0),
        (["Failed", "Running"], 1),
    ],
)
def test_a_job_keeps_up_its_parallelism_until_enough_succeeded(phases: list[str], made: int) -> None:
    assert len(plan_job(job(), pods(*phases), NOW).make) == made


def test_pods_of_a_job_are_its_own_and_carry_its_annotations() -> None:
    (pod, _) = plan_job(job(), [], NOW).make
    assert pod["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert pod["metadata"]["labels"]["job-name"] == "j"
    assert pod["metadata"]["annotations"] == {"a": "b"}
    assert pod["metadata"]["namespace"] == "ml"


def test_a_job_is_complete_when_enough_succeeded() -> None:
    plan = plan_job(job(), pods("Succeeded", "Succeeded", "Succeeded"), NOW)
    assert [one["type"] for one in plan.status["conditions"]] == ["Complete"]
    assert (plan.make, plan.status["succeeded"]) == ([], 3)


def test_a_job_fails_after_its_backoff_limit_and_ends_its_pods() -> None:
    plan = plan_job(job(backoffLimit=1), pods("Failed", "Failed", "Running"), NOW)
    assert [one["reason"] for one in plan.status["conditions"]] == ["BackoffLimitExceeded"]
    assert len(plan.delete) == 1
    assert not plan.make


def test_a_suspended_job_has_no_pods() -> None:
    plan = plan_job(job(suspend=True), pods("Running", "Succeeded"), NOW)
    assert (plan.make, len(plan.delete)) == ([], 1)


def test_a_job_without_completions_makes_no_more_after_the_first_success() -> None:
    assert len(plan_job(job(completions=None), [], NOW).make) == 2
    plan = plan_job(job(completions=None), pods("Succeeded", "Running"), NOW)
    assert (plan.make, plan.delete, "conditions" in plan.status) == ([], [], False)
    done = plan_job(job(completions=None), pods("Succeeded", "Succeeded"), NOW)
    assert done.status["conditions"][0]["type"] == "Complete"


def test_a_job_with_less_parallelism_ends_what_is_too_much() -> None:
    assert len(plan_job(job(parallelism=1), pods("Running", "Running", "Running"), NOW).delete) == 2


def replicas(count: int) -> Document:
    meta = {"name": "r", "namespace": "ml", "uid": "u", "generation": 4}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": []}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": meta,
        "spec": {"replicas": count, "template": template},
    }


def test_a_replica_set_has_as_many_pods_as_it_says_and_gives_up_those_not_ready() -> None:
    assert len(plan_replicas(replicas(3), pods("Running", "Failed", "Leaving"), NOW).make) == 2
    plan = plan_replicas(replicas(1), pods("Pending", "Running"), NOW)
    assert [pod["status"]["phase"] for pod in plan.delete] == ["Pending"]
    assert plan.status["readyReplicas"] == 1
    assert plan.status["observedGeneration"] == 4


def deployment(image: str = "one", count: int = 2) -> Document:
    made = replicas(count)
    made["kind"], made["metadata"]["name"] = "Deployment", "d"
    made["spec"]["template"]["spec"]["containers"] = [{"name": "m", "image": image}]
    return made


def test_a_deployment_has_one_replica_set_for_its_template() -> None:
    (made,) = plan_deployment(deployment(), [], NOW).make
    assert made["metadata"]["name"].startswith("d-")
    assert made["spec"]["replicas"] == 2
    assert plan_deployment(deployment(), [made], NOW).make == []


def test_a_new_template_replaces_the_old_one_when_it_is_ready() -> None:
    (old,) = plan_deployment(deployment("one"), [], NOW).make
    (new,) = plan_deployment(deployment("two"), [old], NOW).make
    assert new["metadata"]["labels"][HASH] != old["metadata"]["labels"][HASH]
    assert plan_deployment(deployment("two"), [old, new], NOW).scale == []
    new["status"] = {"readyReplicas": 2, "replicas": 2, "availableReplicas": 2}
    plan = plan_deployment(deployment("two"), [old, new], NOW)
    assert plan.scale == [(old, 0)]
    assert plan.status["conditions"][0]["status"] == "True"


def test_a_deployment_scales_its_replica_set() -> None:
    (current,) = plan_deployment(deployment(count=2), [], NOW).make
    assert plan_deployment(deployment(count=5), [current], NOW).scale == [(current, 5)]
