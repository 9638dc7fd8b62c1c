"""Whose is it? The kubelet allocates without saying for which pod; this names who it must, or may, be.

Before the kubelet has written an allocation down, a container is **waiting** when its pod is bound here, its
record gives it as many shares as are asked for, and the ledger has no ids of it. The oldest of them is
supposed to be meant. Afterwards the ledger **tells** the pod, and what was supposed is tested against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from volcano_py.shim.agent.kubelet import Holding, Ledger
from volcano_py.shim.agent.pods import INIT, Claim, Pod, Record, bound_at
from volcano_py.shim.agent.slices import Owner


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod of this node with its record.

    Attributes:
        record: what the scheduler gave it.
    """

    pod: Pod
    record: Record


@dataclass(frozen=True, slots=True)
class Waiting:
    """A container that waits for its devices."""

    pod: Pod
    record: Record
    claim: Claim


def card_of(device_id: str) -> str:
    """The card of a device id, which is its identity with the number of the share behind it."""
    return device_id.rpartition("-")[0]


def cards_of(ids: Iterable[str]) -> Counter[str]:
    """How many of *ids* are on each card."""
    return Counter(map(card_of, ids))


def wanted_cards(claim: Claim) -> Counter[str]:
    """How many shares of each card *claim*'s record gives it."""
    return Counter(part.card for part in claim.parts)


def waiting(
    placed: Iterable[Placed], ledger: Ledger, owners: Sequence[Owner], resource: str, count: int
) -> list[Waiting]:
    """Containers that wait for *count* shares of *resource*, the likeliest first.

    Pods that the kubelet knows go before those that it does not know yet, then by age.
    """
    found = [
        Waiting(each.pod, each.record, claim)
        for each in placed
        for claim in each.record.claims
        if claim.counts.get(resource) == count
        and not each.pod.metadata.deletion_timestamp
        and not _has_ids(each.pod, claim, ledger, owners, resource)
    ]
    known = ledger.pods()
    return sorted(found, key=lambda one: ((_name(one.pod) not in known), bound_at(one.pod)))


def supposed(candidates: Sequence[Waiting], ids: Iterable[str]) -> Waiting | None:
    """Which of *candidates* *ids* are for: the first whose cards they are on, else the first."""
    cards = cards_of(ids)
    fitting = (one for one in candidates if wanted_cards(one.claim) == cards)
    return next(fitting, candidates[0] if candidates else None)


def told(pods: Iterable[Pod], holdings: Iterable[Holding]) -> Pod | None:
    """The one of *pods* that *holdings* speak of, by UID where one says it, else by name."""
    living = list(pods)
    found = list(holdings)
    uids = {each.uid for each in found if each.uid}
    keys = {(each.namespace, each.pod) for each in found if each.pod}
    by_uid = (pod for pod in living if pod.uid in uids)
    by_name = (pod for pod in living if _name(pod) in keys and not pod.metadata.deletion_timestamp)
    return next(by_uid, None) or next(by_name, None)


def ids_of(ledger: Ledger, pod: Pod, container: str, resource: str) -> frozenset[str]:
    """Ids of *resource* that *container* of *pod* holds by the ledger."""
    namespace, name = _name(pod)
    return ledger.held(resource, uid=pod.uid, namespace=namespace, pod=name, container=container)


def _name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name


def _has_ids(pod: Pod, claim: Claim, ledger: Ledger, owners: Sequence[Owner], resource: str) -> bool:
    if ids_of(ledger, pod, claim.container, resource):
        return True
    if claim.role != INIT or ledger.complete:
        return False
    # Without a checkpoint our own memory alone tells of init containers, and the ledger may contradict it.
    return any(
        owner.pod_uid == pod.uid
        and owner.container == claim.container
        and owner.resource == resource
        and all(_name(pod) == (each.namespace, each.pod) for each in ledger.owners(resource, owner.ids))
        for owner in owners
    )
