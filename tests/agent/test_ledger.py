"""Who holds what, where the kubelet's two words differ: PodResources knows names, the checkpoint UIDs."""

from __future__ import annotations

from tests.agent.node import GPU
from volcano_py.shim.agent.kubelet import Holding, Ledger

A, B = frozenset({"GPU-0-1"}), frozenset({"GPU-1-1"})


def by_name(ids: frozenset[str], pod: str = "p") -> Holding:
    return Holding("", "ns", pod, "main", GPU, ids)


def by_uid(ids: frozenset[str], uid: str) -> Holding:
    return Holding(uid, "", "", "main", GPU, ids)


def held(ledger: Ledger, uid: str) -> frozenset[str]:
    return ledger.held(GPU, uid=uid, namespace="ns", pod="p", container="main")


def test_a_name_alone_tells() -> None:
    assert held(Ledger((by_name(A),)), "new") == A


def test_a_uid_goes_before_a_name() -> None:
    assert held(Ledger((by_name(A), by_uid(A, "old"), by_uid(B, "new"))), "new") == B


def test_what_is_another_pods_by_uid_is_not_this_ones_by_name() -> None:
    """A pod that is being ended still stands under the name; the new one waits."""
    assert held(Ledger((by_name(A), by_uid(A, "old"))), "new") == frozenset()


def test_a_container_that_is_listed_without_devices_waits() -> None:
    """Both pods of the name are listed, and without a checkpoint nothing tells them apart but that."""
    assert held(Ledger((by_name(A),), frozenset({("ns", "p", "main")})), "new") == frozenset()


def test_other_resources_and_containers_are_others() -> None:
    ledger = Ledger((by_name(A),))
    assert ledger.held("x/y", uid="", namespace="ns", pod="p", container="main") == frozenset()
    assert ledger.held(GPU, uid="", namespace="ns", pod="p", container="side") == frozenset()
    assert ledger.owners(GPU, B) == []
