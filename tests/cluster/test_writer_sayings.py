"""Only what is new against the object is ordered; so a new scheduler repeats nothing."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.crds.podgroup import PodGroup
from volcano_py.crds.queue import Queue
from volcano_py.scheduler.cluster.orders import NominateOrder, Note
from volcano_py.scheduler.cluster.sayings import Said, group_status, nomination, queue_status, refusal
from volcano_py.scheduler.model.kube.objects import Pod, decode

NOW = 1_800_000_000.0
REFUSED = Said("Unschedulable", "True", "NotEnoughResources", "0/3 nodes are available")
READY = Said("Scheduled", "True", "tasks in gang are ready to be scheduled", "")


def pod(status: dict[str, Any], **spec: Any) -> Pod:
    meta = {"name": "a", "namespace": "ns", "uid": "u"}
    made = decode({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status})
    assert isinstance(made, Pod)
    return made


def waiting(message: str, reason: str = "Unschedulable") -> Pod:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return pod({"conditions": [condition]})


def group(status: dict[str, Any] | None = None) -> PodGroup:
    meta = {"name": "g", "namespace": "ns", "uid": "u"}
    document = {"metadata": meta, "spec": {}, **({} if status is None else {"status": status})}
    return PodGroup.model_validate(document)


def said(conditions: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    return {each["type"]: each for each in conditions}


# -- pods ---------------------------------------------------------------------------------------


def test_what_a_pod_says_already_is_not_ordered() -> None:
    assert refusal(waiting("0/3 nodes"), "0/3 nodes", "NodesUnfit") is None


def test_other_figures_are_a_minor_order_without_an_event() -> None:
    order = refusal(waiting("0/3 nodes, 2.5 cpu short"), "0/4 nodes, 12 cpu short", "NodesUnfit")
    assert order is not None
    assert (order.minor, order.event) == (True, False)


def test_other_words_are_news() -> None:
    order = refusal(waiting("0/3 nodes"), "queue a is full", "NodesUnfit")
    assert order is not None
    assert (order.minor, order.event) == (False, True)


@pytest.mark.parametrize(
    ("reason", "condition"),
    [
        ("NodesUnfit", "Unschedulable"),
        ("GangIncomplete", "Unschedulable"),
        ("ClusterFull", "Unschedulable"),
        ("QueueLimit", "QueueLimit"),
        ("QueueClosed", "QueueClosed"),
        ("BindFailed", "BindFailed"),
    ],
)
def test_no_autoscaler_buys_a_node_for_what_no_node_would_change(reason: str, condition: str) -> None:
    order = refusal(pod({}), "sorry", reason)
    assert order is not None
    assert order.reason == condition


def test_a_gang_that_its_queue_stops_needs_no_node() -> None:
    order = refusal(pod({}), "sorry", "GangIncomplete", nodes=0)
    assert order is not None
    assert order.reason == "GangIncomplete"


def test_a_nomination_is_ordered_where_it_differs() -> None:
    there = pod({"nominatedNodeName": "n1"})
    assert nomination(there, "n1") is None
    assert nomination(there, "") == NominateOrder("ns", "a", "u", "")
    assert nomination(pod({}), "") is None
    assert nomination(pod({}, nodeName="n1"), "n2") is None


# -- PodGroups ----------------------------------------------------------------------------------


def test_the_first_status_of_a_group_has_time_and_cycle() -> None:
    order = group_status(group(), "Inqueue", (0, 0, 0), [REFUSED], "s-1", NOW)
    assert order is not None
    (condition,) = order.status["conditions"]
    assert condition == {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughResources",
        "message": "0/3 nodes are available",
        "transitionID": "s-1",
        "lastTransitionTime": "2027-01-15T08:00:00Z",
    }
    assert order.notes == (Note("Unschedulable", "0/3 nodes are available", warning=True),)


def written() -> PodGroup:
    order = group_status(group(), "Inqueue", (0, 0, 0), [REFUSED], "s-1", NOW)
    assert order is not None
    return group(dict(order.status))


def test_a_status_that_stands_there_is_not_ordered() -> None:
    assert group_status(written(), "Inqueue", (0, 0, 0), [REFUSED], "s-2", NOW + 60) is None
    assert group_status(group({"phase": "Running"}), "Running", (0, 0, 0), [], "s-2", NOW) is None


def test_other_figures_keep_time_and_cycle_and_are_minor() -> None:
    other = REFUSED._replace(message="0/4 nodes are available")
    order = group_status(written(), "Inqueue", (0, 0, 0), [other], "s-2", NOW + 60)
    assert order is not None
    (condition,) = order.status["conditions"]
    assert condition["transitionID"] == "s-1"
    assert condition["lastTransitionTime"] == "2027-01-15T08:00:00Z"
    assert condition["message"] == "0/4 nodes are available"
    assert (order.minor, order.notes) == (True, ())


def test_a_group_that_starts_is_not_unschedulable_any_more_and_says_so_once() -> None:
    order = group_status(written(), "Running", (3, 0, 0), [READY], "s-2", NOW + 60)
    assert order is not None
    conditions = said(order.status["conditions"])
    assert conditions["Unschedulable"]["status"] == "False"
    assert conditions["Unschedulable"]["transitionID"] == "s-2"
    assert conditions["Scheduled"]["status"] == "True"
    assert [note.reason for note in order.notes] == ["Scheduled"]
    again = group_status(group(dict(order.status)), "Running", (4, 0, 0), [READY], "s-3", NOW + 90)
    assert again is not None
    assert again.notes == ()
    assert not again.minor


def test_conditions_of_others_stay() -> None:
    other = {"type": "Mine", "status": "True", "reason": "r", "message": "m"}
    order = group_status(
        group({"phase": "Inqueue", "conditions": [other]}), "Inqueue", (0, 0, 0), [REFUSED], "s", NOW
    )
    assert order is not None
    assert said(order.status["conditions"])["Mine"]["message"] == "m"


# -- queues -------------------------------------------------------------------------------------


def test_a_queue_is_told_what_it_holds_and_what_no_more() -> None:
    queue = Queue.model_validate(
        {
            "metadata": {"name": "q", "uid": "u"},
            "spec": {},
            "status": {"allocated": {"cpu": "1", "pods": "1"}},
        }
    )
    order = queue_status(queue, {"cpu": "2"})
    assert order is not None
    assert order.status == {"allocated": {"cpu": "2"}}
    assert queue_status(queue, {"cpu": "1", "pods": "1"}) is None
