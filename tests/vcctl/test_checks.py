"""Each check of the doctor: what it finds, with the object and the evidence, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clusters import group, node, pod, queue
from tests.vcctl.evidence import HAMI, NOW, NVIDIA, Document, found, only, seen
from volcano_py.cli.vcctl.doctor.checks import CHECKS, findings
from volcano_py.cli.vcctl.doctor.finding import Denied
from volcano_py.cli.vcctl.doctor.gather import our_clock
from volcano_py.crds.objects import KINDS
from volcano_py.crds.schema import crd_manifest
from volcano_py.scheduler.model.kube.times import format_time
from volcano_py.simulator.kubelet.nodes import CardShape, NodeShape, make_nodes

# -- the registry -------------------------------------------------------------------------------


def test_a_sound_cluster_has_no_findings() -> None:
    crds = [crd_manifest(kind) for kind in KINDS]
    evidence = seen(node("n1"), queue("q"), group("g", 1, "q"), pod("g-0", "g", on="n1"), *crds, lease())
    assert list(findings(evidence, CHECKS)) == []


def test_a_finding_says_which_check_found_it() -> None:
    evidence = seen(node("n1"), queue("q", max={"nvidia.com/gpu": "1"}))
    assert [one.check for one in findings(evidence, {"queue-resources", "gangs"})] == ["queue-resources"]


# -- CRDs ---------------------------------------------------------------------------------------


def test_missing_crds_are_errors() -> None:
    told = found("crds", seen())
    assert len(told) == len(KINDS)
    assert {one.severity for one in told} == {"error"}
    assert "kubectl apply" in told[0].fix


def test_a_crd_without_a_field_of_ours_is_told_with_the_field() -> None:
    crds = [crd_manifest(kind) for kind in KINDS]
    spec = crds[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["lendingPaused"]
    one = only("crds", seen(*crds))
    assert one.object == "CustomResourceDefinition queues.scheduling.volcano.sh"
    assert "spec.lendingPaused" in one.evidence


def test_a_crd_that_serves_another_version_is_an_error() -> None:
    crds = [crd_manifest(kind) for kind in KINDS]
    crds[1]["spec"]["versions"][0]["name"] = "v1alpha2"
    one = only("crds", seen(*crds))
    assert (one.severity, one.evidence) == ("error", "serves v1alpha2, not v1beta1")


def test_a_crd_that_keeps_unknown_fields_lacks_none() -> None:
    crds = [crd_manifest(kind) for kind in KINDS]
    schema = crds[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert found("crds", seen(*crds)) == []


def test_crds_that_may_not_be_read_are_told_as_such() -> None:
    one = only("crds", seen(unread={"CustomResourceDefinition": "forbidden"}))
    assert (one.severity, "forbidden" in one.evidence) == ("warning", True)


# -- rights and clocks --------------------------------------------------------------------------


def test_refused_rights_are_told_by_account() -> None:
    rights = [Denied("volcano-system/s", verb, "pods", "") for verb in ("get", "list")]
    one = only("rbac", seen(rights=rights))
    assert one.object == "ServiceAccount volcano-system/s"
    assert "get pods, list pods" in one.evidence


@pytest.mark.parametrize(("ahead", "word"), [(60.0, "ahead of"), (-60.0, "behind")])
def test_a_server_clock_that_is_off_is_told(ahead: float, word: str) -> None:
    one = only("clocks", seen(server_now=NOW + ahead))
    assert f"60 s {word}" in one.evidence


def test_a_few_seconds_are_no_skew() -> None:
    assert found("clocks", seen(server_now=NOW + 2)) == []


@pytest.mark.parametrize(("server_s", "ours_s"), [(7, 7), (-60, 0), (99, 30)])
def test_who_waited_long_for_an_answer_has_no_clock_that_is_off(server_s: float, ours_s: float) -> None:
    assert our_clock(NOW + server_s, NOW, NOW + 30) == NOW + ours_s


def test_a_node_that_renews_in_the_future_is_told() -> None:
    one = only("clocks", seen(lease("n1", "kube-node-lease", renewed=NOW + 120)))
    assert (one.object, "120 s" in one.evidence) == ("Node n1", True)


@pytest.mark.parametrize(("status", "findings"), [("True", 1), ("Unknown", 0)])
def test_a_node_that_is_ready_and_renewed_long_ago_is_told(status: str, findings: int) -> None:
    there = node("n1")
    there["status"]["conditions"] = [{"type": "Ready", "status": status}]
    told = found("clocks", seen(there, lease("n1", "kube-node-lease", renewed=NOW - 300)))
    assert [one.evidence[:28] for one in told] == ["renewed its lease 300 s ago "] * findings


def test_a_node_may_be_silent_for_as_long_as_its_lease_holds() -> None:
    there, slow = node("n1"), lease("n1", "kube-node-lease", renewed=NOW - 300)
    there["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    slow["spec"]["leaseDurationSeconds"] = 400
    assert found("clocks", seen(there, slow)) == []
    slow["spec"]["leaseDurationSeconds"] = 150
    assert len(found("clocks", seen(there, slow))) == 1


# -- schedulers ---------------------------------------------------------------------------------


def lease(name: str = "volcano-py", space: str = "volcano-system", renewed: float = NOW) -> Document:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": space},
        "spec": {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "renewTime": format_time(renewed),
        },
    }


def waiting(scheduler: str, **more: Any) -> Document:
    return pod("a", "g", schedulerName=scheduler, **more)


def test_a_scheduler_that_nobody_runs_is_told_with_a_near_name() -> None:
    one = only("schedulers", seen(waiting("volcano-pi"), lease()))
    assert (one.severity, one.object) == ("error", "Pod ml/a")
    assert "volcano-pi" in one.evidence
    assert 'did you mean "volcano-py"' in one.fix


def test_a_scheduler_whose_lease_ran_out_is_told_so() -> None:
    one = only("schedulers", seen(waiting("volcano"), lease(renewed=NOW - 60)))
    assert "expired" in one.evidence
    assert "did you mean" not in one.fix


@pytest.mark.parametrize(
    "pod_document",
    [
        waiting("volcano"),
        waiting("x", on="n1"),
        waiting("x", created=format_time(NOW - 5)),
        waiting("x", schedulingGates=[{"name": "wait"}]),
        waiting("x", status={"conditions": [{"type": "PodScheduled", "status": "False"}]}),
        waiting("x", metadata={"deletionTimestamp": format_time(NOW)}),
    ],
    ids=["served", "bound", "young", "gated", "looked-at", "leaving"],
)
def test_pods_that_are_looked_at_or_need_not_be_are_left_alone(pod_document: Document) -> None:
    assert found("schedulers", seen(pod_document, lease())) == []


def test_a_name_that_the_holder_of_the_lease_does_not_serve_is_told() -> None:
    """As with ``--scheduler-name volcano-py``, after Volcano's own scheduler is gone."""
    mine = lease()
    mine["metadata"]["annotations"] = {"volcano-py.io/scheduler-names": "volcano-py,other"}
    assert "volcano" in only("schedulers", seen(waiting("volcano"), mine)).evidence
    assert found("schedulers", seen(waiting("other"), mine)) == []


def test_a_scheduler_that_writes_events_lives() -> None:
    event = {"kind": "Event", "metadata": {"name": "e"}, "reportingComponent": "x"}
    assert found("schedulers", seen(waiting("x"), event)) == []


# -- queues and groups --------------------------------------------------------------------------


def test_a_missing_parent_and_a_circle_are_told() -> None:
    told = found("queue-tree", seen(queue("a", parent="b"), queue("b", parent="a"), queue("c", parent="x")))
    assert [one.object for one in told] == ["Queue a", "Queue b", "Queue c"]
    assert "circle" in told[0].evidence
    assert "x does not exist" in told[2].evidence


def test_a_limit_on_a_resource_that_no_node_has_is_told_with_a_near_name() -> None:
    gpu = node("n1", amounts={"nvidia.com/gpu": "4"})
    one = only("queue-resources", seen(gpu, queue("q", max={"cpu": "4", "nvidia.com/gpus": "2"})))
    assert one.evidence == "spec.max names nvidia.com/gpus, which no node has"
    assert 'did you mean "nvidia.com/gpu"' in one.fix


def test_limits_on_what_nodes_have_are_fine() -> None:
    gpu = node("n1", amounts={"nvidia.com/gpu": "4"})
    limits = {"nvidia.com/gpu": "2", "ephemeral-storage": "1Gi"}
    assert found("queue-resources", seen(gpu, queue("q", capability=limits))) == []


def test_a_group_in_a_queue_that_is_not_there_is_told_with_a_near_name() -> None:
    one = only("missing-queues", seen(queue("train"), group("g", 1, "trian"), pod("g-0", "g")))
    assert one.object == "PodGroup ml/g"
    assert "podgroup move g -n ml" in one.fix
    assert 'did you mean "train"' in one.fix


def test_a_closed_queue_in_which_somebody_waits_is_told() -> None:
    closed = {**queue("q"), "status": {"state": "Closed"}}
    waiting = [each for name in "ab" for each in (group(name, 1, "q"), pod(f"{name}-0", name))]
    runs = [group("r", 1, "q", "Running"), pod("r-0", "r", on="n1")]
    one = only("missing-queues", seen(node("n1"), closed, *waiting, *runs))
    assert (one.severity, one.object) == ("warning", "Queue q")
    assert one.evidence == "takes no jobs, since it is not open, and 2 PodGroups wait there: ml/a, ml/b"
    assert one.fix.startswith("vcctl-py queue operate q -a open, or vcctl-py podgroup move a -n ml")
    assert found("missing-queues", seen(node("n1"), closed, *runs)) == []


def test_a_pod_without_its_group_is_told() -> None:
    one = only("missing-queues", seen(pod("a", "nobody")))
    assert (one.object, "ml/nobody does not exist" in one.evidence) == ("Pod ml/a", True)


def test_pods_that_nobody_puts_into_a_group_are_told_once() -> None:
    made = [pod(name, "") for name in ("a", "b")]
    others = [pod("young", "", created=format_time(NOW - 5)), pod("bound", "", on="n1"), pod("g-0", "g")]
    one = only("missing-queues", seen(node("n1"), queue("q"), group("g", 1, "q"), *made, *others))
    assert (one.object, one.evidence[:45]) == ("Pod ml/a", "2 pods without a PodGroup (ml/a, ml/b): no co")
    assert "kubectl describe pod a -n ml" in one.fix


# -- gangs --------------------------------------------------------------------------------------


def gang(members: int, **more: Any) -> list[Document]:
    return [group("g", members, "q"), *(pod(f"g-{i}", "g", **more) for i in range(members))]


def test_a_gang_larger_than_the_empty_cluster_is_told() -> None:
    one = only("gangs", seen(node("n1", "4"), queue("q"), *gang(3, cpu="2")))
    assert "needs 3 pods at once; the cluster, if it were empty, holds 2" in one.evidence


def test_what_runs_there_now_is_no_reason() -> None:
    busy = [group("r", 1, "q", "Running"), pod("r-0", "r", "4", on="n1")]
    assert found("gangs", seen(node("n1", "4"), queue("q"), *busy, *gang(2, cpu="2"))) == []


def test_a_gang_larger_than_its_queue_ever_gets_is_told_with_the_limit() -> None:
    one = only("gangs", seen(node("n1", "16"), queue("q", max={"cpu": "5"}), *gang(3, cpu="2")))
    assert "queue q holds 2 of them, its max is 5 cpu" in one.evidence


def test_a_gang_that_runs_is_left_alone_whatever_its_node_says_now() -> None:
    runs = [group("g", 2, "q", "Running"), *(pod(f"g-{i}", "g", "3", on="n1") for i in range(2))]
    assert found("gangs", seen(node("n1", "4"), queue("q"), *runs)) == []


def test_a_limit_above_the_queue_counts_too() -> None:
    tree = [queue("top", max={"cpu": "3"}), queue("q", parent="top")]
    one = only("gangs", seen(node("n1", "16"), *tree, *gang(2, cpu="2")))
    assert "queue top" in one.evidence


def test_a_pod_larger_than_any_node_is_told_with_the_resource() -> None:
    one = only("gangs", seen(node("n1", "4"), node("n2", "4"), queue("q"), *gang(1, cpu="6")))
    assert "one asks 6 cpu, and no node has more than 4" in one.evidence
    assert one.fix == "let pod ml/g-0 ask for what a node and its queue have"


def test_a_resource_that_no_node_offers_is_told_once_with_a_near_name() -> None:
    asks = pod("g-0", "g", requests={"nvidia.com/gpuu": "1"})
    wants = group("g", 1, "q", minResources={"nvidia.com/gpuu": "1"})
    one = only("gangs", seen(node("n1", amounts={"nvidia.com/gpu": "4"}), queue("q"), wants, asks))
    assert 'no node offers nvidia.com/gpuu (did you mean "nvidia.com/gpu"?)' in one.evidence


def test_min_resources_above_everything_are_told() -> None:
    wide = group("g", 1, "q", "Pending", minResources={"cpu": "40"})
    one = only("gangs", seen(node("n1", "16"), queue("q"), wide))
    assert "asks 40 cpu; all nodes together have 16" in one.evidence


def cards(count: int) -> Document:
    (made,) = make_nodes(1, NodeShape(cards=CardShape(count)))
    return made


def test_a_gang_of_more_whole_cards_than_there_are_is_told() -> None:
    asks: dict[str, Any] = {"requests": {"nvidia.com/gpu": "1"}}
    one = only("gangs", seen(cards(4), queue("q"), *gang(5, **asks)))
    assert "needs 5 pods at once; alone in the cluster it would not start" in one.evidence
    assert "4 more would fit now" in one.evidence
    assert "victim" not in one.evidence
    busy = [group("r", 2, "q", "Running"), *(pod(f"r-{i}", "r", on="node-0", **asks) for i in range(2))]
    assert found("gangs", seen(cards(4), queue("q"), *busy, *gang(4, **asks))) == []


def test_amounts_of_cards_are_told_as_everywhere_else() -> None:
    wants = group("g", 1, "q", "Pending", minResources={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "900k"})
    one = only("gangs", seen(cards(4), queue("q"), wants))
    assert "asks 878.91Gi card memory; all nodes together have 320Gi" in one.evidence


def test_of_a_pod_alone_its_own_reason_is_told_and_who_says_more() -> None:
    one = only("gangs", seen(node("n1"), queue("q"), *gang(1, nodeSelector={"disk": "ssd"})))
    why = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    assert one.evidence.endswith(f"alone in the cluster it would not start: {why}")
    assert one.fix.endswith("; vcctl-py explain pod g-0 -n ml says more")


def crowded(memory: str) -> list[Document]:
    """Fourteen nodes on which no pod of 4 CPU and 2Gi may go, three of them with 2 CPU and *memory*."""
    taint = {"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]}
    shut = [{**node(f"t{number}", "16"), "spec": taint} for number in range(5)]
    cordoned = [{**node(f"u{number}", "16"), "spec": {"unschedulable": True}} for number in range(4)]
    small = [node(f"s{number}", "2", memory) for number in range(3)]
    return [*shut, *cordoned, *small, *(node(f"m{number}", "16", "1Gi") for number in range(2))]


@pytest.mark.parametrize(
    ("memory", "reasons"),
    [
        ("4Gi", "5 {taint}, 4 node(s) were unschedulable, 3 Insufficient cpu, and 2 more nodes"),
        ("1Gi", "5 Insufficient memory, 5 {taint}, 4 node(s) were unschedulable, and 1 other reason"),
    ],
)
def test_of_many_reasons_the_leading_ones_are_told_and_the_rest_is_counted(memory: str, reasons: str) -> None:
    """A node that lacks two amounts stands in two lines, so nodes can't be counted by lines there."""
    asks: dict[str, Any] = {"requests": {"cpu": "4", "memory": "2Gi"}}
    more: dict[str, Any] = {"requests": {"cpu": "4", "memory": "3Gi"}}
    pods = [pod("g-0", "g", **asks), pod("g-1", "g", **asks), pod("g-2", "g", **more)]
    one = only("gangs", seen(*crowded(memory), queue("q"), group("g", 3, "q"), *pods))
    told = reasons.format(taint="node(s) had untolerated taint {team: x}")
    assert f"the gang needs 3 and has 0; 2 x 0/14 nodes are available: {told}. Nearest is " in one.evidence
    assert one.evidence.endswith(" short; and 1 other reason")


def test_of_a_gang_that_the_gate_keeps_out_of_an_empty_cluster_the_gates_reason_is_told() -> None:
    made = group("g", 1, "q", "Pending", minResources={"cpu": "3"})
    one = only("gangs", seen(node("n1", "8"), queue("q", max={"cpu": "2"}), made, pod("g-0", "g", "1")))
    why = "queue q: 3 cpu asked with 0 in use, 1 over its max of 2"
    assert one.evidence == f"needs 1 pod at once; alone in the cluster it would not start: {why}"


def test_a_gang_that_waits_for_somebody_is_not_too_large() -> None:
    gated = gang(2, schedulingGates=[{"name": "later"}])
    assert found("gangs", seen(node("n1", "4"), queue("q"), *gated)) == []


# -- cards --------------------------------------------------------------------------------------


def plugin_pod(name: str, image: str, container: str = "c", on: str = "n1", **more: Any) -> Document:
    made = pod(name, "", on=on)
    made["spec"]["containers"] = [{"name": container, "image": image, **more}]
    return made


def test_two_device_plugins_on_one_node_are_told() -> None:
    pods = [plugin_pod("a", NVIDIA), plugin_pod("b", HAMI, "device-plugin")]
    one = only("device-plugins", seen(node("n1"), *pods))
    assert one.object == "Node n1"
    assert "ml/b (hami), ml/a (nvidia)" in one.evidence


def test_our_own_agent_is_a_device_plugin_whatever_its_image_is_called() -> None:
    agent = plugin_pod("a", "registry.example.com/batch:1", command=["volcano-py", "agent"])
    one = only("device-plugins", seen(node("n1"), agent, plugin_pod("b", HAMI, "device-plugin")))
    assert "ml/b (hami), ml/a (volcano-py)" in one.evidence
    scheduler = plugin_pod("a", "registry.example.com/batch:1", command=["volcano-py", "scheduler"])
    assert found("device-plugins", seen(node("n1"), scheduler, plugin_pod("b", NVIDIA))) == []


def test_the_scheduler_that_shares_an_image_is_no_device_plugin() -> None:
    pods = [plugin_pod("a", NVIDIA), plugin_pod("b", HAMI, "vgpu-scheduler-extender")]
    assert found("device-plugins", seen(node("n1"), *pods)) == []


def test_one_plugin_on_each_node_is_fine() -> None:
    pods = [plugin_pod("a", NVIDIA), plugin_pod("b", HAMI, "device-plugin", on="n2")]
    assert found("device-plugins", seen(node("n1"), node("n2"), *pods)) == []


def test_cards_reported_in_two_families_are_told() -> None:
    twice = {"nvidia.com/gpu": "8", "volcano.sh/vgpu-number": "80"}
    one = only("device-plugins", seen(node("n1", amounts=twice)))
    assert one.evidence == "reports its cards twice: 8 nvidia.com/gpu, 80 volcano.sh/vgpu-number"


def test_an_agent_that_publishes_both_families_on_purpose_is_fine() -> None:
    notes = {"hami.io/node-nvidia-register": "", "volcano.sh/node-vgpu-register": ""}
    twice = {"nvidia.com/gpu": "8", "volcano.sh/vgpu-number": "80"}
    assert found("device-plugins", seen(node("n1", amounts=twice, annotations=notes))) == []


CARDS = "GPU-a,10,16384,100,NVIDIA-A100,0,true:GPU-b,10,16384,100,NVIDIA-A100,0,true:"


def card_node() -> Document:
    return node(
        "n1", "16", amounts={"nvidia.com/gpu": "20"}, annotations={"hami.io/node-nvidia-register": CARDS}
    )


def whole(name: str, uuid: str) -> Document:
    record = f"{uuid},NVIDIA,16384,0:;"
    notes = {"hami.io/vgpu-node": "n1", "hami.io/vgpu-devices-allocated": record}
    return pod(name, "w", on="n1", requests={"nvidia.com/gpu": "1"}, annotations=notes)


def test_whole_cards_in_the_way_of_slices_are_told() -> None:
    holders = [group("w", 1, phase="Running"), whole("w-0", "GPU-a"), whole("w-1", "GPU-b")]
    wants = pod("s-0", "s", requests={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4096"})
    one = only("whole-cards", seen(card_node(), *holders, group("s", 1), wants))
    assert "1 pod without a slice of a card (ml/s-0), while 2 of 2 cards" in one.evidence
    assert "ml/w-0 (node n1 card 0)" in one.evidence


@pytest.mark.parametrize("asks", [{"nvidia.com/gpu": "1"}, {"volcano.sh/vgpu-number": "1"}])
def test_whole_cards_that_are_in_nobodys_way_are_fine(asks: dict[str, str]) -> None:
    """The second ask leaves the cores to others, but not a byte of memory."""
    holders = [group("w", 1, phase="Running"), whole("w-0", "GPU-a"), whole("w-1", "GPU-b")]
    wants = pod("s-0", "s", requests=asks)
    assert found("whole-cards", seen(card_node(), *holders, group("s", 1), wants)) == []


# -- objects ------------------------------------------------------------------------------------


def test_an_object_that_cannot_be_read_is_told_with_the_field() -> None:
    broken = pod("a", "g")
    broken["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "lots"}
    one = found("objects", seen(group("g", 1), broken))[0]
    assert (one.severity, one.object) == ("error", "Pod ml/a")
    assert "requests.cpu" in one.evidence


def test_a_doubtful_annotation_is_told() -> None:
    boosted = group("g", 1, annotations={"volcano-py.io/boost": "much"})
    told = found("objects", seen(boosted, pod("g-0", "g")))
    assert [(one.object, "boost" in one.evidence) for one in told] == [("PodGroup ml/g", True)]


# -- objects ------------------------------------------------------------------------------------


def test_a_group_without_pods_is_told_with_what_to_do() -> None:
    one = only("objects", seen(node("n1"), queue("q"), group("g", 1, "q", "Inqueue")))
    assert one.evidence == "has no pods; it may pass the gate, but nothing starts"
    assert one.fix.endswith("if nobody needs it, kubectl delete podgroup g -n ml")
