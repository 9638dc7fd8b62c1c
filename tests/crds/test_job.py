"""Jobs, and what is made of or from them: counts agree, triggers are clear, orders can be kept."""

from typing import Any

import pytest

from tests.crds.objects import TASK, faults, job, manifest, parsed
from volcano_py.crds.base import unknown_fields
from volcano_py.crds.job import Job, task_name


def test_a_volcano_users_job_as_it_stands() -> None:
    container = {"name": "c", "image": "i", "resources": {"limits": {"huawei.com/Ascend910": 1}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never", "anything": {"at": None}}}
    found = parsed(
        job(
            schedulerName="volcano",
            minAvailable=2,
            queue="train-queue",
            policies=[{"event": "PodFailed", "action": "RestartJob"}],
            tasks=[{"name": "worker", "replicas": 2, "template": template}],
        )
    )
    assert isinstance(found, Job)
    assert unknown_fields(found) == []
    assert found.spec.gang_size == 2
    assert found.spec.tasks[0].template == template
    assert found.to_manifest()["spec"]["tasks"][0]["template"] == template
    assert found.spec.policies[0].all_events == ("PodFailed",)


def test_everything_volcano_has_is_known() -> None:
    found = parsed(
        manifest(
            "Job",
            {
                "schedulerName": "s",
                "minAvailable": 1,
                "volumes": [
                    {"mountPath": "/v", "volumeClaimName": "c", "volumeClaim": {"accessModes": ["x"]}}
                ],
                "tasks": [
                    {
                        "name": "w",
                        "replicas": 4,
                        "minAvailable": 2,
                        "template": {},
                        "policies": [{"events": ["TaskCompleted"], "action": "CompleteJob", "timeout": "5s"}],
                        "topologyPolicy": "best-effort",
                        "maxRetry": 1,
                        "dependsOn": {"name": ["m"], "iteration": "any"},
                        "partitionPolicy": {
                            "totalPartitions": 2,
                            "partitionSize": 2,
                            "minPartitions": 1,
                            "networkTopology": {"highestTierAllowed": 1},
                        },
                    },
                    {"name": "m", "replicas": 1},
                ],
                "policies": [{"exitCode": 3, "action": "AbortJob"}],
                "plugins": {"ssh": None, "svc": [], "env": ["--x"]},
                "runningEstimate": "1h",
                "queue": "q",
                "maxRetry": 0,
                "ttlSecondsAfterFinished": 0,
                "priorityClassName": "p",
                "minSuccess": 1,
                "networkTopology": {"mode": "hard"},
            },
            status={
                "state": {
                    "phase": "Running",
                    "reason": "r",
                    "message": "m",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                },
                "minAvailable": 1,
                "taskStatusCount": {"w": {"phase": {"Running": 4}}},
                "pending": 0,
                "running": 4,
                "succeeded": 0,
                "failed": 0,
                "terminating": 0,
                "unknown": 0,
                "version": 1,
                "retryCount": 1,
                "runningDuration": "1m0s",
                "controlledResources": {"plugin-ssh": "ssh"},
                "conditions": [{"status": "Pending", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            },
        )
    )
    assert unknown_fields(found) == []
    assert isinstance(found, Job)
    assert found.spec.plugins == {"ssh": [], "svc": [], "env": ["--x"]}
    assert found.spec.tasks[0].pods_needed == 2


@pytest.mark.parametrize(
    ("spec", "size"),
    [({}, 2), ({"minAvailable": 1}, 1), ({"tasks": [TASK, {"replicas": 3, "minAvailable": 1}]}, 3)],
)
def test_gang_size(spec: dict[str, Any], size: int) -> None:
    found = parsed(job(**spec))
    assert isinstance(found, Job)
    assert found.spec.gang_size == size


def test_a_task_without_a_name_is_called_after_its_position() -> None:
    found = parsed(job(tasks=[{"replicas": 1}, {"replicas": 1}]))
    assert isinstance(found, Job)
    assert [task_name(task, index) for index, task in enumerate(found.spec.tasks)] == ["default0", "default1"]


ONE_TRIGGER = "set 'event' (or 'events') or 'exitCode', one of them"


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"tasks": []}, "spec.tasks", "must have at least 1 entries"),
        ({"minAvailable": 3}, "spec.minAvailable", "3 is more than all replicas, which are 2"),
        ({"minSuccess": 0}, "spec.minSuccess", "must be at least 1, not 0"),
        ({"tasks": [TASK, TASK]}, "spec.tasks[1].name", '"worker" is the name of another task'),
        (
            {"tasks": [TASK | {"minAvailable": 3}]},
            "spec.tasks[0].minAvailable",
            "3 is more than replicas, which is 2",
        ),
        ({"tasks": [TASK | {"replicas": -1}]}, "spec.tasks[0].replicas", "must be at least 0, not -1"),
        (
            {"tasks": [TASK | {"dependsOn": {"name": ["workr"]}}]},
            "spec.tasks[0].dependsOn",
            'there is no "workr" to wait for (did you mean "worker"?)',
        ),
        (
            {"tasks": [TASK | {"dependsOn": {"name": ["worker"]}}]},
            "spec.tasks[0].dependsOn",
            'waits for itself: "worker" <- "worker"',
        ),
        (
            {"tasks": [TASK | {"partitionPolicy": {"totalPartitions": 2, "partitionSize": 2}}]},
            "spec.tasks[0].partitionPolicy",
            "2 partitions of 2 pods are not the 2 of replicas",
        ),
        ({"policies": [{"action": "AbortJob"}]}, "spec.policies[0].event", ONE_TRIGGER),
        (
            {"policies": [{"action": "AbortJob", "event": "*", "exitCode": 1}]},
            "spec.policies[0].exitCode",
            ONE_TRIGGER,
        ),
        (
            {"policies": [{"action": "AbortJob", "exitCode": 0}]},
            "spec.policies[0].exitCode",
            "exitCode 0 is success and sets nothing off",
        ),
        ({"policies": [{"event": "PodFailed"}]}, "spec.policies[0].action", "is required"),
        (
            {
                "policies": [
                    {"event": "PodFailed", "action": "AbortJob"},
                    {"events": ["PodEvicted", "PodFailed"], "action": "RestartJob"},
                ]
            },
            "spec.policies[1]",
            "PodFailed is answered by policies[0] already",
        ),
        (
            {
                "tasks": [
                    TASK
                    | {
                        "policies": [
                            {"exitCode": 1, "action": "AbortJob"},
                            {"exitCode": 1, "action": "AbortJob"},
                        ]
                    }
                ]
            },
            "spec.tasks[0].policies[1]",
            "exit code 1 is answered by policies[0] already",
        ),
        (
            {
                "policies": [
                    {"event": "*", "action": "AbortJob"},
                    {"event": "PodFailed", "action": "AbortJob"},
                ]
            },
            "spec.policies",
            "* stands for every event, so no other event can be named",
        ),
        (
            {"volumes": [{"mountPath": "/v"}]},
            "spec.volumes[0].volumeClaim",
            "set 'volumeClaim' or 'volumeClaimName'",
        ),
        ({"volumes": [{"volumeClaimName": "c"}]}, "spec.volumes[0].mountPath", "is required"),
    ],
)
def test_a_bad_field_is_named(spec: dict[str, Any], field: str, message: str) -> None:
    assert faults(job(**spec)) == [(field, message)]


def test_an_unknown_event_shows_the_known_ones() -> None:
    [(field, message)] = faults(job(policies=[{"event": "PodFail", "action": "RestartJob"}]))
    assert field == "spec.policies[0].event"
    assert message.startswith("must be one of *, PodPending,")
    assert message.endswith('not "PodFail" (did you mean "PodFailed"?)')


def test_exit_codes_stand_beside_the_any_event() -> None:
    policies = [{"event": "*", "action": "AbortJob"}, {"exitCode": 1, "action": "RestartJob"}]
    assert unknown_fields(parsed(job(policies=policies))) == []


def test_job_without_a_spec() -> None:
    assert faults(manifest("Job")) == [("spec.tasks", "must have at least 1 entry")]


@pytest.mark.parametrize("kind", ["Job", "JobTemplate"])
def test_kinds_that_are_jobs_need_tasks(kind: str) -> None:
    assert faults(manifest(kind, {"queue": "q"})) == [("spec.tasks", "must have at least 1 entry")]


def test_cron_job() -> None:
    found = parsed(
        manifest("CronJob", {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"tasks": [TASK]}}})
    )
    assert found.to_manifest()["spec"] == {
        "schedule": "*/5 * * * *",
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "jobTemplate": {"spec": {"tasks": [TASK], "queue": "default", "maxRetry": 3}},
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    }


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        (
            {"schedule": "* * * *"},
            "spec.schedule",
            'must have five fields (minute hour day month weekday) or be like "@daily", not "* * * *"',
        ),
        ({"jobTemplate": {}}, "spec.jobTemplate.spec.tasks", "must have at least 1 entry"),
        (
            {"concurrencyPolicy": "allow"},
            "spec.concurrencyPolicy",
            'must be one of Allow, Forbid or Replace, not "allow" (did you mean "Allow"?)',
        ),
        ({"failedJobsHistoryLimit": -1}, "spec.failedJobsHistoryLimit", "must be at least 0, not -1"),
    ],
)
def test_a_bad_cron_job(spec: dict[str, Any], field: str, message: str) -> None:
    right = {"schedule": "@daily", "jobTemplate": {"spec": {"tasks": [TASK]}}}
    assert faults(manifest("CronJob", right | spec)) == [(field, message)]


def test_job_flow() -> None:
    flows = [
        {
            "name": "b",
            "dependsOn": {
                "targets": ["a"],
                "probe": {
                    "httpGetList": [
                        {"taskName": "t", "path": "/", "port": 80, "httpHeader": {"name": "n", "value": "v"}}
                    ],
                    "tcpSocketList": [{"taskName": "t", "port": 1}],
                    "taskStatusList": [{"taskName": "t", "phase": "Running"}],
                },
            },
        },
        {"name": "a", "patch": {"jobSpec": {"minAvailable": 5}}},
    ]
    status = {
        "pendingJobs": [],
        "runningJobs": [],
        "failedJobs": [],
        "completedJobs": [],
        "terminatedJobs": [],
        "unKnowJobs": ["x"],
        "state": {"phase": "Succeed"},
        "jobStatusList": [
            {"name": "a", "state": "Running", "restartCount": 1, "runningHistories": [{"state": "Failed"}]}
        ],
        "conditions": {
            "a": {"phase": "Running", "createTime": "2026-01-01T00:00:00Z", "runningDuration": "1s"}
        },
    }
    found = parsed(manifest("JobFlow", {"flows": flows, "jobRetainPolicy": "delete"}, status=status))
    assert unknown_fields(found) == []
    assert found.to_manifest()["status"]["unKnowJobs"] == ["x"]


@pytest.mark.parametrize(
    ("flows", "field", "message"),
    [
        ([{"name": "a"}, {"name": "a"}], "spec.flows[1].name", '"a" is the name of another flow'),
        ([{"name": ""}], "spec.flows[0].name", "must have at least 1 characters"),
        (
            [{"name": "a", "dependsOn": {"targets": ["b"]}}],
            "spec.flows[0].dependsOn",
            'there is no "b" to wait for',
        ),
        (
            [{"name": "a", "dependsOn": {"targets": ["b"]}}, {"name": "b", "dependsOn": {"targets": ["a"]}}],
            "spec.flows[0].dependsOn",
            'waits for itself: "a" <- "b" <- "a"',
        ),
    ],
)
def test_a_bad_job_flow(flows: list[Any], field: str, message: str) -> None:
    assert faults(manifest("JobFlow", {"flows": flows})) == [(field, message)]
