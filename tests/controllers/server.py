"""An API server in memory, as far as the controllers use one: objects, versions, watches, garbage collection.

Answers are those of the real server for the requests that the controllers make; ``test_real_server.py`` runs
them against that one.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from volcano_py.client.api import RESOURCES, ApiError, Resource

Document = dict[str, Any]
Event = tuple[str, str, Document]  # kind, ADDED/MODIFIED/DELETED, the object

K8S_JOB = Resource("batch", "v1", "jobs", "K8sJob")
_BY_ROOT = {(it.group, it.version, it.plural): it for it in (*RESOURCES.values(), K8S_JOB)}
_BY_KIND = {it.kind: it for it in _BY_ROOT.values()}


async def _at_once(_method: str, _path: str) -> None:
    """The default: nothing happens before or after a request."""


class Server:
    """Objects by kind, namespace and name.

    Attributes:
        before: awaited before a request is carried out; what it raises, the client gets.
        after: awaited after a request was carried out; what it raises, the client gets instead of an answer.
        events: what watches would tell, in order.
        writes: requests that changed something, as (method, kind, name).
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Document] = {}
        self.version = 0
        self.events: list[Event] = []
        self.writes: list[tuple[str, str, str]] = []
        self.before: Callable[[str, str], Awaitable[None]] = _at_once
        self.after: Callable[[str, str], Awaitable[None]] = _at_once
        self._made = 0

    # -- what people do

    def put(self, kind: str, name: str, namespace: str = "", uid: str = "", **parts: Any) -> Document:
        """Create an object, or replace all of it but its identity."""
        key = (kind, namespace, name)
        meta = {**parts.pop("metadata", {}), "name": name}
        if namespace:
            meta["namespace"] = namespace
        old = self.objects.get(key)
        meta["uid"] = old["metadata"]["uid"] if old else uid or self._new_uid()
        resource = _BY_KIND[kind]
        document = {"apiVersion": resource.api_version, "kind": kind, "metadata": meta, **parts}
        return self._store(key, document, "MODIFIED" if old else "ADDED")

    def change(self, kind: str, name: str, namespace: str = "", **parts: Any) -> None:
        """A merge patch by somebody; nothing where there is no such object."""
        key = (kind, namespace, name)
        if key in self.objects:
            self._store(key, merged(self.objects[key], parts), "MODIFIED")

    def remove(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object and what it alone owns; nothing where there is none."""
        document = self.objects.pop((kind, namespace, name), None)
        if document is None:
            return
        self.version += 1
        gone = merged(document, {"metadata": {"resourceVersion": str(self.version)}})
        self.events.append((kind, "DELETED", gone))
        self._collect(gone["metadata"]["uid"])

    def of(self, kind: str) -> dict[str, Document]:
        """Objects of a kind by ``namespace/name`` or name."""
        return {
            f"{namespace}/{name}" if namespace else name: document
            for (each, namespace, name), document in sorted(self.objects.items())
            if each == kind
        }

    # -- what clients ask

    async def get(self, path: str, **query: str) -> Any:
        await self.before("GET", path)
        resource, namespace, name, _ = parsed(path)
        answer = self._list(resource, namespace, query) if not name else self._find(resource, namespace, name)
        await self.after("GET", path)
        return copy.deepcopy(answer)

    async def post(self, path: str, body: Mapping[str, Any], **_query: str) -> Any:
        await self.before("POST", path)
        resource, namespace, _, _ = parsed(path)
        name = body["metadata"]["name"]
        if (resource.kind, namespace, name) in self.objects:
            raise ApiError(409, "AlreadyExists", path)
        made = merged(dict(body), {"metadata": {"uid": self._new_uid()}})
        self._store((resource.kind, namespace, name), made, "ADDED")
        self.writes.append(("create", resource.kind, name))
        if self._is_orphan(made):
            self.remove(resource.kind, name, namespace)
        await self.after("POST", path)
        return copy.deepcopy(made)

    async def patch(self, path: str, body: Mapping[str, Any], **_query: str) -> Any:
        await self.before("PATCH", path)
        resource, namespace, name, sub = parsed(path)
        old = self._find(resource, namespace, name)
        claims = [("uid", 422, "Invalid"), ("resourceVersion", 409, "Conflict")]
        for claim, status, reason in claims[bool(sub) :]:  # a status endpoint takes no notice of the uid
            if body.get("metadata", {}).get(claim, old["metadata"][claim]) != old["metadata"][claim]:
                raise ApiError(status, reason, f"metadata.{claim}: Invalid value")
        wanted = {"status": body.get("status", {})} if sub else {**body}
        if not sub and resource.kind == "Queue":
            wanted.pop("status", None)
        new = merged(old, wanted)
        if new != old:
            self._store((resource.kind, namespace, name), new, "MODIFIED")
            self.writes.append(("patch", resource.kind, name))
        await self.after("PATCH", path)
        return copy.deepcopy(self.objects[resource.kind, namespace, name])

    async def delete(self, path: str, body: Mapping[str, Any], **_query: str) -> Any:
        await self.before("DELETE", path)
        resource, namespace, name, _ = parsed(path)
        found = self._find(resource, namespace, name)
        if body["preconditions"]["uid"] != found["metadata"]["uid"]:
            raise ApiError(409, "Conflict", path)
        self.remove(resource.kind, name, namespace)
        self.writes.append(("delete", resource.kind, name))
        await self.after("DELETE", path)
        return {"kind": "Status", "status": "Success"}

    # -- inside

    def _find(self, resource: Resource, namespace: str, name: str) -> Document:
        try:
            return self.objects[resource.kind, namespace, name]
        except KeyError:
            raise ApiError(404, "NotFound", f"{resource.kind} {namespace}/{name}") from None

    def _list(self, resource: Resource, namespace: str, query: Mapping[str, str]) -> Document:
        labels = dict(part.split("=") for part in query.get("labelSelector", "").split(",") if part)
        items = [
            document
            for (kind, space, _), document in self.objects.items()
            if kind == resource.kind
            and namespace in ("", space)
            and labels.items() <= document["metadata"].get("labels", {}).items()
        ]
        return {"metadata": {"resourceVersion": str(self.version)}, "items": items}

    def _store(self, key: tuple[str, str, str], document: Document, what: str) -> Document:
        self.version += 1
        document["metadata"]["resourceVersion"] = str(self.version)
        document["metadata"].setdefault("creationTimestamp", f"2026-01-01T00:00:{self.version:06}Z")
        self.objects[key] = document
        self.events.append((key[0], what, copy.deepcopy(document)))
        return document

    def _collect(self, owner_uid: str) -> None:
        """Objects go with the last of their owners."""
        for (kind, namespace, name), document in list(self.objects.items()):
            owners = document["metadata"].get("ownerReferences", ())
            if any(it["uid"] == owner_uid for it in owners) and self._is_orphan(document):
                self.remove(kind, name, namespace)

    def _is_orphan(self, document: Document) -> bool:
        """Whether it has owners of which none exists; the garbage collector takes new ones too."""
        uids = {each["metadata"]["uid"] for each in self.objects.values()}
        owners = document["metadata"].get("ownerReferences", ())
        return bool(owners) and not any(it["uid"] in uids for it in owners)

    def _new_uid(self) -> str:
        self._made += 1
        return f"made-{self._made}"


def merged(old: Mapping[str, Any], patch: Mapping[str, Any]) -> Document:
    """*old* after a JSON merge patch."""
    new = copy.deepcopy(dict(old))
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        elif isinstance(value, Mapping):
            new[key] = merged(new.get(key) or {}, value)
        else:
            new[key] = copy.deepcopy(value)
    return new


def parsed(path: str) -> tuple[Resource, str, str, str]:
    """Resource, namespace, name and subresource of a URL path."""
    parts = path.strip("/").split("/")
    root, rest = (("", parts[1]), parts[2:]) if parts[0] == "api" else ((parts[1], parts[2]), parts[3:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, sub, *_ = [*rest, "", ""]
    return _BY_ROOT[(*root, plural)], namespace, name, sub
