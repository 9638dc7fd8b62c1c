"""HTTP: a request is authenticated, routed to what it names, carried out and answered.

Everything that decides is elsewhere; here are verbs, headers and status codes.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Final

from aiohttp import web

from volcano_py.simulator.apiserver.answers import Answers, Form, Parts, wanted_form
from volcano_py.simulator.apiserver.cluster import Cluster
from volcano_py.simulator.apiserver.incoming import read_body
from volcano_py.simulator.apiserver.listing import list_page
from volcano_py.simulator.apiserver.patching import APPLY_PATCH, patch_types, read_configuration, read_patch
from volcano_py.simulator.apiserver.requests import Deletion, Target, Write, delete_options, write_options
from volcano_py.simulator.apiserver.routes import Route, parse_path
from volcano_py.simulator.apiserver.schema.kinds import ServedKind
from volcano_py.simulator.apiserver.security import Keyring, User
from volcano_py.simulator.apiserver.selectors import parse_selector
from volcano_py.simulator.apiserver.status import (
    Document,
    Refused,
    bad_request,
    not_allowed,
    not_found,
    unknown_resource,
    unsupported_media,
)
from volcano_py.simulator.apiserver.store import encode
from volcano_py.simulator.apiserver.subresources.requests import POSTED, Logs, post, read_subresource
from volcano_py.simulator.apiserver.subresources.scale import patch_scale, replace_scale
from volcano_py.simulator.apiserver.version import VERSION
from volcano_py.simulator.apiserver.watch import Watch, WatchOptions

log = logging.getLogger(__name__)

_JSON: Final = "application/json"
_OPEN: Final = frozenset(["healthz", "readyz", "livez"])
_WATCH_S: Final = (1800.0, 3600.0)
_PIECE_BYTES: Final = 1 << 18

Handler = Callable[[web.BaseRequest, Target, User], Awaitable[web.StreamResponse]]


class Server:
    """Answers HTTP requests about one cluster.

    Args:
        logs: where the logs of pods come from.
        backlog: events that may wait for a slow watcher.
    """

    def __init__(self, cluster: Cluster, keys: Keyring, logs: Logs, backlog: int) -> None:
        self._cluster = cluster
        self._keys = keys
        self._logs = logs
        self._backlog = backlog
        self._answers = Answers(cluster.registry, cluster.objects.clock)
        self._watches: set[Watch] = set()
        self._verbs: dict[str, Handler] = {
            "GET": self._get,
            "POST": self._post,
            "PUT": self._put,
            "PATCH": self._patch,
            "DELETE": self._delete,
        }

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """One request, whatever becomes of it."""
        try:
            return await self._handle(request)
        except Refused as refused:
            return _error(refused)
        except web.HTTPRequestEntityTooLarge:
            return _error(Refused(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728"))
        except ConnectionResetError:
            raise
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            return _error(Refused(500, "InternalError", "Internal error occurred: see the server's log"))

    def end_watches(self) -> None:
        """Let every watch end after what it is about to say."""
        for watch in tuple(self._watches):
            watch.end()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path.lstrip("/").partition("/")[0] in _OPEN:
            return web.Response(text="ok")
        if path == "/version":
            return _json(encode(VERSION))
        user = self._user(request)
        route = parse_path(path)
        if route is None or not self._serves(route):
            return self._described(request)
        handler = self._verbs.get(request.method)
        if handler is None:
            raise unknown_resource()
        return await handler(request, self._target(route), user)

    def _user(self, request: web.BaseRequest) -> User:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        user = self._keys.user_of(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise Refused(401, "Unauthorized", "Unauthorized")
        return user

    def _described(self, request: web.BaseRequest) -> web.StreamResponse:
        """Discovery and OpenAPI."""
        headers = request.headers
        answer = self._cluster.registry.answer(
            request.path, headers.get("Accept", ""), headers.get("If-None-Match", "")
        )
        if answer is None:
            return web.Response(status=404, text="404 page not found\n")
        return web.Response(
            status=answer.status,
            body=answer.body,
            headers={"Content-Type": answer.content_type, **answer.headers},
        )

    def _serves(self, route: Route) -> bool:
        """Whether there is anything in that group and version."""
        registry = self._cluster.registry
        if registry.resolve(route.group, route.version, route.plural) is not None:
            return True
        return any((kind.group, kind.version) == (route.group, route.version) for kind in registry.served())

    def _target(self, route: Route) -> Target:
        kind = self._cluster.registry.resolve(route.group, route.version, route.plural)
        if kind is None or (route.namespace and not kind.namespaced):
            raise unknown_resource()
        if route.name and kind.namespaced and not route.namespace:
            raise unknown_resource()
        if route.subresource not in ("", *kind.subresources):
            raise not_found(kind, route.name) if kind.custom else unknown_resource()
        return Target(kind, route.namespace, route.name, route.subresource)

    # verbs

    async def _get(self, request: web.BaseRequest, target: Target, user: User) -> web.StreamResponse:
        kind = target.kind
        form = wanted_form(request.headers.get("Accept", ""), request.query.get("includeObject", ""))
        if not target.name:
            _require(kind, "list")
            return await self._collection(request, target, form)
        if target.subresource not in ("", "status"):
            return await read_subresource(self._cluster, self._logs, target, request)
        _require(kind, "get")
        item = self._cluster.objects.item(target)
        return _json(self._answers.item(kind, item, form))

    async def _collection(self, request: web.BaseRequest, target: Target, form: Form) -> web.StreamResponse:
        query, kind = request.query, target.kind
        selector = parse_selector(kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        if query.get("watch", "").lower() in ("1", "true", "t"):
            options = _watch_options(query, self._backlog)
            render = self._answers.events(kind, form)
            cut = partial(_cut, request)
            watch = Watch(self._cluster.store, kind, target.namespace, selector, options, render, cut)
            return await self._stream(request, watch)
        page = list_page(self._cluster.store, kind, target.namespace, selector, query)
        return await _send(request, self._answers.page(kind, page.items, page.metadata, form))

    async def _stream(self, request: web.BaseRequest, watch: Watch) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": _JSON, "Cache-Control": "no-cache, private"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        self._watches.add(watch)
        try:
            async for chunk in watch.lines():
                await response.write(chunk)
            await response.write_eof()
        finally:
            self._watches.discard(watch)
        return response

    async def _post(self, request: web.BaseRequest, target: Target, user: User) -> web.StreamResponse:
        body = await request.read()
        document = read_body(body, _media_type(request), target.kind)
        write = self._write(request)
        if target.subresource or target.kind.plural in POSTED:
            answer = post(self._cluster, self._keys, user, target, document, write)
            return _json(encode(answer), status=201)
        if target.name:
            raise not_allowed()
        _require(target.kind, "create")
        if target.kind.namespaced and not target.namespace:
            raise bad_request("an empty namespace may not be set during creation")
        made = self._cluster.objects.create(target, document, write)
        return self._written(request, target, made, write, status=201)

    async def _put(self, request: web.BaseRequest, target: Target, user: User) -> web.StreamResponse:
        document = read_body(await request.read(), _media_type(request), target.kind)
        write = self._write(request)
        if not target.name:
            raise not_allowed()
        _require(target.kind, "update")
        if target.subresource == "scale":
            return _json(encode(replace_scale(self._cluster.objects, target, document, write)))
        made = self._cluster.objects.replace(target, document, write)
        return self._written(request, target, made, write)

    async def _patch(self, request: web.BaseRequest, target: Target, user: User) -> web.StreamResponse:
        body = await request.read()
        media_type = _media_type(request)
        if media_type not in patch_types(target.kind):
            if target.kind.custom:
                raise unsupported_media(patch_types(target.kind))
            raise Refused(415, "UnsupportedMediaType", "415: Unsupported Media Type")
        if not target.name:
            raise not_allowed()
        _require(target.kind, "patch")
        write = self._write(request, apply=media_type == APPLY_PATCH)
        objects = self._cluster.objects
        if media_type == APPLY_PATCH:
            made, new = objects.apply(target, read_configuration(body), write)
            return self._written(request, target, made, write, status=201 if new else 200)
        if target.subresource == "scale":
            return _json(encode(patch_scale(objects, target, media_type, read_patch(body), write)))
        made = objects.patch(target, media_type, read_patch(body), write)
        return self._written(request, target, made, write)

    async def _delete(self, request: web.BaseRequest, target: Target, user: User) -> web.StreamResponse:
        body = await request.read()
        media_type = _media_type(request)
        options = read_body(body, media_type, target.kind) if body else None
        deletion, dry_run = delete_options(request.query, options)
        if target.subresource:
            raise not_allowed()
        if not target.name:
            return await self._delete_all(request, target, deletion, dry_run)
        _require(target.kind, "delete")
        answer = self._cluster.deleting.delete(target, deletion, dry_run=dry_run)
        return self._written(request, target, answer, Write())

    async def _delete_all(
        self, request: web.BaseRequest, target: Target, deletion: Deletion, dry_run: bool
    ) -> web.StreamResponse:
        query, kind = request.query, target.kind
        _require(kind, "deletecollection")
        if kind.namespaced and not target.namespace:
            raise not_allowed()
        selector = parse_selector(kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        page = list_page(self._cluster.store, kind, target.namespace, selector, query)
        self._cluster.deleting.delete_all(kind, page.items, deletion, dry_run=dry_run)
        form = wanted_form(request.headers.get("Accept", ""), query.get("includeObject", ""))
        return await _send(request, self._answers.page(kind, page.items, page.metadata, form))

    # headers

    def _write(self, request: web.BaseRequest, *, apply: bool = False) -> Write:
        return write_options(request.query, request.headers.get("User-Agent", ""), apply=apply)

    def _written(
        self, request: web.BaseRequest, target: Target, document: Document, write: Write, status: int = 200
    ) -> web.Response:
        form = wanted_form(request.headers.get("Accept", ""), request.query.get("includeObject", ""))
        response = _json(self._answers.document(target.kind, document, form), status=status)
        warnings = [target.kind.deprecation] if target.kind.deprecation else []
        for text in [*warnings, *write.warnings]:
            quoted = text.replace("\\", "\\\\").replace('"', '\\"')
            response.headers.add("Warning", f'299 - "{quoted}"')
        return response


def _media_type(request: web.BaseRequest) -> str:
    """What the body is in; "" where the client does not say."""
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _cut(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()


def _require(kind: ServedKind, verb: str) -> None:
    if verb not in kind.verbs:
        raise not_allowed()


def _watch_options(query: Mapping[str, str], backlog: int) -> WatchOptions:
    version = query.get("resourceVersion", "")
    if version and not version.isdecimal():
        why = f'resourceVersion: Invalid value: "{version}": parsing "{version}": invalid syntax'
        raise Refused(500, "", why)
    initial = query.get("sendInitialEvents")
    seconds = query.get("timeoutSeconds")
    return WatchOptions(
        version=version,
        initial=None if initial is None else initial.lower() in ("1", "true", "t"),
        bookmarks=query.get("allowWatchBookmarks", "").lower() in ("1", "true", "t"),
        backlog=backlog,
        seconds=float(seconds) if seconds and seconds.isdecimal() else random.uniform(*_WATCH_S),
    )


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(
        body=body, status=status, headers={"Content-Type": _JSON, "Cache-Control": "no-cache, private"}
    )


async def _send(request: web.BaseRequest, parts: Parts) -> web.StreamResponse:
    """Answer with *parts*; what is large is joined in pieces, as fast as the client reads."""
    size = sum(map(len, parts))
    if size < _PIECE_BYTES:
        return _json(b"".join(parts))
    response = web.StreamResponse(headers={"Content-Type": _JSON, "Cache-Control": "no-cache, private"})
    response.content_length = size
    await response.prepare(request)
    for piece in _pieces(parts):
        await response.write(piece)
    await response.write_eof()
    return response


def _pieces(parts: Parts) -> Iterator[bytes]:
    waiting: Parts = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= _PIECE_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


def _error(refused: Refused) -> web.Response:
    response = _json(encode(refused.status()), status=refused.code)
    response.headers.update(refused.headers)
    return response
