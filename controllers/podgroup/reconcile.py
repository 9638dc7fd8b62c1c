"""Which acts bring one PodGroup and its pods to where they should be. A pure function of what was observed.

The group comes before the annotation that names it, so that an end between the two leaves a pod that is
looked at again. A group that a pod names and that was made by us is made anew when it is gone; it is removed
only when its ReplicaSet or StatefulSet wants no pods, none is left, and the server says so when asked again.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from volcano_py.controllers import keys
from volcano_py.controllers.acts import (
    Act,
    Create,
    LookUpOwner,
    LookUpPod,
    Patch,
    Plan,
    RemoveIdleGroup,
    Say,
)
from volcano_py.controllers.observed import Change, Observed
from volcano_py.controllers.podgroup.build import Draft, Rules, draft
from volcano_py.controllers.records import (
    Document,
    GroupRecord,
    Owner,
    PodRecord,
    Record,
    WorkloadRecord,
    owners_of,
)
from volcano_py.crds.annotations import GROUP

__all__ = ["affected", "plan"]

_SCALED: Final = frozenset({"ReplicaSet", "StatefulSet"})
_ANNOTATED: Final = frozenset({"ReplicaSet", "StatefulSet", "DaemonSet", "Job"})

REFUSED: Final = "PodGroupRefused"
DOUBTS: Final = "PodGroupDoubts"


def affected(change: Change) -> set[str]:
    """Keys (``namespace/name``) of the PodGroups to look at after *change*."""
    return {key for record in change.records for key in _groups_of(record)}


def _groups_of(record: Record) -> Iterator[str]:
    namespace = record.identity.namespace
    if isinstance(record, PodRecord):
        yield f"{namespace}/{record.own_group}"
    elif isinstance(record, GroupRecord) and record.identity.name.startswith(keys.GROUP_PREFIX):
        yield record.identity.key
    elif isinstance(record, WorkloadRecord):
        yield f"{namespace}/{keys.GROUP_PREFIX}{record.identity.uid}"


def plan(seen: Observed, key: str, rules: Rules) -> Plan:
    """What is to be done about the PodGroup *key*."""
    namespace, _, name = key.partition("/")
    group = seen.group(key)
    pods = [pod for pod in seen.pods_of(namespace, name) if pod.own_group == name]
    if group is None:
        return Plan(tuple(_make(seen, name, pods, rules)))
    if group.identity.terminating:
        return Plan()
    loose = [pod for pod in pods if pod.is_live and not pod.group]
    if loose:
        return _join(seen, group, loose, rules)
    return Plan(tuple(_remove(seen, group, pods)))


def _make(seen: Observed, name: str, pods: list[PodRecord], rules: Rules) -> Iterator[Act]:
    """The group, when a live pod needs it: first for one without a group, whose document is at hand."""
    needy = [pod for pod in pods if pod.is_live and pod.group in ("", name)]
    if not needy:
        return
    pod = next((pod for pod in needy if seen.seed(pod) is not None), needy[0])
    seed = seen.seed(pod)
    if seed is None:
        yield LookUpPod(pod.identity)
        return
    made = yield from _drafted(seen, seed, name, rules)
    if made is None:
        return
    yield Create("PodGroup", pod.identity.namespace, made.document, for_whom=pod.identity)
    if made.doubts:
        yield Say(pod.identity, DOUBTS, "; ".join(made.doubts), warning=True)


def _join(seen: Observed, group: GroupRecord, loose: list[PodRecord], rules: Rules) -> Plan:
    """Name the group on its pods; where the owner's template moved on, the group follows first."""
    name = group.identity.name
    newest = next((pod.seed for pod in loose if pod.seed and _is_of_newest_template(seen, pod)), None)
    first = tuple(_follow(seen, group, newest, rules)) if newest is not None and group.made_from else ()
    if any(isinstance(act, LookUpOwner) for act in first):
        return Plan(first)
    named = {"metadata": {"annotations": {GROUP: name}}}
    return Plan(first, tuple(Patch(pod.identity, named) for pod in loose))


def _follow(seen: Observed, group: GroupRecord, newest: Document, rules: Rules) -> Iterator[Act]:
    """Bring the group to what *newest* says; if that is nothing new, what people changed in it stays."""
    made = yield from _drafted(seen, newest, group.identity.name, rules)
    if made is not None and made.made_from != group.made_from:
        yield Patch(group.identity, made.change)


def _remove(seen: Observed, group: GroupRecord, pods: list[PodRecord]) -> Iterator[Act]:
    """The group, when its owner wants no pods and none is left, not even one that is on its way out."""
    owner = group.owner
    if owner is None or group.identity.name != f"{keys.GROUP_PREFIX}{owner.uid}":
        return
    workload = seen.workload(group.identity.namespace, owner)
    if workload is not None and not workload.replicas and all(pod.finished for pod in pods):
        yield RemoveIdleGroup(group, owner)


def _is_of_newest_template(seen: Observed, pod: PodRecord) -> bool:
    """Whether *pod* shows what its ReplicaSet or StatefulSet asks for now."""
    if pod.owner is None or pod.owner.kind not in _SCALED:
        return False
    workload = seen.workload(pod.identity.namespace, pod.owner)
    return workload is not None and workload.revision in ("", pod.revision)


def _drafted(
    seen: Observed, seed: Document, name: str, rules: Rules
) -> Generator[LookUpOwner, None, Draft | None]:
    """The group as the pod and its owners say, or None after asking for owners that nobody has looked at.

    Of several owners the first to say something wins.
    """
    namespace = seed["metadata"]["namespace"]
    owners = list(_annotated_owners(seed)) if rules.inherit else []
    found = {owner: seen.owner_annotations(namespace, owner) for owner in owners}
    unknown = [owner for owner, said in found.items() if said is None]
    if unknown:
        yield from (LookUpOwner(namespace, owner) for owner in unknown)
        return None
    inherited: dict[str, str] = {}
    for said in found.values():
        inherited = {**(said or {}), **inherited}
    return draft(seed, name, inherited, rules.default_queue)


def _annotated_owners(seed: Document) -> Iterator[Owner]:
    for owner in owners_of(seed):
        if owner["kind"] in _ANNOTATED:
            yield Owner(owner["kind"], owner["name"], owner["uid"])
