"""A small API server that lists and watches, and fails in the ways that networks and servers fail."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

Doc = dict[str, Any]


@dataclass(frozen=True)
class Refusal:
    """The next request is answered with *status*; an ``apiserver`` reason belongs to 409, 410 and 404."""

    status: int
    reason: str = ""
    retry_after: str | None = None
    body: str | None = None


@dataclass(frozen=True)
class Cut:
    """The next answer with a line, or a page, breaks off within it; *reset*: the connection is aborted."""

    reset: bool = True


@dataclass(frozen=True)
class Drop:
    """The next request finds its connection closed without an answer."""


@dataclass(frozen=True)
class End:
    """The next watch ends, whole, as soon as it began."""


@dataclass(frozen=True)
class Noise:
    """The next watch or list gives *text* in place of what it should."""

    text: str = "<html>gateway</html>"


@dataclass(frozen=True)
class ErrorEvent:
    """The next watch says that something is wrong, within the stream."""

    code: int = 410
    reason: str = "Expired"


@dataclass(frozen=True)
class Silence:
    """The next watch says nothing at all until it is cut off."""


Fault = Refusal | Cut | Drop | End | Noise | ErrorEvent | Silence


@dataclass
class FaultServer:
    """Objects by collection path and key, with one version for all, as in etcd.

    Attributes:
        ever: every (path, key, uid, version) that existed.
        faults: met by the next requests, one each.
        requests: method, path and query of all that came.
        lost_before: versions below are no longer kept: 410.
        spoil_watches: met by every watch.
        bookmark: every watch begins with a bookmark.
        served: whether it knows its kinds at all.
        down: every connection is cut without an answer, as of a server that stops.
        token: the only one it takes, if any.
    """

    objects: dict[str, dict[str, Doc]] = field(default_factory=dict)
    ever: set[tuple[str, str, str, str]] = field(default_factory=set)
    faults: deque[Fault] = field(default_factory=deque)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    lost_before: int = 0
    bookmark: bool = True
    spoil_watches: Fault | None = None
    served: bool = True
    down: bool = False
    token: str = ""
    url: str = ""
    _version: int = 100
    _log: list[tuple[int, str, str, Doc]] = field(default_factory=list)
    _pages: dict[str, tuple[int, list[Doc]]] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _epoch: int = 0
    _runner: web.AppRunner | None = None

    # -- what happens on it ---------------------------------------------------------------------

    def put(self, path: str, doc: Doc) -> None:
        """Create or replace the object; its uid stays where *doc* names none."""
        key = key_of(doc)
        here = self.objects.setdefault(path, {})
        self._version += 1
        meta = {**doc["metadata"], "resourceVersion": str(self._version)}
        known = here.get(key)
        meta.setdefault("uid", known["metadata"]["uid"] if known else f"uid-{self._version}")
        if known is not None and known["metadata"]["uid"] != meta["uid"]:
            self.delete(path, key)
            self._version += 1
            meta["resourceVersion"] = str(self._version)
        here[key] = {**doc, "metadata": meta}
        self.ever.add((path, key, meta["uid"], meta["resourceVersion"]))
        same = known is not None and known["metadata"]["uid"] == meta["uid"]
        self._say(path, "MODIFIED" if same else "ADDED", here[key])

    def delete(self, path: str, key: str) -> None:
        """The object goes; unknown ones are fine."""
        doc = self.objects.get(path, {}).pop(key, None)
        if doc is None:
            return
        self._version += 1
        last = {**doc, "metadata": {**doc["metadata"], "resourceVersion": str(self._version)}}
        self._say(path, "DELETED", last)

    def compact(self) -> None:
        """Forget all that was: watches from older versions and pages of older lists are gone."""
        self._version += 1
        self.lost_before = self._version
        self._pages.clear()
        self._log.clear()
        self._hang_up()

    def roll_back(self, version: int) -> None:
        """Go on counting from *version*, as a store that was restored from a backup does."""
        self._version = version
        self._log.clear()

    def drop_all(self) -> None:
        """End the watches that run."""
        self._hang_up()

    def view(self, path: str) -> dict[str, tuple[str, str]]:
        """Key to uid and version of what is there."""
        return {
            key: (doc["metadata"]["uid"], doc["metadata"]["resourceVersion"])
            for key, doc in self.objects.get(path, {}).items()
        }

    def _say(self, path: str, kind: str, doc: Doc) -> None:
        self._log.append((self._version, path, kind, doc))
        self._stir()

    def _stir(self) -> None:
        self._wake.set()
        self._wake = asyncio.Event()

    def _hang_up(self) -> None:
        self._epoch += 1
        self._stir()

    # -- how it is reached ----------------------------------------------------------------------

    async def start(self) -> None:
        """Listen on a free port."""
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def stop(self) -> None:
        """Stop listening."""
        self._hang_up()
        if self._runner is not None:
            await self._runner.cleanup()
            await asyncio.sleep(0.01)  # connections that were cut close in a later turn of the loop

    def kubeconfig(self, folder: Path, **user: Any) -> str:
        """A kubeconfig for it."""
        doc = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
            "clusters": [{"name": "c", "cluster": {"server": self.url}}],
            "users": [{"name": "u", "user": user}],
        }
        path = folder / "kubeconfig"
        path.write_text(json.dumps(doc), encoding="utf-8")
        return str(path)

    # -- requests -------------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        if not self.down:
            self.requests.append((request.method, request.path, query))
        self.headers.append(dict(request.headers))
        fault = self.faults.popleft() if self.faults and not self.down else None
        if self.spoil_watches is not None and query.get("watch"):
            fault = self.spoil_watches
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return refusal(Refusal(401, "Unauthorized"))
        if isinstance(fault, Refusal):
            return refusal(fault)
        if self.down or isinstance(fault, Drop):
            return hang_up(request)
        if not self.served:
            return refusal(Refusal(404, body="404 page not found"))
        if request.method != "GET":
            return web.json_response({"kind": "Status", "echo": await request.text()})
        if query.get("watch"):
            return await self._watch(request, query, fault)
        return await self._list(request, query, fault)

    async def _list(
        self, request: web.Request, query: dict[str, str], fault: Fault | None
    ) -> web.StreamResponse:
        limit = int(query.get("limit", "0"))
        token = query.get("continue", "")
        if token:
            if token not in self._pages:
                return refusal(Refusal(410, "Expired"))
            version, rest = self._pages.pop(token)
        else:
            version, rest = self._version, list(self.objects.get(request.path, {}).values())
        page, rest = (rest[:limit], rest[limit:]) if limit else (rest, [])
        meta = {"resourceVersion": str(version)}
        if rest:
            meta["continue"] = f"{version}-{len(self.requests)}"
            self._pages[meta["continue"]] = (version, rest)
        body = json.dumps({"kind": "List", "metadata": meta, "items": page})
        if isinstance(fault, Noise):
            return web.Response(text=fault.text)
        if isinstance(fault, Cut):
            return await cut(request, body, fault)
        return web.Response(text=body, content_type="application/json")

    async def _watch(
        self, request: web.Request, query: dict[str, str], fault: Fault | None
    ) -> web.StreamResponse:
        at, epoch = int(query["resourceVersion"]), self._epoch
        if at < self.lost_before:
            return refusal(Refusal(410, "Expired"))
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        answer.enable_chunked_encoding()
        await answer.prepare(request)
        if isinstance(fault, End):
            return answer
        if isinstance(fault, Noise):
            await answer.write(fault.text.encode() + b"\n")
            return answer
        if isinstance(fault, ErrorEvent):
            status = {"kind": "Status", "code": fault.code, "reason": fault.reason, "message": "because"}
            await answer.write(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
            return answer
        async for line in self._lines(request.path, at, float(query["timeoutSeconds"]), fault, epoch):
            if isinstance(fault, Cut):
                await answer.write(line[: len(line) // 2])
                if fault.reset:
                    hang_up(request)
                return answer
            await answer.write(line)
        return answer

    async def _lines(
        self, path: str, at: int, seconds: float, fault: Fault | None, epoch: int
    ) -> AsyncIterator[bytes]:
        """The lines of a watch from version *at* on, until it ends, or all watches of *epoch* do."""
        until = asyncio.get_running_loop().time() + seconds
        quiet = isinstance(fault, Silence)
        if self.bookmark and not quiet:
            meta = {"resourceVersion": str(at), "creationTimestamp": None}
            yield line_of("BOOKMARK", {"metadata": meta})
        while epoch == self._epoch:
            wake = self._wake
            for version, where, kind, doc in list(self._log):
                if version > at and not quiet:
                    at = version
                    if where == path:
                        yield line_of(kind, doc)
            if epoch != self._epoch or wake is not self._wake:
                continue
            try:
                await asyncio.wait_for(wake.wait(), until - asyncio.get_running_loop().time())
            except TimeoutError:
                return


@asynccontextmanager
async def fault_server() -> AsyncIterator[FaultServer]:
    """A server that listens while the block runs."""
    server = FaultServer()
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def key_of(doc: Doc) -> str:
    """``namespace/name``, or the name."""
    meta = doc["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


def line_of(kind: str, doc: Doc) -> bytes:
    """An event as kube-apiserver writes it."""
    return json.dumps({"type": kind, "object": doc}, separators=(",", ":")).encode() + b"\n"


def refusal(fault: Refusal) -> web.Response:
    """The answer that refuses."""
    headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
    if fault.body is not None:
        return web.Response(status=fault.status, text=fault.body, headers=headers)
    status = {"kind": "Status", "code": fault.status, "reason": fault.reason, "message": "because"}
    return web.json_response(status, status=fault.status, headers=headers)


def hang_up(request: web.Request) -> web.Response:
    """Close the connection at once; the answer goes nowhere."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def cut(request: web.Request, body: str, fault: Cut) -> web.StreamResponse:
    """Half of *body*, of which the whole length was announced."""
    answer = web.StreamResponse(headers={"Content-Length": str(len(body))})
    await answer.prepare(request)
    await answer.write(body[: len(body) // 2].encode())
    if fault.reset or request.transport is None:
        return hang_up(request)
    request.transport.close()
    return answer
