"""Lists and watch events as the server sends them, into the objects of the model.

Pods and nodes take a fast path (``fastpath.py``). What that refuses, and all other kinds, goes over dicts and
the careful readers of the model and of ``crds``, object by object: one that can't be read comes with its
problems, the others as if it weren't there.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

import msgspec
from pydantic import ValidationError

from volcano_py.client.errors import ApiError, status_error
from volcano_py.client.resources import Resource
from volcano_py.crds.messages import validation_messages
from volcano_py.crds.objects import parse_object
from volcano_py.scheduler.cluster.fastpath import FAST, ListMeta, WireEvent, WireList, WireObject
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem, not_text
from volcano_py.scheduler.model.kube.objects import decode

__all__ = ["Event", "Garbage", "Page", "Reader", "Seen"]

_INITIAL_END: Final = "k8s.io/initial-events-end"
_OBJECT_EVENTS: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})
_FAST_FAULTS: Final = (msgspec.DecodeError, ValueError, OverflowError, RecursionError)

_raw_list: Final = msgspec.json.Decoder(WireList[msgspec.Raw])
_raw_event: Final = msgspec.json.Decoder(WireEvent[msgspec.Raw])


class Garbage(Exception):  # noqa: N818 - says what came
    """What came is no list or event, so nothing that follows it can be trusted either."""


class Seen(NamedTuple):
    """One object as it was sent. ``item`` is None where it could not be read; then ``problems`` say why."""

    key: str
    uid: str
    version: str
    item: Any
    problems: tuple[Problem, ...] = ()


class Page(NamedTuple):
    """A part of a list. A watch goes on at ``version``; ``more`` is the token of the next page, or empty."""

    items: list[Seen]
    version: str
    more: str


class Event(NamedTuple):
    """One line of a watch.

    ``type`` is ADDED, MODIFIED, DELETED (``seen`` is the object), BOOKMARK (``version`` alone counts; the one
    after the objects that were there at the start has ``complete``) or ERROR (``error``).
    """

    type: str
    version: str
    seen: Seen | None = None
    error: ApiError | None = None
    complete: bool = False


class Reader:
    """Reads what the server sends of one kind."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self._fast: Any = FAST.get(resource.kind)

    def page(self, body: bytes) -> Page:
        """A page of a list. Raises :class:`Garbage`."""
        if self._fast is not None:
            try:
                page = self._fast.list.decode(body)
                return _page([self._converted(wire) for wire in page.items], page.metadata)
            except _FAST_FAULTS:
                pass  # read one by one, so that only those at fault are
        try:
            raw = _raw_list.decode(body)
        except (msgspec.DecodeError, RecursionError):
            return self._page_of_text(body)
        return _page([self._single(one) for one in raw.items], raw.metadata)

    def event(self, line: bytes) -> Event:
        """A line of a watch. Raises :class:`Garbage`."""
        if self._fast is not None:
            try:
                wire = self._fast.event.decode(line)
                if wire.type in _OBJECT_EVENTS:
                    seen = self._converted(wire.object)
                    return Event(wire.type, seen.version, seen)
            except _FAST_FAULTS:
                pass
        try:
            raw = _raw_event.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return self._event_of(_tolerant(line))
        if raw.type in _OBJECT_EVENTS:
            seen = self._single(raw.object)
            return Event(raw.type, seen.version, seen)
        return self._event_of({"type": raw.type, "object": _tolerant(raw.object)})

    def _converted(self, wire: WireObject) -> Seen:
        item = self._fast.convert(wire)
        meta = wire.metadata
        return Seen(item.key, meta.uid, meta.resource_version, item)

    def _single(self, raw: msgspec.Raw) -> Seen:
        if self._fast is not None:
            try:
                return self._converted(self._fast.single.decode(raw))
            except _FAST_FAULTS:
                pass  # said in full below
        return self._careful(_tolerant(raw))

    def _page_of_text(self, body: bytes) -> Page:
        """A page that holds something msgspec takes for no JSON, such as half a character."""
        said = _tolerant(body)
        items = said.get("items") if isinstance(said, dict) else None
        if not isinstance(items, list):
            raise Garbage(f"no list of {self.resource.plural}: {_start(body)}")
        meta = _mapping(said.get("metadata"))
        where = ListMeta(str(meta.get("resourceVersion") or ""), str(meta.get("continue") or ""))
        return _page([self._careful(one) for one in items], where)

    def _event_of(self, said: Any) -> Event:
        kind, about = (said.get("type"), said.get("object")) if isinstance(said, dict) else ("", None)
        if not isinstance(about, dict):
            raise Garbage(f"no event of {self.resource.plural}: {str(said)[:120]!r}")
        if kind in _OBJECT_EVENTS:
            seen = self._careful(about)
            return Event(kind, seen.version, seen)
        if kind == "ERROR":
            return Event(kind, "", error=status_error(about, 500, b"", f"watch {self.resource.plural}"))
        if kind == "BOOKMARK":
            meta = _mapping(about.get("metadata"))
            complete = _mapping(meta.get("annotations")).get(_INITIAL_END) == "true"
            return Event(kind, str(meta.get("resourceVersion") or ""), complete=complete)
        raise Garbage(f"an unknown event of {self.resource.plural}: {str(kind)[:40]!r}")

    def _careful(self, doc: Any) -> Seen:
        """*doc* by the readers that say what is wrong. Raises :class:`Garbage` if it has no name."""
        meta = doc.get("metadata") if isinstance(doc, dict) else None
        name = meta.get("name") if isinstance(meta, dict) else None
        if not isinstance(name, str) or not name or not isinstance(meta, dict):
            raise Garbage(f"one of the {self.resource.plural} has no name: {str(doc)[:120]!r}")
        # Who wrote which field: often the larger half of an object, and read by nobody here.
        meta.pop("managedFields", None)
        key = f"{meta.get('namespace') or 'default'}/{name}" if self.resource.namespaced else name
        item, problems = self._item(doc)
        return Seen(key, str(meta.get("uid") or ""), str(meta.get("resourceVersion") or ""), item, problems)

    def _item(self, doc: dict[str, Any]) -> tuple[Any, tuple[Problem, ...]]:
        """The object in *doc*, or what is wrong with it; a kind that has no model stays a mapping."""
        # Items of a list don't repeat what the list says of them.
        typed = {**doc, "apiVersion": self.resource.api_version, "kind": self.resource.kind}
        try:
            parsed = parse_object(typed)
            item = decode(typed) if parsed is None else parsed
            return typed if item is None else item, ()
        except ObjectError as error:
            return None, error.problems
        except ValidationError as error:
            return None, tuple(Problem(path, message) for path, message in validation_messages(error))
        except UnicodeEncodeError as error:
            return None, (not_text(error),)
        except RecursionError:
            return None, (Problem("", "nested too deeply"),)


def _page(items: list[Seen], meta: ListMeta) -> Page:
    return Page(items, meta.resource_version, meta.continue_)


def _mapping(value: Any) -> dict[str, Any]:
    """*value* if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def _tolerant(text: bytes | msgspec.Raw) -> Any:
    """*text* as JSON by a reader that takes whatever Python can hold. Raises :class:`Garbage`."""
    data = bytes(text)
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Garbage(f"no JSON ({error}): {_start(data)}") from error


def _start(data: bytes) -> str:
    return repr(data[:120])
