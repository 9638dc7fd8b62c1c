"""Claims bound before their pod: a volume that is there is kept for its claim, another is made on the node.

The volume controller and the provisioners do the binding; we write what they wait for and look until the
claim is bound. A pod that waits so holds no worker: its work comes back after a pause. One that has waited
for a while is told for what; the bind, or the refusal after it, says otherwise. A claim that is not bound in
time ends the bind, and what was written for it is taken back.

Source of the protocol: the API documentation of PersistentVolume and kube-scheduler's VolumeBinding plugin.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from volcano_py.client.api import Api, retry_wait_s
from volcano_py.client.errors import ApiError, Unreachable
from volcano_py.scheduler.cluster.binder import NOT_LEADER, Binder, BindWork
from volcano_py.scheduler.cluster.lane import Lane
from volcano_py.scheduler.cluster.orders import ClaimOrder, RefusalOrder, Trouble
from volcano_py.scheduler.cluster.sayings import MOST_EVENTS
from volcano_py.scheduler.model.kube.times import format_time
from volcano_py.scheduler.model.storage import SELECTED_NODE

BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
_WIDTH: Final = 8
_FIRST_LOOK_S: Final = 0.2
_LONGEST_LOOK_S: Final = 5.0
TOLD_AFTER_S: Final = 5.0
"""Claims that are bound sooner are not worth a word on their pod."""
WAITS: Final = "VolumeClaims"
"""Reason of the condition: no other node would help, so no autoscaler is to buy one."""


class ClaimTroubleError(Exception):
    """A claim that will not be bound on this node; the message is for people."""


@dataclass(eq=False, slots=True)
class ClaimWork:
    """The claims of one bind.

    Attributes:
        give_up_at: loop time.
        asked: claims for which the wish is written.
        looks: rounds so far.
        told: claims for which the pod says that it waits.
        loud: an event was told of it.
    """

    bind: BindWork
    give_up_at: float
    asked: set[str] = field(default_factory=set)
    looks: int = 0
    told: tuple[ClaimOrder, ...] = ()
    loud: bool = False

    @property
    def gang(self) -> str:
        """The pod's PodGroup, or the pod itself where it has none."""
        return self.bind.order.group or self.bind.order.key


class VolumeBinder:
    """Binds the claims of pods, then hands the pods to *binder*.

    Args:
        say: on a pod that it waits.
        clock: epoch seconds.
        wait_s: how long claims may take.
    """

    def __init__(
        self,
        api: Api,
        binder: Binder,
        fence: Callable[[], bool],
        say: Callable[[RefusalOrder], None],
        clock: Callable[[], float],
        wait_s: float = 600.0,
    ) -> None:
        self._api, self._binder, self._fence, self._wait_s = api, binder, fence, wait_s
        self._say, self._clock = say, clock
        self._loud: Counter[str] = Counter()
        self.lane: Lane[ClaimWork] = Lane(_WIDTH, self._look, self._broke)

    def put(self, work: BindWork) -> None:
        """Bind the claims of *work*, then its pod."""
        self.lane.put(ClaimWork(work, asyncio.get_running_loop().time() + self._wait_s))

    async def close(self) -> None:
        """Stop at once; pods that still wait for claims end as closed. Their claims go on by themselves."""
        for work in await self.lane.close():
            self._binder.fail(work.bind, "closed", "the scheduler stops")

    def _broke(self, work: ClaimWork, why: str) -> None:
        self._fail(work, "fault", why)

    def _fail(self, work: ClaimWork, trouble: Trouble, why: str) -> None:
        self._hush(work)
        self._binder.fail(work.bind, trouble, why)

    async def _look(self, work: ClaimWork) -> None:
        """One round over the claims of *work*."""
        if not self._fence():
            self._fail(work, "fenced", NOT_LEADER)
            return
        work.looks += 1
        try:
            waiting = [each for each in work.bind.order.claims if not await self._is_bound(work, each)]
        except ClaimTroubleError as trouble:
            await self._give_up(work, str(trouble))
        except (ApiError, Unreachable) as error:
            await self._later(work, error, str(error))
        else:
            if waiting:
                self._tell(work, tuple(waiting))
                await self._later(work, None, f"claims not bound: {', '.join(map(claim_text, waiting))}")
                return
            self._hush(work)
            self._binder.put(work.bind)

    def _tell(self, work: ClaimWork, waiting: tuple[ClaimOrder, ...]) -> None:
        """Say on the pod for which claims it waits, after a while, and again where some of them are bound."""
        order, now = work.bind.order, asyncio.get_running_loop().time()
        waited = now - work.bind.began
        if waited < TOLD_AFTER_S or waiting == work.told:
            return
        since = self._clock() - waited
        message = (
            f"waits for claims to be bound for node {order.node}: {', '.join(map(claim_text, waiting))}; "
            f"since {format_time(since)}, until {format_time(since + self._wait_s)} at most"
        )
        event = not work.told and self._loud[work.gang] < MOST_EVENTS
        if event:
            work.loud = True
            self._loud[work.gang] += 1
        self._say(RefusalOrder(order.namespace, order.name, order.uid, message, WAITS, event=event))
        work.told = waiting

    def _hush(self, work: ClaimWork) -> None:
        """*work* is over: it is none of its gang's loud members any more."""
        if work.loud:
            self._loud[work.gang] -= 1
            if not self._loud[work.gang]:
                del self._loud[work.gang]

    async def _later(self, work: ClaimWork, error: Exception | None, why: str) -> None:
        """Look again after a while, or end it."""
        if isinstance(error, ApiError) and error.status in (400, 403, 422):
            await self._give_up(work, error.message)
        elif asyncio.get_running_loop().time() >= work.give_up_at:
            await self._give_up(work, f"within {self._wait_s:.0f} s: {why}")
        elif error is not None:
            self.lane.put_later(work, retry_wait_s(work.looks, error))
        else:
            self.lane.put_later(work, min(_FIRST_LOOK_S * 2.0 ** min(work.looks, 16), _LONGEST_LOOK_S))

    async def _is_bound(self, work: ClaimWork, wanted: ClaimOrder) -> bool:
        """Look at one claim and ask for what it lacks. Raises ``ClaimTroubleError``, or as ``Api.call``."""
        claim = await self._claim(work, wanted)
        if claim is None:
            return False  # a claim made for the pod comes a little after the pod
        if _bound(claim):
            return True
        if wanted.volume:
            await self._keep(work, wanted, claim)
        else:
            await self._choose_node(work, wanted, claim)
        return False

    async def _claim(self, work: ClaimWork, wanted: ClaimOrder) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = await self._api.get(self._claim_path(work, wanted))
        except ApiError as error:
            if error.is_missing:
                return None
            raise
        return found

    def _claim_path(self, work: ClaimWork, wanted: ClaimOrder) -> str:
        return f"/api/v1/namespaces/{work.bind.order.namespace}/persistentvolumeclaims/{wanted.name}"

    async def _choose_node(self, work: ClaimWork, wanted: ClaimOrder, claim: dict[str, Any]) -> None:
        """Tell the provisioner for which node the volume is to be."""
        node = work.bind.order.node
        chosen = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE, "")
        if chosen == node:
            return
        if chosen:
            raise ClaimTroubleError(f"claim {wanted.name} is being made for node {chosen}")
        if wanted.name in work.asked:
            raise ClaimTroubleError(f"the provisioner of claim {wanted.name} made no volume for node {node}")
        meta = {"uid": claim["metadata"]["uid"], "annotations": {SELECTED_NODE: node}}
        await self._api.patch(self._claim_path(work, wanted), {"metadata": meta})
        work.asked.add(wanted.name)

    async def _keep(self, work: ClaimWork, wanted: ClaimOrder, claim: dict[str, Any]) -> None:
        """Point the chosen volume at its claim."""
        path = f"/api/v1/persistentvolumes/{wanted.volume}"
        try:
            volume = await self._api.get(path)
        except ApiError as error:
            if error.is_missing:
                raise ClaimTroubleError(f"volume {wanted.volume} is gone") from error
            raise
        meta, owner = volume["metadata"], volume["spec"].get("claimRef")
        if owner is not None:
            if not _refers(owner, claim):
                raise ClaimTroubleError(
                    f"volume {wanted.volume} was taken by {owner.get('namespace')}/{owner.get('name')}"
                )
            return
        patch = {
            "metadata": {"resourceVersion": meta["resourceVersion"], "annotations": {BY_CONTROLLER: "yes"}},
            "spec": {"claimRef": _reference(claim)},
        }
        await self._api.patch(path, patch)
        work.asked.add(wanted.name)

    async def _give_up(self, work: ClaimWork, why: str) -> None:
        """Take back what was written for claims that are not bound, and end the bind."""
        for wanted in work.bind.order.claims:
            if wanted.name not in work.asked:
                continue
            try:
                await self._take_back(work, wanted)
            except (ApiError, Unreachable) as error:
                why = f"{why}; claim {wanted.name} could not be set free: {error}"
        self._fail(work, "volumes", why)

    async def _take_back(self, work: ClaimWork, wanted: ClaimOrder) -> None:
        claim = await self._claim(work, wanted)
        if claim is None or _bound(claim):
            return
        if not wanted.volume:
            meta: dict[str, Any] = {"uid": claim["metadata"]["uid"], "annotations": {SELECTED_NODE: None}}
            await self._api.patch(self._claim_path(work, wanted), {"metadata": meta})
            return
        path = f"/api/v1/persistentvolumes/{wanted.volume}"
        volume = await self._api.get(path)
        if _refers(volume["spec"].get("claimRef") or {}, claim):
            meta = {
                "resourceVersion": volume["metadata"]["resourceVersion"],
                "annotations": {BY_CONTROLLER: None},
            }
            await self._api.patch(path, {"metadata": meta, "spec": {"claimRef": None}})


def claim_text(claim: ClaimOrder) -> str:
    """*claim* for people, with who is to serve it."""
    if not claim.storage_class:
        return claim.name
    of = f"volume {claim.volume}" if claim.volume else f"provisioner {claim.provisioner}"
    return f"{claim.name} (storage class {claim.storage_class}, {of})"


def _bound(claim: dict[str, Any]) -> bool:
    return bool(claim["spec"].get("volumeName")) and claim.get("status", {}).get("phase") == "Bound"


def _reference(claim: dict[str, Any]) -> dict[str, str]:
    meta = claim["metadata"]
    identity = {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **identity}


def _refers(owner: dict[str, Any], claim: dict[str, Any]) -> bool:
    """*owner* (a claimRef) means *claim*; one without an identity means any claim of the name."""
    meta = claim["metadata"]
    same = owner.get("namespace") == meta["namespace"] and owner.get("name") == meta["name"]
    return same and owner.get("uid", "") in ("", meta["uid"])
