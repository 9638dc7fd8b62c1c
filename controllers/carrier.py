"""Carries acts out on the API server and says what the server answered.

Every write names the uid of its object, so a later object of the same name is never written by mistake. What
is gone is noted as gone, what is not as supposed is read again; both are no errors, but the plan has to be
made anew. Errors are for the caller: :class:`ApiError` and :class:`Unreachable`; after the second nobody
knows what was done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

from volcano_py.client.api import RESOURCES, Api, ApiError, Resource
from volcano_py.controllers import keys
from volcano_py.controllers.acts import (
    Act,
    Create,
    Delete,
    Look,
    LookUpOwner,
    LookUpPod,
    Patch,
    RemoveIdleGroup,
    Say,
)
from volcano_py.controllers.observed import Change, Observed
from volcano_py.controllers.records import Document, Identity, annotations_of, seed_of

__all__ = ["Carrier", "NotLeading", "selector_text"]

_OWNERS: Final[Mapping[str, Resource]] = MappingProxyType(
    {
        **{kind: RESOURCES[kind] for kind in ("ReplicaSet", "StatefulSet", "DaemonSet")},
        "Job": Resource("batch", "v1", "jobs", "Job"),  # of Kubernetes, not Volcano's
    }
)


class NotLeading(Exception):  # noqa: N818 - a state of the world, said as one
    """Another process leads now, so nothing may be written."""


class Carrier:
    """Acts in, changes of what is observed out."""

    def __init__(
        self,
        api: Api,
        seen: Observed,
        *,
        changed: Callable[[Change], None],
        say: Callable[[Say], None],
        fence: Callable[[], bool],
        count: Callable[[str, str], None],
    ) -> None:
        """Wire it.

        Args:
            api: the server.
            seen: takes in what it answers.
            changed: told of each change of *seen*.
            say: writes an event.
            fence: whether we may write now.
            count: told the verb and kind of each write that is sent.
        """
        self._api, self._seen = api, seen
        self._changed, self._say, self._fence, self._count = changed, say, fence, count

    async def carry_out(self, act: Act) -> bool:
        """Do it; whether the object was as the plan supposes. Raises ApiError, Unreachable and NotLeading."""
        match act:
            case Create():
                await self._create(act)
            case Patch():
                return await self._patch(act)
            case Delete():
                return await self._delete(act.target)
            case Look():
                await self._look(act)
            case LookUpPod():
                await self._look_up_pod(act.target)
            case LookUpOwner():
                await self._look_up_owner(act)
            case RemoveIdleGroup():
                await self._remove_idle_group(act)
            case Say():
                self._say(act)
        return True

    async def _create(self, act: Create) -> None:
        resource, name = RESOURCES[act.kind], act.document["metadata"]["name"]
        self._about_to("create", act.kind)
        try:
            made = await self._api.post(
                resource.path(act.namespace), act.document, fieldManager=keys.FIELD_MANAGER
            )
        except ApiError as error:
            if not error.is_exists:
                raise
            made = await self._api.get(resource.path(act.namespace, name))
        self._put(act.kind, made)

    async def _patch(self, act: Patch) -> bool:
        target = act.target
        meta = {**act.change.get("metadata", {}), "uid": target.uid}
        if act.exact:
            meta["resourceVersion"] = str(target.version)
        path = RESOURCES[target.kind].path(target.namespace, target.name, act.sub or None)
        self._about_to("patch", target.kind)
        try:
            after = await self._api.patch(
                path, {**act.change, "metadata": meta}, fieldManager=keys.FIELD_MANAGER
            )
        except ApiError as error:
            await self._resolve(target, error)
            return False
        self._put(target.kind, after)
        return True

    async def _delete(self, target: Identity) -> bool:
        path = RESOURCES[target.kind].path(target.namespace, target.name)
        self._about_to("delete", target.kind)
        try:
            answer = await self._api.delete(path, {"preconditions": {"uid": target.uid}})
        except ApiError as error:
            await self._resolve(target, error)
            return False
        if answer.get("metadata", {}).get("deletionTimestamp"):
            self._put(target.kind, answer)
        else:
            self._drop(target)
        return True

    async def _resolve(self, target: Identity, error: ApiError) -> None:
        """The object is gone or another than supposed: learn how it is. Other errors are raised."""
        if error.is_missing:
            self._drop(target)
        elif error.is_conflict or error.is_another:
            await self._read(target)
        else:
            raise error

    async def _read(self, target: Identity) -> Document | None:
        """The object as it is now; None if it is gone."""
        try:
            found: Document = await self._api.get(RESOURCES[target.kind].path(target.namespace, target.name))
        except ApiError as error:
            if not error.is_missing:
                raise
            self._drop(target)
            return None
        if found["metadata"]["uid"] != target.uid:
            self._drop(target)
        self._put(target.kind, found)
        return found if found["metadata"]["uid"] == target.uid else None

    async def _look(self, act: Look) -> None:
        with _absence_is_fine():
            self._put(act.kind, await self._api.get(RESOURCES[act.kind].path(act.namespace, act.name)))

    async def _look_up_pod(self, target: Identity) -> None:
        found = await self._read(target)
        if found is not None:
            self._seen.put_seed(target.uid, seed_of(found))

    async def _look_up_owner(self, act: LookUpOwner) -> None:
        """An owner that is gone, or is another one, has no annotations."""
        annotations: Mapping[str, str] = {}
        with _absence_is_fine():
            found = await self._api.get(_OWNERS[act.owner.kind].path(act.namespace, act.owner.name))
            if found["metadata"]["uid"] == act.owner.uid:
                annotations = annotations_of(found)
        self._seen.put_annotations(act.owner.uid, annotations)

    async def _remove_idle_group(self, act: RemoveIdleGroup) -> None:
        """Ask for the owner and its pods first: what was seen may be old."""
        space, owner = act.group.identity.namespace, act.owner
        found = await self._read(Identity(owner.kind, space, owner.name, owner.uid, 0, terminating=False))
        if found is None or found["spec"].get("replicas", 1):
            return
        pods = await self._api.get(
            RESOURCES["Pod"].path(space), labelSelector=selector_text(found["spec"]["selector"])
        )
        for pod in pods["items"]:
            self._put("Pod", pod)
        if all(pod.finished for pod in self._seen.pods_of(space, act.group.identity.name)):
            await self._delete(act.group.identity)

    def _about_to(self, verb: str, kind: str) -> None:
        if not self._fence():
            raise NotLeading
        self._count(verb, kind)

    def _put(self, kind: str, document: Mapping[str, Any]) -> None:
        change = self._seen.put(kind, document)
        if change is not None:
            self._changed(change)

    def _drop(self, target: Identity) -> None:
        change = self._seen.drop(target.kind, target.key, target.uid)
        if change is not None:
            self._changed(change)


@contextmanager
def _absence_is_fine() -> Iterator[None]:
    """Passes over an object that isn't there."""
    try:
        yield
    except ApiError as error:
        if not error.is_missing:
            raise


def selector_text(selector: Document) -> str:
    """A LabelSelector as the API takes it in a query."""
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for term in selector.get("matchExpressions") or ():
        key, values = term["key"], ",".join(term.get("values") or ())
        match term["operator"]:
            case "In":
                parts.append(f"{key} in ({values})")
            case "NotIn":
                parts.append(f"{key} notin ({values})")
            case "Exists":
                parts.append(key)
            case "DoesNotExist":
                parts.append(f"!{key}")
    return ",".join(parts)
