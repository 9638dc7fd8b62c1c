"""PodGroups from the command line: their place in the line, and who may not be moved."""

from __future__ import annotations

from tests.e2e import objects
from tests.vcctl.person import Person


def test_groups_are_held_released_and_boosted(person: Person) -> None:
    here = ("-n", person.space)
    person.cluster.create(objects.group(person.space, "g", 2))
    assert person.rows("podgroup", "list", *here)[0][:2] == ["g", "Pending"]
    person.says("podgroup", "hold", "g", *here)
    assert person.rows("pg", "list", *here)[0][:2] == ["g", "Held"]
    assert "held already" in person.says("podgroup", "hold", "-N", "g", *here)
    person.says("podgroup", "boost", "g", *here, "--by", "3")
    notes = person.data("podgroup", "get", "g", *here)["metadata"]["annotations"]
    assert notes == {"volcano-py.io/hold": "true", "volcano-py.io/boost": "3"}
    person.says("podgroup", "release", "g", *here)
    person.says("podgroup", "boost", "g", *here, "--by", "0")
    assert not person.data("podgroup", "get", "g", *here)["metadata"].get("annotations")
    assert "is not held" in person.says("podgroup", "release", "g", *here)
    person.says("podgroup", "delete", "g", *here)
    assert "g does not exist" in person.refused("podgroup", "get", "g", *here)


def test_a_waiting_group_moves_to_another_queue(person: Person) -> None:
    here = ("-n", person.space)
    person.says("queue", "create", "a")
    person.says("queue", "create", "inner")
    person.says("queue", "create", "leaf", "--parent", "inner")
    inqueue = objects.group(person.space, "g", 1, "a") | {"status": {"phase": "Inqueue"}}
    person.cluster.create(inqueue, objects.pod(person.space, "g-0", group="g"))
    assert "moved from queue a to leaf" in person.says("podgroup", "move", "g", "--to", "leaf", *here)
    found = person.data("podgroup", "get", "g", *here)
    assert (found["spec"]["queue"], found["status"]["phase"]) == ("leaf", "Pending")
    assert "is in queue leaf already" in person.says("podgroup", "move", "g", "-q", "leaf", *here)
    assert "name one of leaf" in person.refused("podgroup", "move", "g", "--to", "inner", *here)
    assert "Queue nix does not exist" in person.refused("podgroup", "move", "g", "--to", "nix", *here)


def test_what_runs_is_not_moved(person: Person) -> None:
    here = ("-n", person.space)
    person.says("queue", "create", "a")
    running = objects.group(person.space, "g", 1) | {"status": {"phase": "Running"}}
    person.cluster.create(running)
    assert "it is Running" in person.refused("podgroup", "move", "g", "--to", "a", *here)
    person.cluster.nodes(1)
    bound = objects.pod(person.space, "h-0", group="h", nodeName="n0")
    person.cluster.create(objects.group(person.space, "h", 2), bound)
    assert "1 of its pods have a node" in person.refused("podgroup", "move", "h", "--to", "a", *here)


def test_the_job_behind_a_group_is_moved_with_it(person: Person) -> None:
    here = ("-n", person.space)
    person.says("queue", "create", "a")
    person.says("job", "run", "-N", "train", *here)
    job = person.data("job", "get", "train", *here)
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train"}
    made = objects.group(person.space, "train-1", 1)
    made["metadata"]["ownerReferences"] = [owner | {"uid": job["metadata"]["uid"], "controller": True}]
    person.cluster.create(made)
    person.says("podgroup", "move", "train-1", "--to", "a", *here)
    assert person.data("job", "get", "train", *here)["spec"]["queue"] == "a"


def test_a_closed_queue_takes_no_group(person: Person) -> None:
    person.says("queue", "create", "shut", "-S", "Closed")
    person.cluster.create(objects.group(person.space, "g", 1))
    told = person.refused("podgroup", "move", "g", "--to", "shut", "-n", person.space)
    assert "queue operate shut -a open" in told


def test_description_names_the_pods_and_events(person: Person) -> None:
    person.cluster.create(*objects.gang(person.space, "g", 2))
    told = person.says("podgroup", "describe", "g", "-n", person.space)
    assert "g-0:" in told
    assert "g-1:" in told
    assert "Events:" in told
