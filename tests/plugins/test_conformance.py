"""conformance: pods the cluster lives on are nobody's victims."""

from __future__ import annotations

import numpy as np

from tests.clusters import Document, group, node, pod
from tests.plugins.sharing import claim, opened, voted
from volcano_py.scheduler.framework.session import Session


def cluster() -> Session:
    system = pod("s-0", "s", on="n", priorityClassName="system-node-critical")
    kube: Document = pod("k-0", "k", on="n", metadata={"namespace": "kube-system"})
    return opened(
        "[{name: conformance}]", node("n"), group("c"), pod("c-0", "c"), group("s"), system, kube,
        group("v"), pod("v-0", "v", on="n"),
    )  # fmt: skip


def test_critical_pods_are_given_up_by_no_vote_and_protected_from_all() -> None:
    session = cluster()
    assert voted(session, "preemptable", "c-0", "s-0", "v-0") == [False, True]
    assert voted(session, "reclaimable", "c-0", "s-0", "v-0") == [False, True]
    assert voted(session, "protects", "c-0", "s-0", "v-0") == [True, False]


def test_kube_system_is_protected_without_a_class() -> None:
    session = cluster()
    (entry,) = session.points.protects
    task = session.state.tasks.index["kube-system/k-0"]
    mask, reason = entry.call(claim(session, "c-0"), np.array([task], np.int32))
    assert mask.tolist() == [True]
    assert reason == "critical for the cluster"


def test_the_protection_holds_with_the_votes_switched_off() -> None:
    session = opened(
        "[{name: conformance, enablePreemptable: false, enableReclaimable: false}]",
        node("n"), group("c"), pod("c-0", "c"), group("s"),
        pod("s-0", "s", on="n", priorityClassName="system-cluster-critical"),
    )  # fmt: skip
    assert not session.points.preemptable
    assert voted(session, "protects", "c-0", "s-0") == [True]
