"""Statuses of pods, PodGroups and queues, written beside the binds and never in their way.

Of each object only the latest wish is kept, so a slow server costs currency, not memory. What people wait for
goes first; sentences in which only figures changed trickle behind at a low rate. Every patch names the
object's identity: one made anew under the same name is not written (``guarded`` for custom objects). A pod
about to be bound gets no more refusals. What the server refuses for good (a webhook of others says no) is
said once more every few minutes, unless there is something newer: webhooks are mended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from volcano_py.client.api import RESOURCES, STRATEGIC, Api, retry_wait_s
from volcano_py.client.errors import ApiError, Unreachable
from volcano_py.scheduler.cluster.guarded import StatusPatch, write_status
from volcano_py.scheduler.cluster.lane import Lane, Pace
from volcano_py.scheduler.cluster.orders import GroupOrder, NominateOrder, QueueOrder, RefusalOrder, Subject
from volcano_py.scheduler.cluster.sayings import SCHEDULED
from volcano_py.scheduler.model.kube.times import format_time

_NEWS_WIDTH, _NEWS_PER_SECOND, _NEWS_BURST = 4, 100.0, 400
_MINOR_WIDTH, _MINOR_PER_SECOND, _MINOR_BURST = 1, 10.0, 10
_TIMEOUT_S: Final = 10.0
_NO_OBJECT: Final = '" not found'
"""What a server says of a missing object, and not of a kind that is not served."""
REFUSED_AGAIN_S: Final = 300.0
"""How long what the server refused is put off."""
_MOST_PUT_OFF: Final = 4096
_LOOKS: Final = 2
"""Tries after which an object that is not found is gone."""

StatusOrder = RefusalOrder | NominateOrder | GroupOrder | QueueOrder
Key = tuple[str, str]
Writing = dict[Key, asyncio.Future[None]]
Conditions = list[dict[str, Any]]


@dataclass(slots=True)
class StatusStats:
    """Counts since the start: patches done, wishes overtaken by newer ones, refused by the server."""

    written: int = 0
    overtaken: int = 0
    refused: int = 0
    last_refusal: str = ""


@dataclass(slots=True)
class Wish:
    """What one object's status is to say.

    Attributes:
        fields: of the status, by name.
        conditions: of a pod, by type.
        blank_at: version of the object when it had no status; "": it has one.
        was_refused: long ago; the object may have changed since.
    """

    subject: Subject
    fields: dict[str, Any] = field(default_factory=dict)
    conditions: dict[str, dict[str, Any]] = field(default_factory=dict)
    minor: bool = False
    tries: int = 0
    blank_at: str = ""
    was_refused: bool = False

    def without(self, newer: Wish) -> Wish | None:
        """What *newer* leaves of this one; None if nothing."""
        fields = {name: value for name, value in self.fields.items() if name not in newer.fields}
        conditions = {name: each for name, each in self.conditions.items() if name not in newer.conditions}
        if newer.subject.uid != self.subject.uid or not (fields or conditions):
            return None
        return replace(self, fields=fields, conditions=conditions)

    def after(self, older: Wish) -> Wish:
        """Both wishes in one; this one is the newer."""
        if older.subject.uid != self.subject.uid:
            return self
        return Wish(
            self.subject,
            {**older.fields, **self.fields},
            {**older.conditions, **self.conditions},
            minor=self.minor and older.minor,
            blank_at=self.blank_at,
        )


class Statuses:
    """Writes statuses.

    Args:
        fence: False drops what waits.
        clock: epoch seconds.
        writing: the ends of patches that are on their way are kept there.
        served: which kinds have a status endpoint.
        dropped: told that something was not said since we do not lead.
    """

    def __init__(
        self,
        api: Api,
        fence: Callable[[], bool],
        clock: Callable[[], float],
        writing: Writing,
        served: Served,
        dropped: Callable[[], None],
    ) -> None:
        self._api, self._fence, self._clock = api, fence, clock
        self._writing, self._served, self._dropped = writing, served, dropped
        self._wishes: dict[Key, Wish] = {}
        self._put_off = _PutOff(self._put_again)
        self.stats = StatusStats()
        self.news: Lane[Key] = Lane(_NEWS_WIDTH, self._write, self._lost, Pace(_NEWS_PER_SECOND, _NEWS_BURST))
        self.trickle: Lane[Key] = Lane(
            _MINOR_WIDTH, self._write, self._lost, Pace(_MINOR_PER_SECOND, _MINOR_BURST)
        )

    def __len__(self) -> int:
        """Objects with something to be said, or being written."""
        return len(self._wishes) + len(self._writing)

    def put(self, order: StatusOrder) -> None:
        """Write *order*, together with what waits for the same object."""
        wish = self._wish(order)
        key = (wish.subject.kind, wish.subject.key)
        self._put_off.overtake(key, wish)
        waiting = self._wishes.get(key)
        if waiting is not None:
            self.stats.overtaken += 1
        self._wishes[key] = wish if waiting is None else wish.after(waiting)
        if waiting is None or (waiting.minor and not self._wishes[key].minor):
            (self.trickle if self._wishes[key].minor else self.news).put(key)

    def amend(self, key: Key, change: Callable[[Conditions], Conditions]) -> None:
        """What waits to be said of a PodGroup names its conditions as a whole: let *change* add to them."""
        wish = self._wishes.get(key)
        if wish is not None and "conditions" in wish.fields:
            wish.fields["conditions"] = change(wish.fields["conditions"])

    def forget_pod(self, key: str) -> None:
        """The pod is about to be bound: what waits to be said of it no longer holds."""
        self._wishes.pop(("Pod", key), None)
        self._put_off.forget(("Pod", key))

    def lead(self) -> None:
        """A new lead begins: what was refused before is not said again by itself."""
        self._put_off.clear()

    def hush(self, pod: str) -> asyncio.Future[None] | None:
        """Forget what waits to be said of *pod*; the end of its patch that is on its way, if there is one.

        A patch that fails is to be said again after that: ask until there is none.
        """
        self.forget_pod(pod)
        return self._writing.get(("Pod", pod))

    async def quiet(self) -> None:
        """Until everything is written."""
        await self.news.quiet()
        await self.trickle.quiet()

    async def close(self) -> None:
        """Stop at once; what waits is left unsaid, and found by the next leader."""
        await self.news.close()
        await self.trickle.close()
        self._wishes.clear()
        self._put_off.clear()

    # -- one patch ------------------------------------------------------------------------------

    async def _write(self, key: Key) -> None:
        while (before := self._writing.get(key)) is not None:
            await before
        wish = self._wishes.pop(key, None)
        if wish is None:
            return
        if not self._fence():
            self._dropped()
            return
        done = self._writing[key] = asyncio.get_running_loop().create_future()
        try:
            await self._patch(wish)
            self.stats.written += 1
        except ApiError as error:
            self._refused(key, wish, error)
        except Unreachable as error:
            self._again(key, wish, error)
        finally:
            del self._writing[key]
            done.set_result(None)

    async def _patch(self, wish: Wish) -> None:
        subject = wish.subject
        if subject.kind == "Pod":
            await self._patch_pod(wish)
            return
        sub = await self._served.has_status(subject.kind)
        patch = StatusPatch(subject, wish.fields, wish.blank_at, sub)
        after = await write_status(self._api, patch)
        if sub or after is None or patch.stands_in(after):
            return
        if await self._served.has_status(subject.kind, sure=True):  # it has come since we looked
            await write_status(self._api, replace(patch, sub=True))

    async def _patch_pod(self, wish: Wish) -> None:
        subject = wish.subject
        if wish.was_refused and await self._has_node(subject):
            return
        status: dict[str, Any] = dict(wish.fields)
        if wish.conditions:
            status["conditions"] = list(wish.conditions.values())
        body = {"metadata": {"uid": subject.uid}, "status": status}
        path = RESOURCES["Pod"].path(subject.namespace, subject.name, "status")
        await self._api.call("PATCH", path, body=body, content_type=STRATEGIC, timeout_s=_TIMEOUT_S)

    async def _has_node(self, pod: Subject) -> bool:
        found = await self._api.get(RESOURCES["Pod"].path(pod.namespace, pod.name))
        return bool(found["spec"].get("nodeName"))

    def _put_again(self, key: Key, wish: Wish) -> None:
        """Say *wish*, which was refused, once more; what is newer it does not say."""
        waiting = self._wishes.get(key)
        self._wishes[key] = wish if waiting is None else waiting.after(wish)
        if waiting is None:
            self.trickle.put(key)

    def _refused(self, key: Key, wish: Wish, error: ApiError) -> None:
        passing = error.is_passing or error.status == 409
        if error.is_another:
            return
        if passing or self._served.may_be_why(wish.subject.kind, error, wish.tries):
            self._again(key, wish, error)
        elif not error.is_missing:
            self._lost(key, error.message)
            self._put_off.add(key, wish)

    def _again(self, key: Key, wish: Wish, error: Exception) -> None:
        """Say it later, unless there is something newer by then."""
        newer = self._wishes.get(key)
        tries = wish.tries + 1
        self._wishes[key] = wish if newer is None else newer.after(wish)
        self._wishes[key].tries = tries
        lane = self.trickle if wish.minor else self.news
        wait_s = retry_wait_s(tries, error)
        lane.hold_off(error, wait_s)
        lane.put_later(key, wait_s)

    def _lost(self, key: Key, why: str) -> None:
        self.stats.refused += 1
        self.stats.last_refusal = f"{key[0]} {key[1]}: {why}"

    def _wish(self, order: StatusOrder) -> Wish:
        if isinstance(order, QueueOrder):
            return Wish(order.subject, dict(order.status), blank_at=order.blank_at)
        if isinstance(order, GroupOrder):
            return Wish(order.subject, dict(order.status), minor=order.minor, blank_at=order.blank_at)
        if isinstance(order, NominateOrder):
            return Wish(order.subject, {"nominatedNodeName": order.node or None})
        condition = unscheduled(order.reason, order.message, self._clock(), fresh=not order.minor)
        return Wish(order.subject, conditions={SCHEDULED: condition}, minor=order.minor)


class _PutOff:
    """Wishes that the server refused, at most so many; all of them come back together after a while.

    Args:
        again: called for each.
    """

    def __init__(self, again: Callable[[Key, Wish], None]) -> None:
        self._again = again
        self._wishes: dict[Key, Wish] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, key: Key, wish: Wish) -> None:
        """*wish* was refused."""
        if len(self._wishes) < _MOST_PUT_OFF or key in self._wishes:
            self._wishes[key] = replace(wish, minor=True, tries=0, was_refused=True)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(REFUSED_AGAIN_S, self._come_back)

    def overtake(self, key: Key, newer: Wish) -> None:
        """What *newer* says need not be said as it was."""
        wish = self._wishes.pop(key, None)
        left = None if wish is None else wish.without(newer)
        if left is not None:
            self._wishes[key] = left

    def forget(self, key: Key) -> None:
        """Nothing is to be said of that object."""
        self._wishes.pop(key, None)

    def clear(self) -> None:
        """Forget all."""
        self._wishes.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _come_back(self) -> None:
        wishes = self._wishes.copy()
        self.clear()
        for key, wish in wishes.items():
            self._again(key, wish)


def unscheduled(reason: str, message: str, now: float, *, fresh: bool) -> dict[str, Any]:
    """The condition of a pod that waits; its time changes where it is *fresh*."""
    condition = {"type": SCHEDULED, "status": "False", "reason": reason, "message": message}
    return {**condition, "lastTransitionTime": format_time(now)} if fresh else condition


class Served:
    """Which of our kinds have a status endpoint: another edition of a CRD may decide otherwise.

    A server lists the endpoints of new kinds bit by bit, so one that is missing may come yet.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[str, frozenset[str]] = {}

    async def has_status(self, kind: str, *, sure: bool = False) -> bool:
        """Whether *kind*'s status is written apart from the object. Raises as ``Api.call``.

        What was found once is believed, unless we have to be *sure* that an endpoint is missing.
        """
        resource = RESOURCES[kind]
        if not resource.group:
            return True
        version, name = resource.api_version, f"{resource.plural}/status"
        known = self._known.get(version)
        if known is None or (sure and name not in known):
            found: Mapping[str, Any] = await self._api.get(f"/apis/{version}")
            self._known[version] = frozenset(each["name"] for each in found["resources"])
        return name in self._known[version]

    def may_be_why(self, kind: str, error: ApiError, tries: int) -> bool:
        """Whether *error* may come of a status endpoint that is there now, or is no more: try again.

        The rights of the scheduler are to the status, so before it is listed the object itself is forbidden.
        What a server says of an endpoint that was taken away is what it says of a missing object; so after
        that the endpoints are looked up anew, but not for ever.

        Args:
            kind: of the object.
            error: what the server answered.
            tries: that were made before.
        """
        resource = RESOURCES[kind]
        listed = self._known.get(resource.api_version, frozenset[str]())
        if error.is_missing:
            self._known.pop(resource.api_version, None)
            return _NO_OBJECT not in error.message or (bool(resource.group) and tries < _LOOKS)
        unlisted = bool(resource.group) and f"{resource.plural}/status" not in listed
        if error.status == 403 and unlisted:
            self._known.pop(resource.api_version, None)
            return True
        return False
