"""What is known at one moment: the pods of this node, their records, and what the kubelet has given out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from volcano_py.client.api import ApiError, Unreachable
from volcano_py.shim.agent.books import Room
from volcano_py.shim.agent.exchange import Rewrite, settle
from volcano_py.shim.agent.follow import Follower
from volcano_py.shim.agent.identify import Placed, Waiting, cards_of, ids_of, waiting, wanted_cards
from volcano_py.shim.agent.kubelet import Ledger, read_ledger
from volcano_py.shim.agent.pods import Pod, RecordError, record_of
from volcano_py.shim.agent.slices import Owner


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a view comes from.

    Attributes:
        node: name of this node.
        resources: those that we serve.
        pod_resources: socket of the kubelet's PodResources.
        plugins: the kubelet's folder of device plugins.
    """

    node: str
    resources: tuple[str, ...]
    pod_resources: Path
    plugins: Path


@dataclass(frozen=True, slots=True)
class View:
    """One moment.

    Attributes:
        pods: living ones of this node.
        placed: those with a record.
        faults: UID of a pod whose record can't be used -> why.
    """

    node: str
    resources: tuple[str, ...]
    ledger: Ledger
    pods: tuple[Pod, ...]
    placed: tuple[Placed, ...]
    faults: Mapping[str, str]

    def record(self, pod: Pod) -> Placed | None:
        """*pod* with its record, None without one that can be used."""
        return next((each for each in self.placed if each.pod.uid == pod.uid), None)

    def waiting(self, owners: Sequence[Owner], resource: str, count: int) -> list[Waiting]:
        """Containers that wait for *count* shares of *resource*, the likeliest first."""
        return waiting(self.placed, self.ledger, owners, resource, count)

    def served(self, placed: Placed) -> list[str]:
        """Containers of a pod that hold all they asked for."""
        return [
            claim.container
            for claim in placed.record.claims
            if claim.counts
            and all(
                len(ids_of(self.ledger, placed.pod, claim.container, resource)) == count
                for resource, count in claim.counts.items()
            )
        ]

    def unserved(self) -> list[Pod]:
        """Pods that were placed here and do not hold all they asked for yet."""
        return [
            each.pod
            for each in self.placed
            if set(self.served(each)) < {claim.container for claim in each.record.claims if claim.counts}
        ]

    def astray(self) -> list[tuple[Waiting, str, frozenset[str]]]:
        """Containers whose devices are on other cards than their record says: who, resource, ids."""
        found = []
        for each in self.placed:
            for claim in each.record.claims:
                for resource in claim.counts:
                    ids = ids_of(self.ledger, each.pod, claim.container, resource)
                    if len(ids) == len(claim.parts) and cards_of(ids) != wanted_cards(claim):
                        found.append((Waiting(each.pod, each.record, claim), resource, ids))
        return found

    def settled(
        self,
        who: Waiting,
        resource: str,
        ids: Iterable[str],
        owners: Sequence[Owner],
        rooms: Mapping[str, Room],
    ) -> list[Rewrite] | str:
        """The rewrites by which *who* truly has *ids*, or why there are none (``exchange.settle``)."""
        others = self.waiting(owners, resource, len(who.claim.parts))
        return settle(self.placed, who, cards_of(ids), others, rooms)

    def rewritten(self, rewrites: Iterable[Rewrite]) -> View:
        """The view after *rewrites*."""
        after = {each.placed.pod.uid: each.after for each in rewrites}
        placed = tuple(replace(each, record=after.get(each.pod.uid, each.record)) for each in self.placed)
        return replace(self, placed=placed)


async def look(sources: Sources, pods: Follower[Pod], *, anew: bool = False) -> View:
    """The view of now; the API server is asked where the kubelet knows of pods that we don't, or *anew*.

    Raises ``KubeletError``, and ``ApiError`` and ``Unreachable`` where the server has to be asked.
    """
    ledger = await read_ledger(sources.pod_resources, sources.plugins)
    objects = pods.objects
    known = {(pod.metadata.namespace, pod.metadata.name) for pod in objects.values()}
    if anew or ledger.pods() - known or not pods.synced.is_set():
        try:
            objects = await pods.fetch()
        except (ApiError, Unreachable):
            if anew or not pods.synced.is_set():
                raise
    return view_of(sources, ledger, objects.values())


def view_of(sources: Sources, ledger: Ledger, pods: Iterable[Pod]) -> View:
    """The view by which *pods* hold what *ledger* says."""
    living = tuple(pod for pod in pods if pod.alive and pod.spec.node_name == sources.node)
    placed, faults = [], {}
    for pod in living:
        try:
            record = record_of(pod, sources.node, sources.resources)
        except RecordError as error:
            faults[pod.uid] = str(error)
            continue
        if record is not None:
            placed.append(Placed(pod, record))
    return View(sources.node, sources.resources, ledger, living, tuple(placed), faults)
