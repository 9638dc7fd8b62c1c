"""What explain says, from engines that hold small clusters."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from tests.clusters import group, node, pod, queue
from tests.vcctl.evidence import NOW, Document
from volcano_py.cli.vcctl.explain.estimate import estimate
from volcano_py.cli.vcctl.explain.groups import add_estimate, group_story, pod_story
from volcano_py.cli.vcctl.explain.history import written_on
from volcano_py.cli.vcctl.explain.queues import queue_story
from volcano_py.cli.vcctl.explain.story import Story, tell
from volcano_py.cli.vcctl.live_config import Source
from volcano_py.cli.vcctl.main import app
from volcano_py.cli.vcctl.snapshot import Listed, Outlook, Snapshot, fed, outlook
from volcano_py.crds.schedulerconfig import DEFAULT_CONFIG, load_scheduler_config
from volcano_py.scheduler.decoding import decode_object, identity_of
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.model.kube.times import format_time
from volcano_py.simulator.kubelet.nodes import CardShape, NodeShape, make_nodes

CONFIG = load_scheduler_config(DEFAULT_CONFIG)


def seen(*documents: Document) -> tuple[Snapshot, Outlook]:
    objects = tuple(Listed(*identity_of(d), decode_object(d), ()) for d in documents)
    source = Source(CONFIG, "the test")
    snapshot = Snapshot(fed(source, objects), source, NOW, objects)
    return snapshot, outlook(snapshot.engine, NOW)


def of_group(name: str, *documents: Document) -> Story:
    snapshot, ahead = seen(*documents)
    job = snapshot.engine.state.jobs.named(f"ml/{name}")
    assert job is not None
    return group_story(snapshot, ahead, job)


def codes(story: Story) -> list[str]:
    return [one["code"] for one in story.reasons]


def gpu_pod(name: str) -> Document:
    return pod(name, "g", requests={"nvidia.com/gpu": "1"})


def tainted(made: Document) -> Document:
    taint = {"key": "team", "value": "other", "effect": "NoSchedule"}
    return {**made, "spec": {**made.get("spec", {}), "taints": [taint]}}


# -- ways out -----------------------------------------------------------------------------------


CASES: dict[str, tuple[list[Document], str, str]] = {
    "closed": (
        [queue("q") | {"status": {"state": "Closed"}}, group("g", 1, "q"), pod("g-0", "g")],
        "QueueClosed",
        "queue operate q -a open",
    ),
    "no-queue": (
        [queue("train"), group("g", 1, "trian"), pod("g-0", "g")],
        "NoQueue",
        'did you mean "train"',
    ),
    "too-few": ([group("g", 3), pod("g-0", "g")], "NotEnoughTasks", "2 more pods in the group"),
    "no-free-card": (
        [
            *make_nodes(1, NodeShape(cards=CardShape(1))),
            group("g", 2),
            *(gpu_pod(f"g-{i}") for i in range(2)),
        ],
        "GangIncomplete",
        "vcctl-py top cards",
    ),
    "tainted": (
        [tainted(node("n1")), group("g", 1), pod("g-0", "g")],
        "NodesUnfit",
        "a toleration in the pod",
    ),
    "too-large": ([group("g", 1), pod("g-0", "g", "9")], "NodesUnfit", "no node has that much cpu"),
    "no-such": (
        [group("g", 1), pod("g-0", "g", requests={"x.io/y": "1"})],
        "NodesUnfit",
        "no node has any x.io/y",
    ),
    "gated": (
        [group("g", 1), pod("g-0", "g", schedulingGates=[{"name": "x"}])],
        "SchedulingGated",
        "scheduling gates",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_reason_comes_with_a_way_out(name: str) -> None:
    documents, code, way = CASES[name]
    story = of_group("g", node("n1"), *documents)
    assert code in codes(story)
    assert any(way in change for change in story.changes), story.changes


def test_a_gang_of_more_cards_than_there_are_is_told_how_many_fit() -> None:
    (cards,) = make_nodes(1, NodeShape(cards=CardShape(4)))
    asks: dict[str, Any] = {"requests": {"nvidia.com/gpu": "1"}}
    busy = [group("r", 3, phase="Running"), *(pod(f"r-{i}", "r", on="node-0", **asks) for i in range(3))]
    says = "more nodes: the gang needs 5 pods at once, the empty cluster holds 4 of them"
    five = of_group("g", cards, *busy, group("g", 5), *(pod(f"g-{i}", "g", **asks) for i in range(5)))
    assert five.changes[0] == says
    four = of_group("g", cards, *busy, group("g", 4), *(pod(f"g-{i}", "g", **asks) for i in range(4)))
    assert four.reasons
    assert not any("empty cluster" in change for change in four.changes)


def test_a_gang_whose_pods_fit_no_node_is_not_told_that_some_would_fit() -> None:
    """Two nodes of 4 have 8 together, and none of them holds a pod of 5."""
    gang = [group("g", 2), pod("g-0", "g", "5"), pod("g-1", "g", "5")]
    story = of_group("g", node("n1"), node("n2"), *gang)
    assert story.changes[0] == "more nodes: the gang needs 2 pods at once, the empty cluster holds 0 of them"


def test_work_that_may_not_be_interrupted_is_told_how_it_could_borrow() -> None:
    firm = {"volcano.sh/preemptable": "false"}
    held = [group("r", 1, "b", "Running"), pod("r-0", "r", on="n1")]
    story = of_group(
        "g",
        node("n1"),
        queue("a"),
        queue("b"),
        *held,
        group("g", 1, "a", annotations=firm),
        pod("g-0", "g", "3", annotations=firm),
    )
    assert codes(story) == ["QueueEntitlement"]
    assert story.changes[0] == "1 cpu less of the queue's work that may not be interrupted"
    assert "kubectl annotate podgroup g -n ml volcano.sh/preemptable=true" in story.changes[1]


def test_a_pod_of_another_scheduler_is_told_as_such() -> None:
    snapshot, ahead = seen(node("n1"), pod("a", "", schedulerName="other"))
    story = pod_story(snapshot, ahead, "ml/a", "other")
    assert story.verdict == "belongs to scheduler other, not to ours (volcano-py, volcano)"
    assert story.changes == ["spec.schedulerName volcano-py in what makes it, if it is to be ours"]
    snapshot, ahead = seen(node("n1"), pod("a", "", on="n1", schedulerName="other"))
    assert pod_story(snapshot, ahead, "ml/a", "other").changes == []


def test_a_plain_pod_that_no_controller_has_seen_is_told_what_it_lacks() -> None:
    snapshot, ahead = seen(node("n1"), pod("a", ""))
    story = pod_story(snapshot, ahead, "ml/a", "volcano-py")
    assert codes(story) == ["NoPodGroup"]
    assert "volcano-py controller" in story.changes[0]


def test_a_pod_that_cannot_be_read_says_which_field_is_to_mend() -> None:
    asks = {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "130"}
    snapshot, ahead = seen(node("n1"), group("g", 1), pod("g-0", "g", requests=asks))
    story = pod_story(snapshot, ahead, "ml/g-0", "volcano-py")
    assert (story.verdict, codes(story)) == ("its object can't be read", ["InvalidObject"])
    assert story.changes == ["mend the field that is named"]


def test_a_gang_that_starts_next_says_where() -> None:
    snapshot, ahead = seen(node("n1"), group("g", 1), pod("g-0", "g"))
    assert pod_story(snapshot, ahead, "ml/g-0", "volcano-py").verdict.startswith(
        "starts on node n1 in the next cycle"
    )


@pytest.mark.parametrize("elsewhere", [{}, {"nodeSelector": {"zone": "z"}}])
def test_a_misspelt_resource_is_told_once(
    elsewhere: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """In the reason, or where another reason comes before it, beside it."""
    story = of_group(
        "g",
        node("n1", amounts={"example.com/card": "1"}),
        group("g", 1),
        pod("g-0", "g", requests={"example.com/cards": "1"}, **elsewhere),
    )
    tell(story)
    said = " ".join(capsys.readouterr().out.split())
    assert said.count('did you mean "example.com/card"?') == 1
    assert ("no node has label zone" in said) == bool(elsewhere)


def test_who_stands_before_it_is_named_nearest_last() -> None:
    others: list[Document] = []
    for number in range(7):
        made = f"2025-12-31T1{number}:00:00Z"
        others += [group(f"o{number}", 1, created=made), pod(f"o{number}-0", f"o{number}", "9")]
    mine = [group("g", 1, created="2025-12-31T20:00:00Z"), pod("g-0", "g", "9")]
    line = of_group("g", node("n1"), *others, *mine).line
    assert (line["position"], line["of"]) == (8, 8)
    assert line["ahead"] == line["aheadCalled"] == [f"ml/o{number}" for number in range(2, 7)]


def test_the_group_of_a_plain_pod_is_called_by_its_pod_too() -> None:
    plain = group("podgroup-1", 1, created="2025-12-31T10:00:00Z")
    plain["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "a", "controller": True}]
    first = [plain, pod("a", "podgroup-1", "9")]
    line = of_group("g", node("n1"), *first, group("g", 1), pod("g-0", "g", "9")).line
    assert line["ahead"] == ["ml/podgroup-1"]
    assert line["aheadCalled"] == ["ml/podgroup-1 (Pod a)"]


# -- estimates ----------------------------------------------------------------------------------


def at(seconds: float) -> str:
    return format_time(NOW + seconds)


def running(name: str, started: float, cpu: str = "4") -> list[Document]:
    status = {"phase": "Running", "startTime": at(started)}
    return [group(name, 1, phase="Running"), pod(f"{name}-0", name, cpu, on="n1", status=status)]


def when(times: dict[str, float], *documents: Document) -> tuple[float | None, int]:
    snapshot, _ = seen(*documents)
    found = estimate(snapshot.again(), NOW, times, lambda engine: _stands(engine, "ml/g"))
    return (None if found.start is None else found.start - NOW), found.endless


def _stands(engine: Engine, key: str) -> bool:
    job = engine.state.jobs.named(key)
    return job is not None and job.ready() >= job.min_member


def _nobody_waits(engine: Engine, key: str) -> bool:
    job = engine.state.jobs.named(key)
    return job is not None and not job.pending


EARLY = "2025-12-31T01:00:00Z"
WANTS: list[Any] = [group("g", 1), pod("g-0", "g", "4")]


def test_it_starts_when_the_work_before_it_ends() -> None:
    assert when({"ml/r-0": 600.0}, node("n1"), *running("r", -100), *WANTS) == (500.0, 0)


def test_work_of_unknown_length_is_endless() -> None:
    assert when({}, node("n1"), *running("r", -100), *WANTS) == (None, 1)


def test_work_that_is_overdue_may_go_on_for_ever() -> None:
    assert when({"ml/r-0": 50.0}, node("n1"), *running("r", -100), *WANTS)[0] is None


def test_what_starts_in_between_takes_its_time_too() -> None:
    first = [group("f", 1, created=EARLY), pod("f-0", "f", "4")]
    times = {"ml/r-0": 600.0, "ml/f-0": 60.0}
    assert when(times, node("n1"), *running("r", -100), *first, *WANTS) == (560.0, 0)


def test_an_estimate_is_told_with_what_is_not_known() -> None:
    story = Story("PodGroup ml/g")
    snapshot, _ = seen(node("n1"), *running("r", -100), *WANTS)
    add_estimate(story, estimate(snapshot.again(), NOW, {}, lambda engine: _stands(engine, "ml/g")), NOW)
    assert story.estimate["text"] == (
        "unknown: no work with a known end makes room; 1 running pod doesn't say how long it runs"
    )


@pytest.mark.parametrize(
    ("objects", "in_vain"),
    [
        ([*WANTS], False),
        ([group("g", 1), pod("g-0", "g", "50")], True),
        ([group("g", 1), pod("g-0", "g", "1", nodeSelector={"disk": "ssd"})], True),
        ([{**queue("q"), "status": {"state": "Closed"}}, group("g", 1, "q"), pod("g-0", "g")], True),
        ([group("g", 2), pod("g-0", "g", "0", on="n1"), pod("g-1", "g", "4")], False),
        ([group("g", 2), pod("g-0", "g", "1", on="n1"), pod("g-1", "g", "4")], True),
        ([group("f", 1, created=EARLY), pod("f-0", "f", "50"), *WANTS], False),
        ([group("f", 1, created=EARLY), pod("f-0", "f", "4"), *WANTS], False),
    ],
    ids=["room", "large", "label", "closed", "in-part", "in-part-too-large", "behind-for-ever", "behind"],
)
def test_what_no_end_of_others_helps_is_told_so(objects: list[Any], in_vain: bool) -> None:
    snapshot, _ = seen(node("n1"), *running("r", -100), *objects)
    found = estimate(snapshot.again(), NOW, {}, lambda engine: _stands(engine, "ml/g"), "ml/g")
    assert (found.start, found.in_vain) == (None, in_vain)
    story = Story("PodGroup ml/g")
    add_estimate(story, found, NOW)
    assert story.estimate["text"].startswith("never by waiting alone: " if in_vain else "unknown: ")


def test_the_rest_of_a_group_may_wait_for_the_others_of_it() -> None:
    members = [pod(f"g-{i}", "g", "4", on="n1" if i == 0 else "") for i in range(2)]
    snapshot, _ = seen(node("n1"), group("g", 1, phase="Running"), *members)
    found = estimate(snapshot.again(), NOW, {}, lambda engine: _nobody_waits(engine, "ml/g"), "ml/g")
    assert not found.in_vain


# -- queues -------------------------------------------------------------------------------------


def of_queue(name: str, *documents: Document) -> Story:
    snapshot, ahead = seen(*documents)
    found = snapshot.engine.state.queues.named(name)
    assert found is not None
    return queue_story(snapshot, ahead, found)


def test_in_a_queue_a_pod_alone_says_its_own_reason_and_a_gang_that_of_all() -> None:
    wants: dict[str, Any] = {"nodeSelector": {"disk": "ssd"}}
    alone = [group("a", 1, "q", created=EARLY), pod("a-0", "a", **wants)]
    gang = [group("g", 2, "q"), *(pod(f"g-{i}", "g", **wants) for i in range(2))]
    told = [one["message"] for one in of_queue("q", node("n1"), queue("q"), *alone, *gang).reasons]
    why = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    assert told[0] == f"1. ml/a: {why}"
    assert told[1].startswith("2. ml/g: 2/2 tasks in gang unschedulable")


def test_what_a_queue_borrowed_and_lends_is_told() -> None:
    busy = [group("r", 1, "b", "Running"), pod("r-0", "r", "3", on="n1")]
    waiting = [group("w", 1, "a", phase="Pending"), pod("w-0", "w", "9")]
    tree = [queue("a"), queue("b")]
    notes = of_queue("b", node("n1"), *tree, *busy, *waiting).notes
    assert "it has borrowed 1 cpu, which others may take back" in notes
    assert any(
        "2 cpu" in note and "may be borrowed" in note
        for note in of_queue("a", node("n1"), *tree, *busy, *waiting).notes
    )


def test_what_is_held_is_not_lent() -> None:
    notes = of_queue("a", node("n1"), queue("a", min={"cpu": "2"})).notes
    assert notes == ["2 cpu is idle and held for it"]


def test_a_queue_whose_place_in_the_tree_is_wrong_says_so() -> None:
    assert codes(of_queue("a", queue("a", parent="x"))) == ["QueueInvalid"]


# -- evictions ----------------------------------------------------------------------------------


def test_what_a_pod_says_of_its_eviction() -> None:
    notes = {"volcano-py.io/evicted-for": "ml/x", "volcano-py.io/evicted-by-rule": "reclaim: queue a is over"}
    assert written_on(pod("a", "g", annotations=notes)) == [
        "it was evicted for ml/x: reclaim: queue a is over"
    ]
    assert written_on(pod("a", "g")) == []


# -- how it is called -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [("podgroup", "x"), ("podgroup/x",), ("podgroups.scheduling.volcano.sh/x",)]
)
def test_an_object_can_be_named_as_kubectl_names_it(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["explain", *words, "--kubeconfig", "/nowhere"])
    assert "/nowhere" in done.stderr
    unknown = CliRunner().invoke(app, ["explain", "nodes/x", "--kubeconfig", "/nowhere"])
    assert 'there is no command "nodes"' in unknown.stderr
