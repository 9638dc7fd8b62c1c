"""Claims that a pod with a chosen node waits for: what the server's own objects say of them.

The engine that answers here knows of no bind that is on its way; the node chosen for a claim stands on the
claim, and the claim for which a volume is kept on the volume.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from volcano_py.cli.vcctl.cluster import Cluster, Document
from volcano_py.cli.vcctl.describe import event_age, events_of
from volcano_py.cli.vcctl.explain.story import Story
from volcano_py.cli.vcctl.snapshot import Snapshot
from volcano_py.cli.vcctl.tables import counted
from volcano_py.scheduler.cluster.orders import ClaimOrder
from volcano_py.scheduler.cluster.sayings import SCHEDULED
from volcano_py.scheduler.cluster.volumes import WAITS, claim_text
from volcano_py.scheduler.model.kube.podspec import ephemeral_claim_name
from volcano_py.scheduler.model.storage import waits_for_pod
from volcano_py.scheduler.model.tasks import NOWHERE

_CLAIM: Final = "PersistentVolumeClaim"


@dataclass(frozen=True, slots=True)
class Awaited:
    """A claim that is to be bound before its pod.

    Attributes:
        key: "namespace/name".
        order: the claim, with the volume that is kept for it, or with who is to make one.
        node: for which the volume is to be made, "" where one is kept.
    """

    key: str
    order: ClaimOrder
    node: str


def awaited(seen: Snapshot, *pods: str) -> dict[str, list[Awaited]]:
    """Those of *pods* ("namespace/name") that wait for claims since they were given a node, and which."""
    state, found = seen.engine.state, dict[str, list[Awaited]]()
    kept = {one.claim: one.name for one in state.volumes.volumes.values() if one.claim}
    for pod in pods:
        task = state.tasks.index.get(pod, NOWHERE)
        document = None if task == NOWHERE else state.tasks.pods[task]
        if document is None or document.spec.node_name:
            continue
        claims = (_awaited(seen, key, kept) for key in _claims_of(seen, pod, task))
        if waiting := [each for each in claims if each is not None]:
            found[pod] = waiting
    return found


def tell_claims(story: Story, claims: list[Awaited], events: dict[str, Document]) -> None:
    """Say in *story* what the pod waits for; *events* are the last of each claim, by its key."""
    if claims and not story.reasons:
        nodes = ", ".join(sorted({each.node for each in claims if each.node}))
        chosen = f"has node {nodes} chosen and " if nodes else ""
        story.verdict = f"{chosen}waits for its claims to be bound"
    story.reasons[:0] = [_reason(each, events.get(each.key)) for each in claims]
    story.changes += [_way(each) for each in claims]


def told_of_members(seen: Snapshot, group: str) -> list[str]:
    """How many pods of PodGroup *group* wait for claims, and where to read more."""
    state = seen.engine.state
    job = state.jobs.named(group)
    waiting = sorted(awaited(seen, *(state.tasks.keys[task] for task in job.tasks))) if job else []
    if not waiting:
        return []
    namespace, _, name = waiting[0].partition("/")
    who = f"{counted(len(waiting), 'pod')} {'waits' if len(waiting) == 1 else 'wait'}"
    return [f"{who} for claims to be bound before the start: vcctl-py explain pod {name} -n {namespace}"]


def told_by_pod(pod: Document) -> list[str]:
    """What *pod* itself says of its claims: since when it waits, and until when at most."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    said = [each for each in conditions if (each.get("type"), each.get("reason")) == (SCHEDULED, WAITS)]
    return [f"the scheduler says: {each.get('message', '')}" for each in said]


async def last_events(cluster: Cluster, seen: Snapshot, claims: list[Awaited]) -> dict[str, Document]:
    """The last event of each of *claims* that has one, by the key of the claim."""
    wanted = {each.key for each in claims}
    found: dict[str, Document] = {}
    for one in seen.objects:
        if one.kind == _CLAIM and one.key in wanted and one.item is not None:
            meta = one.item.metadata
            about = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
            events = await events_of(cluster, {"kind": _CLAIM, "metadata": about})
            found |= {one.key: events[-1]} if events else {}
    return found


def _claims_of(seen: Snapshot, pod: str, task: int) -> Iterator[str]:
    state = seen.engine.state
    said = state.classes[int(state.tasks.klass[task])].constraints.claims
    yield from (f"{use.namespace}/{use.name}" for use in said.named)
    yield from (ephemeral_claim_name(pod, template.volume) for template in said.ephemeral)


def _awaited(seen: Snapshot, key: str, kept_for: Mapping[str, str]) -> Awaited | None:
    """The claim *key*, if something was written so that it is bound, and it isn't.

    *kept_for* is the volume of each claim for which one is kept.
    """
    volumes = seen.engine.state.volumes
    claim = volumes.claims.get(key)
    kind = None if claim is None else volumes.storage_class(claim)
    if claim is None or claim.bound or kind is None or not waits_for_pod(kind):
        return None
    kept = "" if claim.selected_node else kept_for.get(key, "")
    if not claim.selected_node and not kept:
        return None
    return Awaited(
        key, ClaimOrder(key.partition("/")[2], kept, kind.name, kind.provisioner), claim.selected_node
    )


def _reason(one: Awaited, event: Document | None) -> dict[str, object]:
    where = f", whose volume is to be made for node {one.node}," if one.node else ""
    said = "nothing has been said of it"
    if event is not None:
        said = (
            f"its last event, {event_age(event)} ago: {event.get('reason', '')}: {event.get('message', '')}"
        )
    order = one.order
    found = {
        "code": WAITS,
        "message": f"claim {claim_text(order)}{where} is not bound; {said}",
        "claim": one.key,
        "storageClass": order.storage_class,
        "provisioner": "" if order.volume else order.provisioner,
        "volume": order.volume,
        "node": one.node,
    }
    return {key: value for key, value in found.items() if value}


def _way(one: Awaited) -> str:
    namespace, _, name = one.key.partition("/")
    who = "the cluster's volume controller" if one.order.volume else f"provisioner {one.order.provisioner}"
    return f"{who} has to serve claim {name}; does it run? kubectl describe pvc {name} -n {namespace}"
