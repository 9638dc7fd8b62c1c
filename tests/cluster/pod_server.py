"""A small API server with faults: it keeps pods and does as kube-apiserver does with writes.

A real HTTP server. It knows the writes of ``scheduler/cluster`` and no more. What kube-apiserver answers was
taken from one (``tests/e2e/test_writer.py`` holds the same facts against a real one).
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonpatch
import jsonpointer
from aiohttp import web

from volcano_py.client.api import Api
from volcano_py.simulator.apiserver.protobuf.reading import PROTOBUF, read_protobuf

Document = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """What happens to a request.

    Attributes:
        done: whether the server does what was asked.
        status: answered; 0: the connection is cut without an answer.
        wait_s: before that.
        retry_after: seconds asked for by header.
    """

    done: bool = False
    status: int = 0
    wait_s: float = 0.0
    retry_after: str = ""


Choose = Callable[[str, str], Fault | None]
"""From method and path to what goes wrong, None: nothing."""


class Refused(Exception):  # noqa: N818 - an answer
    """The server's answer to a request that it does not carry out."""

    def __init__(self, status: int, reason: str, message: str, causes: list[str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body: Document = {"kind": "Status", "reason": reason, "message": message, "code": status}
        if causes:
            self.body["details"] = {"causes": [{"message": cause} for cause in causes]}


@dataclass
class PodServer:
    """The server.

    Attributes:
        objects: path -> object.
        choose: faults.
        bound: uid -> times that a node was written to the pod.
        seen: (method, path) of every request, in order.
        times: when each came, by the loop's clock.
        answered: paths of requests that were answered.
        sent: bodies of writes, by path.
        budgets: names of pods that no eviction may take.
        protobuf: whether it takes that, as of built-in kinds every kube-apiserver does.
        status_served: whether PodGroups have a status endpoint.
    """

    objects: dict[str, Document] = field(default_factory=dict)
    choose: Choose = lambda method, path: None
    bound: Counter[str] = field(default_factory=Counter)
    seen: list[tuple[str, str]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    sent: dict[str, list[Document]] = field(default_factory=dict)
    budgets: set[str] = field(default_factory=set)
    protobuf: bool = True
    status_served: bool = False
    flying: int = 0
    most_flying: int = 0
    _version: int = 0

    def pod(self, name: str, **more: Any) -> str:
        """Put a pod there; its uid."""
        uid = str(more.pop("uid", f"uid-{name}"))
        meta = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": self._next()}
        self.objects[pod_path(name)] = {"metadata": meta, "spec": {}, "status": {}, **more}
        return uid

    def put(self, path: str, **more: Any) -> Document:
        """Put any object there."""
        name = path.rsplit("/", 1)[-1]
        meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": self._next()}
        self.objects[path] = {"metadata": meta, **more}
        return self.objects[path]

    def wrote(self, method: str, end: str) -> int:
        """How many requests of *method* to paths that end so."""
        return sum(verb == method and path.endswith(end) for verb, path in self.seen)

    def conditions(self, path: str) -> dict[str, Document]:
        """Conditions of an object by type."""
        return {each["type"]: each for each in self.objects[path]["status"].get("conditions", [])}

    def events(self) -> list[Document]:
        """All events."""
        return [each for path, each in self.objects.items() if "/events/" in path]

    @asynccontextmanager
    async def api(self, folder: Path) -> AsyncIterator[Api]:
        """The running server, as a client sees it."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        config = folder / "kubeconfig"
        config.write_text(_KUBECONFIG % port)
        try:
            async with await Api.connect(str(config)) as api:
                yield api
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.method, request.path))
        self.times.append(asyncio.get_running_loop().time())
        self.flying += 1
        self.most_flying = max(self.most_flying, self.flying)
        try:
            return await self._answer(request)
        finally:
            self.flying -= 1
            self.answered.append(request.path)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        sent = await request.read()
        if request.content_type == PROTOBUF and not self.protobuf:
            return web.json_response({"kind": "Status", "message": "no", "code": 415}, status=415)
        body = _read(sent, request.content_type)
        fault = self.choose(request.method, request.path)
        await asyncio.sleep(fault.wait_s if fault is not None else 0)
        answer: Document = {}
        if fault is None or fault.done:
            try:
                named = request.query.get("fieldSelector", "").removeprefix("metadata.name=")
                answer = (
                    self._list(f"{request.path}/{named}")
                    if named
                    else self._do(request.method, request.path, body, request.content_type)
                )
            except Refused as refused:
                if fault is None:
                    return web.json_response(refused.body, status=refused.status)
        if fault is None:
            return web.json_response(answer)
        if fault.status:
            headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
            said = {"kind": "Status", "reason": "", "message": f"fault {fault.status}", "code": fault.status}
            return web.json_response(said, status=fault.status, headers=headers)
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    def _do(self, method: str, path: str, body: Any, content_type: str) -> Document:
        if method != "GET":
            self.sent.setdefault(path, []).append(body)
        if method == "POST" and path.endswith("/binding"):
            return self._bind(path.removesuffix("/binding"), body)
        if method == "POST" and path.endswith("/eviction"):
            return self._evict(path.removesuffix("/eviction"), body)
        if method == "POST" and path.endswith("/events"):
            return self._create(path, body)
        if method == "GET" and path == "/apis/scheduling.volcano.sh/v1beta1":
            names = ["podgroups", "queues", "queues/status", *["podgroups/status"] * self.status_served]
            return {"resources": [{"name": name} for name in names]}
        if method == "PATCH":
            return self._patch(path, body, content_type)
        found = self._found(path)
        if method == "DELETE":
            self._same(found, (body.get("preconditions") or {}).get("uid"))
            del self.objects[path]
        return found

    def _list(self, path: str) -> Document:
        return {"items": [self.objects[path]] if path in self.objects else []}

    def _found(self, path: str) -> Document:
        if path not in self.objects:
            raise Refused(404, "NotFound", f'things "{path.rsplit("/", 1)[-1]}" not found')
        return self.objects[path]

    def _same(self, found: Document, uid: str | None, status: int = 409) -> None:
        if uid is not None and uid != found["metadata"]["uid"]:
            raise Refused(status, "Conflict", "Precondition failed: UID in precondition")

    def _bind(self, path: str, body: Document) -> Document:
        pod = self._found(path)
        self._same(pod, body["metadata"].get("uid"))
        if pod["metadata"].get("deletionTimestamp"):
            raise Refused(409, "Conflict", "pod is being deleted, cannot be assigned to a host")
        if pod["spec"].get("nodeName"):
            raise Refused(409, "Conflict", "pod is already assigned to a node")
        pod["spec"]["nodeName"] = body["target"]["name"]
        notes = body["metadata"].get("annotations") or {}
        pod["metadata"].setdefault("annotations", {}).update(notes)
        self.bound[pod["metadata"]["uid"]] += 1
        return {"kind": "Status", "status": "Success"}

    def _evict(self, path: str, body: Document) -> Document:
        pod = self._found(path)
        self._same(pod, body["deleteOptions"]["preconditions"]["uid"])
        if pod["metadata"]["name"] in self.budgets:
            raise Refused(
                429, "TooManyRequests", "Cannot evict pod.", ["The disruption budget b needs 1 healthy pods"]
            )
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return {"kind": "Status", "status": "Success"}

    def _create(self, path: str, body: Document) -> Document:
        key = f"{path}/{body['metadata']['name']}"
        if key in self.objects:
            raise Refused(409, "AlreadyExists", f'events "{key}" already exists')
        body["metadata"]["resourceVersion"] = self._next()
        self.objects[key] = body
        return body

    def _patch(self, path: str, body: Any, content_type: str) -> Document:
        sub = path.endswith("/status")
        if sub and "podgroups" in path and not self.status_served:
            # kube-apiserver says of an endpoint that a CRD doesn't have what it says of a missing object.
            raise Refused(404, "NotFound", 'podgroups.scheduling.volcano.sh "g" not found')
        found = self._found(path.removesuffix("/status"))
        if "json-patch" in content_type:
            return self._json_patch(path.removesuffix("/status"), found, body, only_status=sub)
        meta = body.get("metadata") or {}
        if sub and "scheduling.volcano.sh" in path:
            meta = {**meta, "uid": None}  # on a custom object's status endpoint it guards nothing
        self._same(found, meta.get("uid"), 422 if "strategic" in content_type else 409)
        if (
            meta.get("resourceVersion", found["metadata"]["resourceVersion"])
            != found["metadata"]["resourceVersion"]
        ):
            raise Refused(409, "Conflict", "the object has been modified")
        merge(found, body, by_type="strategic" in content_type)
        found["metadata"]["resourceVersion"] = self._next()
        return found

    def _json_patch(self, path: str, found: Document, body: Any, *, only_status: bool) -> Document:
        try:
            patched: Document = jsonpatch.apply_patch(found, body)
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
            raise Refused(
                422, "Invalid", "the server rejected our request due to an error in our request"
            ) from error
        after = {**found, "status": patched["status"]} if only_status else patched
        if self.status_served and not only_status:
            after = {**patched, "status": found["status"]}  # written at its own endpoint alone
        after["metadata"] = {**after["metadata"], "resourceVersion": self._next()}
        self.objects[path] = after
        return after

    def _next(self) -> str:
        self._version += 1
        return str(self._version)


def _read(body: bytes, content_type: str) -> Any:
    if content_type == PROTOBUF:
        return read_protobuf(body, ("v1", "Binding"))
    return json.loads(body) if body else {}


def merge(into: Document, patch: Document, *, by_type: bool) -> None:
    """Merge patch, with conditions merged by type where asked."""
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict):
            merge(into.setdefault(key, {}), value, by_type=by_type)
        elif key == "conditions" and by_type:
            old = {each["type"]: each for each in into.get(key, [])}
            for each in value:
                if each.get("$patch") == "delete":
                    old.pop(each["type"], None)
                else:
                    old[each["type"]] = {**old.get(each["type"], {}), **each}
            into[key] = list(old.values())
        else:
            into[key] = value


def pod_path(name: str) -> str:
    """Where pod *name* is."""
    return f"/api/v1/namespaces/ns/pods/{name}"


_KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:%d"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""
