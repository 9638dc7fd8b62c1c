"""Jobs, flows and pods from the command line, as far as their objects go."""

from __future__ import annotations

import yaml

from tests.e2e import objects
from tests.vcctl.person import Person

JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: filed}
spec:
  minAvailable: 2
  queue: default
  tasks:
  - name: worker
    replicas: 2
    template: {spec: {containers: [{name: c, image: busybox}]}}
"""


def test_a_job_is_submitted_from_flags(person: Person) -> None:
    here = ("-n", person.space)
    words = ("-N", "train", "-r", "4", "-m", "3", "-R", "cpu=2,nvidia.com/gpu=1", "-L", "memory=1Gi")
    person.says("job", "run", *words, *here, "--", "sleep", "600")
    spec = person.data("job", "get", "train", *here)["spec"]
    container = spec["tasks"][0]["template"]["spec"]["containers"][0]
    assert (spec["minAvailable"], spec["schedulerName"]) == (3, "volcano-py")
    assert container["command"] == ["sleep", "600"]
    assert container["resources"] == {
        "requests": {"cpu": "2", "nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1", "memory": "1Gi"},
    }
    row = person.rows("job", "list", *here)[0]
    assert [row[0], *row[2:6]] == ["train", "Pending", "Batch", "4", "3"]


def test_a_job_for_a_queue_that_is_not_there_is_made_with_a_note(person: Person) -> None:
    person.says("queue", "create", "research")
    done = person.runs("job", "run", "-N", "lost", "-q", "reserch", "-n", person.space)
    assert done.stdout == "job lost created\n"
    assert done.stderr == (
        'note: it waits for its queue: Queue reserch does not exist (did you mean "research"?)\n'
    )


def test_a_job_is_submitted_from_a_manifest(person: Person) -> None:
    here = ("-n", person.space)
    assert person.runs("job", "run", "-f", "-", *here, text=JOB).stdout == "job filed created\n"
    assert person.rows("job", "list", "--selector", "ile", *here)[0][0] == "filed"
    assert person.rows("job", "list", "--selector", "nothing", *here) == []
    assert person.rows("job", "list", "-q", "other", *here) == []
    bad = JOB.replace("minAvailable: 2", "minAvailable: two")
    told = person.runs("job", "run", "-f", "-", *here, code=2, text=bad).stderr
    assert "-:6: spec.minAvailable" in told


def test_suspend_and_resume_are_commands_in_the_job_namespace(person: Person) -> None:
    here = ("-n", person.space)
    person.says("job", "run", "-N", "train", *here)
    person.says("job", "suspend", "train", *here)
    person.says("job", "resume", "-N", "train", *here)
    commands = person.cluster.list("Command")
    assert {key.partition("/")[0] for key in commands} == {person.space}
    assert sorted(command["action"] for command in commands.values()) == ["AbortJob", "ResumeJob"]
    assert "minAvailable" in person.says("job", "view", "train", *here)
    person.says("job", "delete", "train", *here)
    assert person.rows("job", "list", *here) == []


def test_flows_and_templates(person: Person) -> None:
    here = ("-n", person.space)
    template = {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate", "metadata": {"name": "step"}}
    template["spec"] = yaml.safe_load(JOB)["spec"]
    flow = {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": "all"}}
    flow["spec"] = {"flows": [{"name": "step"}]}
    person.runs("jobtemplate", "create", "-f", "-", *here, text=yaml.safe_dump(template))
    person.runs("jobflow", "create", "-f", "-", *here, text=yaml.safe_dump(flow))
    assert person.rows("jt", "list", *here) == [["step", person.space]]
    assert person.rows("jobflow", "list", *here)[0][:2] == ["all", person.space]
    wrong = person.runs("jobflow", "create", "-f", "-", *here, code=2, text=yaml.safe_dump(template)).stderr
    assert "is no JobFlow" in wrong
    person.says("jobflow", "delete", "-N", "all", *here)
    assert "JobFlow all does not exist" in person.refused("jf", "describe", "all", *here)


def test_pods_of_a_queue_come_by_namespace_and_name(person: Person) -> None:
    """Pods of jobs and other pods are one list, not two behind each other."""
    other = f"{person.space}-z"
    person.cluster.create(objects.namespace(other))
    person.cluster.until(lambda: person.cluster.get("ServiceAccount", f"{other}/default"))
    person.says("queue", "create", "q")
    for space in (other, person.space):
        person.cluster.create(
            objects.group(space, "g", 1, "q"),
            objects.pod(space, "b", group="g", annotations={"volcano.sh/job-name": "j"}),
            objects.pod(space, "a", annotations={"scheduling.volcano.sh/queue-name": "q"}),
            objects.pod(space, "c"),
        )
    rows = person.rows("pod", "list", "-q", "q", "-A")
    assert [row[:2] for row in rows] == [[space, name] for space in (person.space, other) for name in "ab"]
    assert [row[0] for row in person.rows("pod", "list", "-j", "j", "-n", other)] == ["b"]
    for name in "abc":
        person.cluster.delete("Pod", f"{other}/{name}", grace_s=0)
