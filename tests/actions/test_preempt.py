"""preempt: who starts in place of whom inside a queue, and who never does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.actions.claims import CONFIG, HIGH, LOW, MID, NOW, cluster, evicted, promised, reason
from tests.clusters import Document, group, node, pod, queue

PREEMPTABLE = "volcano.sh/preemptable"


def job(name: str, priority: str, **more: Any) -> Document:
    return group(name, priorityClassName=priority, phase="Running", **more)


def test_two_members_start_on_what_one_victim_leaves() -> None:
    result = cluster(
        node("n1", cpu="8"),
        job("big", LOW),
        pod("big-0", "big", "8", on="n1"),
        group("pair", 2, priorityClassName=HIGH),
        pod("pair-0", "pair", "4"),
        pod("pair-1", "pair", "4"),
    ).cycle(NOW)
    assert evicted(result) == ["big-0"]
    assert promised(result) == {"pair-0": "n1", "pair-1": "n1"}


def test_who_starts_without_a_victim_waits_for_nobody() -> None:
    """Allocate looks at ``a`` before the pod that it wants to be beside is placed."""
    near = {"requiredDuringSchedulingIgnoredDuringExecution": [{
        "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "b"}},
    }]}  # fmt: skip
    result = cluster(
        node("n1", cpu="4"),
        group("a"),
        pod("a-0", "a", "1", affinity={"podAffinity": near}),
        group("b"),
        pod("b-0", "b", "1", labels={"app": "b"}),
    ).cycle(NOW)
    assert [(d.kind, d.pod, d.reason) for d in result.decisions] == [
        ("bind", "ml/b-0", "fits; 1 of 1 members stand"),
        ("bind", "ml/a-0", "fits; 1 of 1 members stand"),
    ]


def test_a_useless_victim_stays() -> None:
    """The lowest pod holds only memory; what lacks is cpu."""
    result = cluster(
        node("n1", cpu="4"),
        job("memory", LOW),
        pod("memory-0", "memory", None, on="n1", requests={"memory": "8Gi"}),
        job("cpu", MID),
        pod("cpu-0", "cpu", "4", on="n1"),
        group("c", priorityClassName=HIGH),
        pod("c-0", "c", "2"),
    ).cycle(NOW)
    assert evicted(result) == ["cpu-0"]


def test_spare_members_go_before_whole_gangs() -> None:
    result = cluster(
        node("n1", cpu="4"),
        job("single", LOW),
        pod("single-0", "single", "2", on="n1"),
        job("elastic", LOW),
        pod("elastic-0", "elastic", "1", on="n1"),
        pod("elastic-1", "elastic", "1", on="n1"),
        group("c", priorityClassName=HIGH),
        pod("c-0", "c", "1"),
    ).cycle(NOW)
    assert evicted(result) in (["elastic-0"], ["elastic-1"])


def test_a_gang_without_spare_members_goes_as_one() -> None:
    """One of its pods would be enough, but the other two could do nothing without it."""
    result = cluster(
        node("n1", cpu="2"),
        node("n2", cpu="1"),
        group("gang", 3, priorityClassName=LOW, phase="Running"),
        *(pod(f"gang-{i}", "gang", "1", on=on) for i, on in enumerate(("n1", "n1", "n2"))),
        group("c", priorityClassName=HIGH),
        pod("c-0", "c", "1"),
    ).cycle(NOW)
    assert evicted(result) == ["gang-0", "gang-1", "gang-2"]


def test_room_that_a_gang_leaves_elsewhere_is_used() -> None:
    """Its members stand on two nodes; going whole it makes room on both, and nobody else has to go."""
    result = cluster(
        node("n1", cpu="2"),
        node("n2", cpu="2"),
        group("gang", 2, priorityClassName=LOW, phase="Running"),
        pod("gang-0", "gang", "2", on="n1"),
        pod("gang-1", "gang", "2", on="n2"),
        group("c", 2, priorityClassName=HIGH),
        pod("c-0", "c", "2"),
        pod("c-1", "c", "2"),
    ).cycle(NOW)
    assert evicted(result) == ["gang-0", "gang-1"]
    assert sorted(promised(result).values()) == ["n1", "n2"]


def test_role_minimums_of_a_victim_hold() -> None:
    """Two members are spare, but of the role master none is."""
    roles = {"m-0": "master", "m-1": "worker", "m-2": "worker", "m-3": "worker"}
    result = cluster(
        node("n1", cpu="4"),
        group("m", 2, priorityClassName=LOW, phase="Running", minTaskMember={"master": 1, "worker": 1}),
        *(pod(n, "m", "1", on="n1", annotations={"volcano.sh/task-spec": r}) for n, r in roles.items()),
        group("c", priorityClassName=HIGH),
        pod("c-0", "c", "2"),
    ).cycle(NOW)
    assert len(evicted(result)) == 2
    assert "m-0" not in evicted(result)


def test_who_loses_least_work_goes() -> None:
    """Of equal pods the one that wrote a checkpoint a minute ago."""
    saved = {"volcano-py.io/last-checkpoint": "2025-12-31T23:59:00Z"}
    result = cluster(
        node("n1", cpu="4"),
        job("a", LOW),
        pod("a-0", "a", "2", on="n1"),
        job("b", LOW),
        pod("b-0", "b", "2", on="n1", annotations=saved),
        group("c", priorityClassName=HIGH),
        pod("c-0", "c", "2"),
    ).cycle(NOW)
    assert evicted(result) == ["b-0"]
    (decision,) = (d for d in result.decisions if d.kind == "evict")
    assert decision.lost == "120 cpu-seconds"
    assert decision.for_whom == "ml/c"
    assert decision.reason == "preempt: ml/c (priority 100) goes before ml/b (priority 10) in queue default"


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        ({PREEMPTABLE: "false"}, "1 may not be interrupted"),
        ({"volcano.sh/cooldown-time": "24h"}, "1 younger than their minimum run time"),
    ],
)
def test_protected_work_stays_and_the_claimant_is_told(mark: dict[str, str], text: str) -> None:
    result = cluster(
        node("n1", cpu="2"),
        job("v", LOW),
        pod("v-0", "v", "2", on="n1", annotations=mark),
        group("c", priorityClassName=HIGH),
        pod("c-0", "c", "2"),
    ).cycle(NOW)
    assert evicted(result) == []
    assert f"preempt: no victim: {text}" in reason(result, "c-0")


def test_critical_pods_stay_whatever_is_configured() -> None:
    config = 'actions: "preempt"\ntiers: [{plugins: [{name: priority}]}]\n'
    result = cluster(
        node("n1", cpu="2"),
        job("v", LOW),
        pod("v-0", "v", "2", on="n1", priorityClassName="system-cluster-critical", priority=5),
        group("c", priorityClassName=HIGH),
        pod("c-0", "c", "2"),
        config=config,
    ).cycle(NOW)
    assert evicted(result) == []
    assert "1 critical for the cluster" in reason(result, "c-0")


def test_preemption_policy_never_takes_nothing() -> None:
    result = cluster(
        node("n1", cpu="2"),
        job("v", LOW),
        pod("v-0", "v", "2", on="n1"),
        group("c", priorityClassName=HIGH),
        pod("c-0", "c", "2", preemptionPolicy="Never"),
    ).cycle(NOW)
    assert evicted(result) == []
    assert "preemptionPolicy is Never" in reason(result, "c-0")


def test_one_member_that_cannot_start_spares_everybody() -> None:
    result = cluster(
        node("n1", cpu="4"),
        job("v", LOW),
        *(pod(f"v-{i}", "v", "1", on="n1") for i in range(4)),
        group("c", 2, priorityClassName=HIGH),
        pod("c-0", "c", "1"),
        pod("c-1", "c", "1", nodeSelector={"zone": "none"}),
    ).cycle(NOW)
    assert evicted(result) == []


def test_a_nominated_claimant_asks_nobody_else_while_its_victims_leave() -> None:
    made = cluster(
        node("n1", cpu="2"),
        node("n2", cpu="2"),
        job("a", LOW),
        pod("a-0", "a", "2", on="n1"),
        job("b", LOW),
        pod("b-0", "b", "2", on="n2"),
        group("c", priorityClassName=HIGH),
        pod("c-0", "c", "2"),
    )
    assert evicted(made.cycle(NOW)) == ["a-0"]
    for second in range(1, 4):
        assert evicted(made.cycle(NOW + second)) == []
    made.settle(NOW + 4)
    assert [d.pod for d in made.cycle(NOW + 4).decisions if d.kind == "bind"] == ["ml/c-0"]


def test_a_pod_made_anew_does_not_win_back_its_room() -> None:
    made = cluster(
        node("n1", cpu="4"),
        job("v", LOW),
        pod("v-0", "v", "4", on="n1"),
        group("c", priorityClassName=HIGH),
        pod("c-0", "c", "4"),
    )
    total: list[str] = []
    for second in range(5):
        result = made.cycle(NOW + second)
        total += evicted(result)
        made.settle(NOW + second)
        if second == 0:
            made.apply(pod("v-0", "v", "4", metadata={"uid": "anew"}))
    assert total == ["v-0"]
    running = made.state.jobs.named("ml/c")
    assert running is not None
    assert running.ready() == 1


def test_a_full_queue_replaces_its_own_though_nodes_are_idle() -> None:
    made = cluster(
        node("n1", cpu="8"),
        queue("q", capability={"cpu": "3"}),
        job("low", LOW, queue="q"),
        pod("low-0", "low", "2", on="n1"),
        job("mid", MID, queue="q"),
        pod("mid-0", "mid", "1", on="n1"),
        group("c", queue="q", priorityClassName=HIGH),
        pod("c-0", "c", "2"),
    )
    result = made.cycle(NOW)
    assert evicted(result) == ["low-0"]
    assert promised(result) == {"c-0": "n1"}


def test_a_hopeless_limit_takes_nobody() -> None:
    """What may go does not make room under the queue's max."""
    result = cluster(
        node("n1", cpu="8"),
        queue("q", capability={"cpu": "3"}),
        job("high", HIGH, queue="q"),
        pod("high-0", "high", "2", on="n1"),
        job("low", LOW, queue="q"),
        pod("low-0", "low", "1", on="n1"),
        group("c", queue="q", priorityClassName=MID),
        pod("c-0", "c", "2"),
    ).cycle(NOW)
    assert evicted(result) == []


def test_inside_a_job_the_more_important_pod_replaces_the_other() -> None:
    config = CONFIG.replace("{name: gang}", "{name: gang, enableJobStarving: false}")
    result = cluster(
        node("n1", cpu="2"),
        group("j", 1, phase="Running"),
        pod("j-0", "j", "2", on="n1", priority=5),
        pod("j-1", "j", "2", priority=9),
        config=config,
    ).cycle(NOW)
    assert evicted(result) == ["j-0"]
    assert promised(result) == {"j-1": "n1"}


def test_who_keeps_it_away_from_another_node_is_not_evicted_and_that_is_told() -> None:
    """Room can be made on n2 alone, and the pod on n1 keeps the claimant from all of the zone."""
    zone = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [zone]}}
    result = cluster(
        node("n1", cpu="2", labels={"zone": "z"}),
        node("n2", labels={"zone": "z"}),
        *(job("low-1", LOW), pod("low-1-0", "low-1", "1", on="n1", labels={"app": "x"})),
        *(job("low-2", LOW), pod("low-2-0", "low-2", "4", on="n2")),
        *(group("big", priorityClassName=HIGH), pod("big-0", "big", "4", affinity=alone)),
    ).cycle(NOW)
    assert evicted(result) == []
    assert "pods on other nodes are not evicted, where they are why 2 node(s) didn't" in reason(
        result, "big-0"
    )


def test_ports_of_the_victim_are_thought_away() -> None:
    """Amounts would fit beside; it is the host port that is taken."""
    port = {"containerPort": 80, "hostPort": 80}

    def served(name: str, of: str, **more: Any) -> Document:
        made = pod(name, of, "1", **more)
        made["spec"]["containers"][0]["ports"] = [port]
        return made

    result = cluster(
        node("n1", cpu="8"),
        job("other", LOW),
        pod("other-0", "other", "1", on="n1"),
        job("v", LOW),
        served("v-0", "v", on="n1"),
        group("c", priorityClassName=HIGH),
        served("c-0", "c"),
    ).cycle(NOW)
    assert evicted(result) == ["v-0"]
    assert promised(result) == {"c-0": "n1"}
