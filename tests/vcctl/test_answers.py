"""explain, plan, top and doctor on a live cluster."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import yaml

from tests.e2e import objects
from tests.e2e.live import Document
from tests.vcctl.person import PROGRAM, Person
from volcano_py.scheduler.model.kube.times import format_time
from volcano_py.simulator.card_shorthand import node_cards


def running(person: Person, name: str, node: str, queue: str, cpu: str, **spec: Any) -> None:
    """A pod that runs on *node*, in a group of its own."""
    phase = {"status": {"phase": "Running"}}
    person.cluster.create(objects.group(person.space, name, 1, queue) | phase)
    person.cluster.create(objects.pod(person.space, f"{name}-0", group=name, cpu=cpu, nodeName=node, **spec))
    told = {"phase": "Running", "startTime": format_time(time.time())}
    person.cluster.patch("Pod", f"{person.space}/{name}-0", {"status": told}, sub="status")


def test_why_a_gang_waits_and_when_it_starts(person: Person) -> None:
    here = ("-n", person.space)
    person.cluster.nodes(2)
    person.says("queue", "create", "lab", "--max", "cpu=12")
    running(person, "busy", "n0", "lab", "7", activeDeadlineSeconds=3600)
    person.cluster.create(*objects.gang(person.space, "big", 2, queue="lab", cpu="5"))
    person.cluster.create(*objects.gang(person.space, "next", 1, queue="lab", cpu="6"))
    person.says("podgroup", "boost", "big", *here)

    told = person.data("explain", "podgroup", "big", *here)
    assert told["verdict"].startswith("Inqueue, needs 2 pods, has 2, 2 wait")
    assert "over its max of 12" in told["reasons"][0]["message"]
    assert told["reasons"][0]["missing"] == {"cpu": "5"}
    assert (told["line"]["position"], told["line"]["of"]) == (1, 2)
    assert 3000 < told["estimate"]["inSeconds"] <= 3600
    assert {"queue": "lab", "resource": "cpu", "max": "12"}.items() <= told["limits"][0].items()

    text = person.says("explain", "pod", "next-0", *here)
    assert "2 of 2 in queue lab" in text
    assert f"before it: {person.space}/big" in text
    queue = person.data("explain", "queue", "lab")
    assert queue["verdict"] == "Open, PodGroups: 1 running, 2 waiting"
    assert [one["podGroup"] for one in queue["reasons"]] == [f"{person.space}/big", f"{person.space}/next"]
    assert "has node n0" in person.says("explain", "pod", "busy-0", *here)


def test_a_group_that_runs_in_part_is_told_when_the_rest_may_start(person: Person) -> None:
    person.cluster.nodes(1)
    running(person, "some", "n0", "default", "7", activeDeadlineSeconds=3600)
    person.cluster.create(objects.pod(person.space, "some-1", group="some", cpu="7"))
    told = person.data("explain", "podgroup", "some", "-n", person.space)
    assert told["verdict"].endswith("1 runs, 1 waits")
    assert 3000 < told["estimate"]["inSeconds"] <= 3600


def test_names_that_nobody_has_are_answered_with_near_ones(person: Person) -> None:
    person.cluster.nodes(1, labels={"zone": "east"})
    asks: dict[str, Any] = {"requests": {"cpuu": "1"}, "nodeSelector": {"zone": "eest"}}
    asks["requests"] = {"example.com/cards": "1"}
    amounts = {"example.com/card": "4"}
    person.cluster.patch(
        "Node", "n0", {"status": {"allocatable": amounts, "capacity": amounts}}, sub="status"
    )
    person.cluster.create(
        objects.group(person.space, "g", 1), objects.pod(person.space, "g-0", group="g", **asks)
    )
    told = person.data("explain", "pod", "g-0", "-n", person.space)
    assert told["nearMisses"] == [
        'no node offers example.com/cards (did you mean "example.com/card"?)',
        'no node has label zone=eest (did you mean "east"?)',
    ]


def test_a_held_group_says_how_it_is_released(person: Person) -> None:
    person.as_process = True
    here = ("-n", person.space)
    person.cluster.nodes(1)
    person.cluster.create(*objects.gang(person.space, "g", 1))
    person.says("podgroup", "hold", "g", *here)
    told = person.data("explain", "podgroup", "g", *here)
    assert told["reasons"][0]["code"] == "Held"
    assert told["changes"] == [f"release it: vcctl-py podgroup release g -n {person.space}"]
    person.says("podgroup", "release", "g", *here)
    told = person.data("explain", "pod", "g-0", *here)
    assert told["verdict"].startswith("starts on node n0 in the next cycle")


def test_explain_says_what_the_scheduler_says(person: Person) -> None:
    """The same engine, fed in another way, must come to the same words."""
    person.cluster.nodes(1)
    person.cluster.scheduler("--no-leader-elect")
    person.cluster.create(*objects.gang(person.space, "g", 3, cpu="4"))
    told = person.data("explain", "podgroup", "g", "-n", person.space, "--no-estimate")
    messages = {one["message"] for one in told["reasons"]}

    def says_so() -> bool:
        """A first cycle may have seen a part of the gang only."""
        condition = person.cluster.condition("PodGroup", f"{person.space}/g", "Unschedulable")
        return condition is not None and condition["message"] in messages

    person.cluster.until(says_so, what=f"the scheduler says one of {messages}")


def test_a_group_tells_who_of_it_was_evicted_for_whom(person: Person) -> None:
    here, cluster = ("-n", person.space), person.cluster
    cluster.nodes(1, cpu="2")
    cluster.create(objects.priority("urgent", 1000))
    cluster.kubelets()
    cluster.scheduler("--no-leader-elect")
    cluster.create(*objects.gang(person.space, "old", 2))
    cluster.wait_bound(2, "old")
    group, pod = objects.gang(person.space, "new", 1, cpu="2", priorityClassName="urgent")
    group["spec"]["priorityClassName"] = "urgent"
    cluster.create(group, pod)
    cluster.wait_bound(1, "new")
    cluster.until(lambda: person.data("explain", "podgroup", "old", *here).get("evictions"))
    (told,) = person.data("explain", "podgroup", "old", *here)["evictions"]
    assert "PodGroup old: pod old-" in told
    assert f"evicted for {person.space}/new by preempt: " in told
    assert "evicted for" in person.says("podgroup", "describe", "old", *here)


def test_another_configuration_gives_another_answer(person: Person, tmp_path: Path) -> None:
    person.cluster.nodes(1)
    person.cluster.create(*objects.gang(person.space, "g", 1))
    conf = tmp_path / "scheduler.conf"
    conf.write_text("actions: enqueue\ntiers: []\n")
    words = ("explain", "pod", "g-0", "-n", person.space, "--scheduler-conf", str(conf))
    told = person.data(*words)
    assert "no configured action places pods" in told["reasons"][0]["message"]
    assert told["configuration"] == str(conf)
    conf.write_text("actions: enqueu\n")
    assert "enqueue" in person.refused(*words, code=2)


def test_the_configuration_of_the_cluster_is_used(person: Person) -> None:
    space = "volcano-system"
    if person.cluster.get("Namespace", space) is None:
        person.cluster.create(objects.namespace(space))
    config: Document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "volcano-scheduler-configmap", "namespace": space},
        "data": {"volcano-scheduler.conf": "actions: allocate\ntiers: []\n"},
    }
    person.cluster.create(config)
    try:
        person.cluster.nodes(1)
        person.cluster.create(*objects.gang(person.space, "g", 1))
        told = person.data("explain", "pod", "g-0", "-n", person.space)
        assert told["configuration"].startswith(f"ConfigMap {space}/volcano-scheduler-configmap")
    finally:
        person.cluster.delete("ConfigMap", f"{space}/volcano-scheduler-configmap")


def test_cards_are_called_as_the_scheduler_calls_them(person: Person, tmp_path: Path) -> None:
    """The device ConfigMap gives a share a name of its own; explain, plan, doctor and card know it too."""
    name = "volcano-vgpu-device-config"
    notes, amounts = node_cards("n0", {"count": 1, "memory": 8000})
    carded = objects.node("n0", annotations=notes)
    carded["status"]["allocatable"] = {**carded["status"]["allocatable"], **amounts}
    person.cluster.create(carded)
    asks = {"cpu": "1", "example.com/slice": "1", "nvidia.com/gpumem": "9000"}
    waiting = objects.pod(person.space, "big-0", group="big", requests=asks)
    person.cluster.create(objects.group(person.space, "big", 1), waiting)
    pod = objects.pod(person.space, "small-0", group="small", requests={**asks, "nvidia.com/gpumem": "6000"})
    manifest = tmp_path / "small.yaml"
    manifest.write_text(yaml.safe_dump_all([objects.group(person.space, "small", 1), pod]))
    planned = person.data("plan", "-f", str(manifest), "-n", person.space)
    assert "example.com/slice" in planned["pending"][f"{person.space}/small-0"]["reason"]
    person.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "kube-system"},
            "data": {"device-config.yaml": "nvidia: {resourceCountName: example.com/slice}"},
        }
    )
    try:
        told = person.data("explain", "pod", "big-0", "-n", person.space)
        assert "the largest card has 8000Mi, asked 9000Mi" in told["reasons"][0]["message"]
        planned = person.data("plan", "-f", str(manifest), "-n", person.space)
        assert [(d["pod"], d["node"]) for d in planned["decisions"]] == [(f"{person.space}/small-0", "n0")]
        on_card(person, "held", {**asks, "nvidia.com/gpumem": "100"}, "n0-0,NVIDIA,100,0:;")
        [card] = person.data("card", "n0")["cards"]
        assert card["usedMemoryMiB"] == 100
        said = {"data": {"device-config.yaml": "vnpus: what"}}
        person.cluster.patch("ConfigMap", f"kube-system/{name}", said)
        found = person.data("doctor", "--check", "objects")["findings"]
        assert found[0]["object"] == f"ConfigMap kube-system/{name}"
        # By the built-in names these ask for memory of no card.
        assert {one["object"] for one in found[1:]} == {
            f"Pod {person.space}/{who}-0" for who in ("big", "held")
        }
    finally:
        person.cluster.delete("ConfigMap", f"kube-system/{name}")


def on_card(person: Person, name: str, asks: dict[str, str], record: str) -> None:
    """A running pod with *record* of what it holds."""
    notes = {"hami.io/vgpu-node": "n0", "hami.io/vgpu-devices-allocated": record}
    running(person, name, "n0", "default", "1", annotations=notes, requests=asks)


# -- plan ---------------------------------------------------------------------------------------

TRAIN = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  minAvailable: 2
  queue: default
  schedulerName: volcano-py
  tasks:
  - name: w
    replicas: 2
    template: {spec: {containers: [{name: c, image: busybox, resources: {requests: {cpu: "3"}}}]}}
"""


def test_a_manifest_is_planned_beside_what_runs(person: Person) -> None:
    person.cluster.nodes(2, cpu="4")
    person.cluster.create(*objects.gang(person.space, "other", 3, cpu="4"))
    words = ("plan", "-f", "-", "-n", person.space)
    told = json.loads(person.runs(*words, "-o", "json", text=TRAIN).stdout)
    assert {d["pod"]: d["node"] for d in told["decisions"]} == {
        f"{person.space}/train-w-0": "n0",
        f"{person.space}/train-w-1": "n1",
    }
    assert [group["name"] for group in told["podGroups"]] == [f"{person.space}/train"]
    assert not [key for key in person.cluster.list("Job") if key.startswith(f"{person.space}/")]
    assert len(person.cluster.pods()) == 3

    running(person, "busy", "n0", "default", "2")
    told = json.loads(person.runs(*words, "-o", "json", text=TRAIN).stdout)
    assert told["decisions"] == []
    assert set(told["pending"]) == {f"{person.space}/train-w-0", f"{person.space}/train-w-1"}
    assert "Waiting" in person.runs(*words, text=TRAIN).stdout


def test_of_a_job_that_is_at_work_only_what_it_lacks_is_planned_and_that_is_said(person: Person) -> None:
    person.cluster.nodes(1, cpu="8")
    job = yaml.safe_load(TRAIN)
    job["metadata"]["namespace"] = person.space
    person.cluster.create(job)
    made = person.cluster.get("Job", f"{person.space}/train")
    assert made is not None
    owner = {key: made[key] for key in ("apiVersion", "kind")}
    owner |= {"name": "train", "uid": made["metadata"]["uid"], "controller": True}
    pod = objects.pod(person.space, "train-w-0", group="train", cpu="3")
    pod["metadata"]["ownerReferences"] = [owner]
    person.cluster.create(objects.group(person.space, "train", 2, "default"), pod)
    told = json.loads(person.runs("plan", "-f", "-", "-n", person.space, "-o", "json", text=TRAIN).stdout)
    assert [decision["pod"] for decision in told["decisions"]] == [f"{person.space}/train-w-1"]
    said = [(each["line"], each["object"], each["message"]) for each in told["warnings"]]
    why = "has 1 pod in the cluster already; what is planned are those it lacks"
    assert said == [(2, f"Job {person.space}/train", why)]


def test_a_bad_manifest_is_planned_as_far_as_it_goes(person: Person) -> None:
    bad = TRAIN.replace("minAvailable: 2", "minAvailable: two")
    done = person.runs("plan", "-f", "-", "-n", person.space, code=2, text=bad)
    assert "spec.minAvailable" in done.stdout


# -- top ----------------------------------------------------------------------------------------

CARDS = "GPU-a,10,16384,100,NVIDIA-A100,0,true:GPU-b,10,16384,100,NVIDIA-A100,0,true:"


def test_who_holds_what(person: Person) -> None:
    person.cluster.nodes(1, annotations={"hami.io/node-nvidia-register": CARDS})
    person.says("queue", "create", "lab", "--max", "cpu=12")
    record = {"hami.io/vgpu-node": "n0", "hami.io/vgpu-devices-allocated": "GPU-b,NVIDIA,4096,25:;"}
    asks = {"cpu": "2", "nvidia.com/gpu": "1", "nvidia.com/gpumem": "4096", "nvidia.com/gpucores": "25"}
    running(person, "a", "n0", "lab", "2", annotations=record, requests=asks)
    row = person.rows("top", "nodes")[0]
    assert row[:3] == ["n0", "Ready", "2/8"]
    used = person.data("top", "nodes")["nodes"][0]["used"]
    assert (used["nvidia.com/gpumem"], used["volcano.sh/vgpu-memory"], used["nvidia.com/gpucores"]) == (
        "4096",
        "4096",
        "25",
    )
    head = person.says("top", "nodes").splitlines()[0]
    assert "card memory" in head
    assert "vgpu" not in head
    cards = person.data("top", "cards")["cards"]
    assert [(card["card"], card["usedMemoryMiB"], card["usedCores"]) for card in cards] == [
        (0, 0, 0),
        (1, 4096, 25),
    ]
    assert "4096/16384 MiB" in person.says("top", "cards")
    queues = {queue["name"]: queue for queue in person.data("top", "queues")["queues"]}
    assert queues["lab"]["allocated"]["cpu"] == "2"
    assert "lab" in person.says("top", "queues")


# -- doctor -------------------------------------------------------------------------------------


def test_the_doctor_finds_what_is_broken_on_the_server(person: Person) -> None:
    space = person.space
    person.cluster.nodes(1, cpu="4")
    person.cluster.create(
        objects.queue("orphan", parent="nobody"),
        objects.queue("typo", max={"nvidia.com/gpus": "4"}),
        objects.group(space, "lost", 1, "nowhere"),
        objects.pod(space, "lost-0", group="lost"),
        *objects.gang(space, "huge", 4, cpu="3"),
    )
    told = person.data("doctor", code=1)
    found = {(one["check"], one["object"]) for one in told["findings"]}
    assert {
        ("queue-tree", "Queue orphan"),
        ("queue-resources", "Queue typo"),
        ("missing-queues", f"PodGroup {space}/lost"),
        ("gangs", f"PodGroup {space}/huge"),
    } <= found
    assert not {check for check, _ in found} & {"crds", "clocks", "rbac", "device-plugins"}
    assert all(one["evidence"] and one["fix"] for one in told["findings"])
    assert "fix:" in person.runs("doctor", "--check", "gangs", code=1).stdout


def test_a_sound_cluster_passes(person: Person) -> None:
    person.cluster.nodes(1)
    person.cluster.create(*objects.gang(person.space, "g", 1))
    assert person.says("doctor") == "Nothing found by 12 checks.\n"
    assert 'did you mean "gangs"' in person.refused("doctor", "--check", "gang", code=2)


def test_a_dropped_field_of_a_crd_is_found_on_the_server(person: Person) -> None:
    name = "queues.scheduling.volcano.sh"
    crd = person.cluster.get("CustomResourceDefinition", name)
    assert crd is not None
    kept = json.loads(json.dumps(crd["spec"]))
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del schema["properties"]["lendingPaused"]
    person.cluster.patch("CustomResourceDefinition", name, {"spec": {"versions": crd["spec"]["versions"]}})
    try:
        [one] = person.data("doctor", "--check", "crds")["findings"]
        assert "spec.lendingPaused" in one["evidence"]
    finally:
        person.cluster.patch("CustomResourceDefinition", name, {"spec": {"versions": kept["versions"]}})


def test_versions(person: Person) -> None:
    assert "server   v1." in person.says("version")
    told = person.data("version")
    assert told["serverVersion"]["gitVersion"].startswith("v1.")
    assert person.data("version", "--client") == {"clientVersion": told["clientVersion"]}


def test_top_goes_on_and_shows_what_has_changed(person: Person) -> None:
    with subprocess.Popen(
        [PROGRAM, "top", "nodes", "--watch"], env=person.environment(), stdout=subprocess.PIPE, text=True
    ) as watching:
        try:
            assert watching.stdout is not None
            person.cluster.nodes(1)
            lines = iter(watching.stdout.readline, "")
            assert next(line for line in lines if line.startswith("n0 ")).split()[1] == "Ready"
            person.cluster.patch("Node", "n0", {"spec": {"unschedulable": True}})
            assert next(line for line in lines if line.startswith("n0 ") and "Cordoned" in line)
        finally:
            watching.terminate()
    assert "leave out -o" in person.refused("top", "cards", "--watch", "-o", "json", code=2)
