"""Binds: one POST each, repeated until it is known what became of it.

A bind ends only with an answer. Where an answer was lost the pod is read before the next try; a pod on our
node with our identity is bound, whoever's request did it. The identity rides on the Binding, so a pod made
anew under the same name is never bound by mistake, and a late second request finds the pod bound and changes
nothing.

Members of a gang are sent one after the other and each is tried until its fate is known. A member that the
server refuses for good leaves its gang short; the engine hears of it and places that member again before
anything new (decisions.md 15). Nothing that is bound is taken back: a bound pod may run already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from volcano_py.client.api import RESOURCES, Api, retry_wait_s
from volcano_py.client.errors import ApiError, Unreachable
from volcano_py.scheduler.cluster.bindings import JSON, PROTOBUF, json_binding, protobuf_binding
from volcano_py.scheduler.cluster.lane import Lane
from volcano_py.scheduler.cluster.orders import BindDone, BindFailed, BindOrder, Trouble
from volcano_py.scheduler.cluster.posts import Posts

NOT_LEADER: Final = "this scheduler is not the leader any more"
_TIMEOUT_S: Final = 30.0
_PODS: Final = RESOURCES["Pod"]
_NOT_TAKEN: Final = 415


@dataclass(eq=False, slots=True)
class BindWork:
    """One bind on its way.

    Attributes:
        began: loop time of submit.
        tries: requests so far.
        unsure: a request went out whose end is not known.
    """

    order: BindOrder
    began: float
    tries: int = 0
    unsure: bool = False


class Binder:
    """Carries bind orders out.

    Args:
        api: the server.
        width: requests in flight.
        fence: asked before every request that may bind; False ends the order.
        hush: nothing more is to be said of a pod ("namespace/name"); a future to wait for, after which it is
            asked again, while its status is being written, else None.
        tell: gets each outcome.
        patience_s: how long refusals that may pass (429, 5xx) are borne.
    """

    def __init__(
        self,
        api: Api,
        width: int,
        fence: Callable[[], bool],
        hush: Callable[[str], asyncio.Future[None] | None],
        tell: Callable[[BindDone | BindFailed], None],
        patience_s: float = 60.0,
    ) -> None:
        self._api, self._fence, self._hush, self._tell = api, fence, hush, tell
        self._patience_s = patience_s
        self._posts = Posts(api)
        self._only_json = False
        self.lane: Lane[BindWork] = Lane(width, self._bind, self._broke)

    def put(self, work: BindWork) -> None:
        """Bind the pod of *work*."""
        self.lane.put(work)

    async def close(self) -> None:
        """Stop at once; what was not answered ends as closed."""
        for work in await self.lane.close():
            self.fail(work, "closed", "the scheduler stops")
        self._posts.close()

    def fail(self, work: BindWork, trouble: Trouble, why: str) -> None:
        """End *work* without a bind."""
        order = work.order
        self._tell(BindFailed(order.key, order.uid, order.node, order.group, why, trouble))

    def _done(self, work: BindWork) -> None:
        order = work.order
        seconds = asyncio.get_running_loop().time() - work.began
        self._tell(BindDone(order.key, order.uid, order.node, order.group, seconds))

    def _broke(self, work: BindWork, why: str) -> None:
        self.fail(work, "fault", why)

    async def _bind(self, work: BindWork) -> None:
        """One try."""
        order = work.order
        while (writing := self._hush(order.key)) is not None:
            await writing
        try:
            if work.unsure and await self._settled(work):
                return
            if not self._fence():
                self.fail(work, "fenced", NOT_LEADER)
                return
            work.tries += 1
            await self._send(order)
        except ApiError as error:
            await self._refused(work, error)
        except Unreachable as error:
            work.unsure = True
            self._again(work, error)
        else:
            self._done(work)

    async def _send(self, order: BindOrder) -> None:
        """The request. Raises as ``Api.call``."""
        path = _PODS.path(order.namespace, order.name, "binding")
        if not self._only_json:
            try:
                body = protobuf_binding(order)
                await self._posts.post(path, body, content_type=PROTOBUF, timeout_s=_TIMEOUT_S)
                return
            except ApiError as error:
                if error.status != _NOT_TAKEN:
                    raise
                self._only_json = True
        await self._posts.post(path, json_binding(order), content_type=JSON, timeout_s=_TIMEOUT_S)

    async def _refused(self, work: BindWork, error: ApiError) -> None:
        """The server answered *error*, to the bind or to a read of the pod."""
        if error.is_missing:
            self.fail(work, "gone", error.message)
        elif error.status == 409:
            work.unsure = True  # bound by somebody, perhaps by a request of ours that was not answered
            self._again(work, error, at_once=work.tries == 1)
        elif error.is_passing:
            work.unsure = work.unsure or error.status >= 500
            self._bear(work, error, final=self._is_over(work) and not work.unsure)
        else:
            self._bear(work, error, final=self._is_over(work) or not work.unsure)

    def _bear(self, work: BindWork, error: ApiError, *, final: bool) -> None:
        """Try later, unless that was the *final* word; what is not known is found out before giving up."""
        if final:
            self.fail(work, "refused", error.message)
        else:
            self._again(work, error)

    def _is_over(self, work: BindWork) -> bool:
        """Whether the patience with *work* has ended."""
        return asyncio.get_running_loop().time() - work.began > self._patience_s

    def _again(self, work: BindWork, error: Exception, *, at_once: bool = False) -> None:
        if at_once:
            self.lane.put(work)
            return
        wait_s = retry_wait_s(max(work.tries, 1), error)
        self.lane.hold_off(error, wait_s)
        self.lane.put_later(work, wait_s)

    async def _settled(self, work: BindWork) -> bool:
        """Read the pod of an unsure bind; whether that ends it. Raises as ``Api.call``."""
        order = work.order
        pod: dict[str, Any] = await self._api.get(_PODS.path(order.namespace, order.name))
        meta, node = pod["metadata"], pod.get("spec", {}).get("nodeName", "")
        if meta.get("uid") != order.uid:
            self.fail(work, "gone", "the pod is gone; another one has its name")
        elif node == order.node:
            self._done(work)
        elif node:
            self.fail(work, "gone", f"the pod was bound to node {node}")
        elif meta.get("deletionTimestamp"):
            self.fail(work, "gone", "the pod is being deleted")
        else:
            work.unsure = False
            if not self._is_over(work):
                return False
            self.fail(work, "refused", f"the server did not bind it within {self._patience_s:.0f} s")
        return True
