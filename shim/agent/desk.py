"""The desk at which the kubelet asks: which cards to take, what a container gets, and whether it may start.

Requests are served one at a time, each on a fresh view. What is answered to Allocate rests on a supposition;
a container starts only after the kubelet has told whose it is (``identify``), records say so (``exchange``),
and the cards hold what their containers hold together (``books``). Nothing of it is kept in memory alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import structlog

from volcano_py.client.api import Api, ApiError, Unreachable
from volcano_py.shim.agent.answers import answer
from volcano_py.shim.agent.books import overfull
from volcano_py.shim.agent.follow import Follower
from volcano_py.shim.agent.handing import (
    Machine,
    handed_out,
    ids_on,
    is_cut,
    is_told,
    is_whole,
    limits_of,
    paired,
    parts_on,
    shares_of,
    wishes_of,
)
from volcano_py.shim.agent.identify import Waiting, cards_of, supposed, told, wanted_cards
from volcano_py.shim.agent.instances import Instance
from volcano_py.shim.agent.kubelet import KubeletError, read_ledger
from volcano_py.shim.agent.nvml import DriverError
from volcano_py.shim.agent.pods import Claim, Pod, RecordError
from volcano_py.shim.agent.region import create
from volcano_py.shim.agent.settling import Records
from volcano_py.shim.agent.slices import Owner, Slices
from volcano_py.shim.agent.view import Sources, View, look
from volcano_py.shim.agent.wire import deviceplugin_pb2 as plugin


class Denied(Exception):  # noqa: N818 - an answer to the kubelet
    """What the kubelet asked for can't be; the message is what people read.

    Attributes:
        pod: whom it concerns, where that is known.
    """

    def __init__(self, message: str, pod: Pod | None = None) -> None:
        super().__init__(message)
        self.pod = pod


class Unread(Denied):
    """The pods of this node are not known well enough, and the API server does not answer."""


class Desk:
    """Answers the kubelet.

    Args:
        sources: where to look.
        server: where records are written.
        pods: those of this node.
        slices: what was handed out.
        machine: this machine as it is now.
        notes: annotations of the node.

    Attributes:
        unmarked: set when pods have got cards that :meth:`reconcile` has not marked yet.
    """

    def __init__(
        self,
        sources: Sources,
        server: Api,
        pods: Follower[Pod],
        slices: Slices,
        machine: Callable[[], Machine],
        notes: Callable[[], Mapping[str, str]],
    ) -> None:
        self._sources, self._pods = sources, pods
        self._slices, self._machine = slices, machine
        self._records = Records(sources.node, server, pods, slices, machine, notes)
        self._lock = asyncio.Lock()
        self.unmarked = asyncio.Event()
        self._log = structlog.get_logger()

    async def prefer(self, resource: str, free: Iterable[str], must: Sequence[str], count: int) -> list[str]:
        """Which of the *free* ids the kubelet should take: *must*, and those on the cards of who waits."""
        async with self._lock:
            view = await self._look_for(resource, [count])
            candidates = view.waiting(self._slices.all(), resource, count)
            if not candidates:
                return list(must)
            return ids_on(wanted_cards(candidates[0].claim), free, must, count)

    async def allocate(self, resource: str, asked: Sequence[Sequence[str]]) -> plugin.AllocateResponse:
        """What the containers get whose ids are *asked*. Raises ``Denied``."""
        async with self._lock:
            view = await self._look_for(resource, [len(ids) for ids in asked])
            answers = []
            taken: set[tuple[str, str]] = set()
            for ids in asked:
                who = self._supposed(view, resource, ids, taken)
                taken.add((who.pod.uid, who.claim.container))
                answers.append(await self._hand_out(view, who, resource, ids))
            self.unmarked.set()
            return plugin.AllocateResponse(container_responses=answers)

    async def pre_start(self, resource: str, ids: Sequence[str]) -> None:
        """A container with *ids* starts now: give it its limits. Raises ``Denied`` where it must not."""
        async with self._lock:
            try:
                view = await self._look_at(resource, ids)
            except Unread as error:
                await self._start_again(resource, ids, str(error))
                return
            pod = told(view.pods, view.ledger.owners(resource, ids))
            if pod is None:
                raise Denied(f"the kubelet tells no living pod that holds {', '.join(sorted(ids))}")
            view, pairs = await self._true_claims(view, pod, resource, ids)
            for owner, claim in pairs:
                self._start(view, pod, owner, claim)
        self.unmarked.set()

    async def reconcile(self) -> View:
        """Make records and marks say what the ledger says; the view of it. Raises as ``look``."""
        async with self._lock:
            view = await self._records.settle_all(await self._look())
            await self._records.mark(view)
            return view

    # -- one request ------------------------------------------------------------------------------

    async def _look_for(self, resource: str, counts: Iterable[int]) -> View:
        """A view with somebody who waits for each of *counts* shares, if there is.

        What is followed may be behind the kubelet: of a new pod under an old name it knows the old one only.
        """
        view = await self._records.settle_all(await self._look())
        if all(view.waiting(self._slices.all(), resource, count) for count in counts):
            return view
        return await self._records.settle_all(await self._look(anew=True))

    async def _look_at(self, resource: str, ids: Iterable[str]) -> View:
        """A view with the pod that holds *ids*, if there is; a UID goes before a mere name."""
        view = await self._look()
        holders = view.ledger.owners(resource, ids)
        pod = told(view.pods, holders)
        uids = {each.uid for each in holders if each.uid}
        is_known = pod is not None and (not uids or pod.uid in uids)
        return view if is_known else await self._look(anew=True)

    async def _look(self, *, anew: bool = False) -> View:
        try:
            return await look(self._sources, self._pods, anew=anew)
        except KubeletError as error:
            raise Denied(str(error)) from error
        except (ApiError, Unreachable) as error:
            raise Unread(str(error)) from error

    def _supposed(
        self, view: View, resource: str, ids: Sequence[str], taken: set[tuple[str, str]]
    ) -> Waiting:
        candidates = [
            one
            for one in view.waiting(self._slices.all(), resource, len(ids))
            if (one.pod.uid, one.claim.container) not in taken
        ]
        who = supposed(candidates, ids)
        if who is None:
            faults = "".join(
                f"; {pod.key}: {view.faults[pod.uid]}" for pod in view.pods if pod.uid in view.faults
            )
            raise Denied(
                f"no pod of this node waits for {len(ids)} of {resource}: "
                f"a pod needs the record of a scheduler that knows cards{faults}"
            )
        return who

    async def _hand_out(
        self, view: View, who: Waiting, resource: str, ids: Sequence[str]
    ) -> plugin.ContainerAllocateResponse:
        machine = self._machine()
        parts = parts_on(who, cards_of(ids))
        instances = await self._cut(view, who, ids, machine)
        owner = Owner(
            id="",
            sequence=0,
            resource=resource,
            ids=tuple(sorted(ids)),
            limited=not is_whole(parts, machine),
            library=machine.library,
            pod_uid=who.pod.uid,
            namespace=who.pod.metadata.namespace,
            pod=who.pod.metadata.name,
            container=who.claim.container,
            role=who.claim.role,
            priority=who.claim.priority,
            shares=shares_of(parts, machine.rooms, instances),
            instances=instances,
        )
        try:
            owner = self._slices.make(owner)
            given = answer(owner, machine.host)
        except OSError as error:
            raise Denied(f"the slice can't be made: {error}") from error
        self._log.info("allocated", slice=owner.id, supposed=who.pod.key, container=who.claim.container)
        return given

    async def _cut(
        self, view: View, who: Waiting, ids: Sequence[str], machine: Machine
    ) -> tuple[Instance, ...]:
        """The instances of *who*, made now where its cards are cut; raises ``Denied``.

        Instances of pods that are gone may be in the way still: their slices are looked for now and then.
        """
        if not machine.mig & cards_of(ids).keys():
            return ()
        if wanted_cards(who.claim) != cards_of(ids):
            raise Denied(f"an instance for pod {who.pod.key} can't be made on another card", who.pod)
        living = {pod.uid for pod in view.pods}
        mine = (who.pod.uid, who.claim.container)
        others = [o for o in self._slices.all() if o.pod_uid in living and (o.pod_uid, o.container) != mine]
        held = {made.wish for owner in others for made in owner.instances}
        try:
            made = [
                await asyncio.to_thread(machine.cutter.make, wish, machine.host.minors[wish.card], held)
                for wish in wishes_of(who.pod, who.claim, machine)
            ]
        except (DriverError, RecordError) as error:
            raise Denied(f"no instance for pod {who.pod.key}: {error}", who.pod) from error
        return tuple(made)

    async def _true_claims(
        self, view: View, pod: Pod, resource: str, ids: Sequence[str]
    ) -> tuple[View, list[tuple[Owner, Claim]]]:
        """The allocations of *ids* and the containers of *pod* they are for, after records became true."""
        placed = view.record(pod)
        if placed is None:
            why = view.faults.get(pod.uid, "it has no record of a scheduler that knows cards")
            raise Denied(f"pod {pod.key} gets no card: {why}", pod)
        owners = self._slices.of_ids(resource, ids)
        names = [name for _, name in paired(owners, view, placed.pod, placed.record.claims, resource, ids)]
        for name in names:
            view = await self._settle(view, pod, name, resource, ids)
        placed = view.record(pod) or placed
        pairs = paired(owners, view, pod, placed.record.claims, resource, ids)
        if not pairs:
            raise Denied(f"there is no slice of {', '.join(sorted(ids))} for pod {pod.key}", pod)
        claims = {claim.container: claim for claim in placed.record.claims}
        return view, [(owner, claims[name]) for owner, name in pairs]

    async def _settle(self, view: View, pod: Pod, name: str, resource: str, ids: Sequence[str]) -> View:
        placed = view.record(pod)
        claim = (
            next((each for each in placed.record.claims if each.container == name), None) if placed else None
        )
        if placed is None or claim is None or cards_of(ids) == wanted_cards(claim):
            return view
        who = Waiting(pod, placed.record, claim)
        if is_cut(who, ids, self._machine()):
            raise Denied(f"pod {pod.key} was given the instance of another pod", pod)
        rewrites = view.settled(who, resource, ids, self._slices.all(), self._machine().rooms)
        if isinstance(rewrites, str):
            raise Denied(
                f"the kubelet gave container {name} of pod {pod.key} other cards than the scheduler did, and "
                f"they do not fit: {rewrites}",
                pod,
            )
        try:
            return await self._records.carry_out(view, rewrites)
        except (ApiError, Unreachable) as error:
            raise Denied(f"the record of pod {pod.key} can't be made true: {error}", pod) from error

    def _start(self, view: View, pod: Pod, owner: Owner, claim: Claim) -> None:
        """Confirm *owner* as *claim*'s and write the limits; raises ``Denied``."""
        machine = self._machine()
        parts = claim.parts
        if not owner.limited and not is_whole(parts, machine):
            raise Denied(
                f"container {claim.container} of pod {pod.key} has limits, and was given cards without",
                pod,
            )
        try:
            instances_fit = [made.wish for made in owner.instances] == wishes_of(pod, claim, machine)
        except RecordError as error:
            raise Denied(f"no instance for pod {pod.key}: {error}", pod) from error
        if not instances_fit:
            raise Denied(f"pod {pod.key} was given the instance of another pod", pod)
        true = msgspec.structs.replace(
            owner,
            confirmed=True,
            pod_uid=pod.uid,
            namespace=pod.metadata.namespace,
            pod=pod.metadata.name,
            container=claim.container,
            role=claim.role,
            priority=claim.priority,
            shares=shares_of(parts, machine.rooms, owner.instances),
        )
        living = {each.uid for each in view.pods}
        why = overfull(handed_out([*self._slices.all(), true], living), machine.rooms)
        if why:
            raise Denied(f"container {claim.container} of pod {pod.key} does not start: {why}", pod)
        try:
            self._slices.rewrite(true)
            self._write_limits(true, machine)
        except (OSError, ValueError) as error:
            raise Denied(f"the limits of pod {pod.key} can't be written: {error}", pod) from error
        self._log.info("started", slice=true.id, pod=pod.key, container=claim.container)

    async def _start_again(self, resource: str, ids: Sequence[str], why: str) -> None:
        """Without an API server: a container that has run with *ids* gets the limits that it had."""
        machine = self._machine()
        sources = self._sources
        try:
            ledger = await read_ledger(sources.pod_resources, sources.plugins)
        except KubeletError as error:
            raise Denied(str(error)) from error
        holders = ledger.owners(resource, ids)
        known = [owner for owner in self._slices.of_ids(resource, ids) if is_told(owner, holders)]
        if not known:
            raise Denied(f"no container has run with {', '.join(sorted(ids))}, and {why}")
        for owner in known:
            self._write_limits(owner, machine)
            self._log.info("started again", slice=owner.id, pod=f"{owner.namespace}/{owner.pod}")

    def _write_limits(self, owner: Owner, machine: Machine) -> None:
        if owner.limited:
            create(self._slices.region(owner), limits_of(owner, machine), priority=owner.priority)
