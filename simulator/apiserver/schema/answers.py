"""Answers to requests for discovery and OpenAPI documents, made when first asked for and then kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from volcano_py.simulator.apiserver.schema import discovery, openapi
from volcano_py.simulator.apiserver.schema.custom import CustomKind
from volcano_py.simulator.apiserver.schema.kinds import ServedKind

JSON = "application/json"


class Answer(NamedTuple):
    """A whole HTTP answer."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str]


class Answers:
    """All documents about one set of kinds; a changed set gets new answers."""

    def __init__(self, kinds: Sequence[ServedKind]) -> None:
        self._kinds = kinds
        self._made: dict[tuple[str, bool], Answer | None] = {}

    def answer(self, path: str, accept: str, etag: str) -> Answer | None:
        """The answer to a GET; None where nothing is to be found.

        Args:
            path: Without the query.
            accept: The Accept header; the aggregated form is sent where it is asked for.
            etag: What the client has already (``If-None-Match``), or "".
        """
        aggregated = path in ("/api", "/apis") and _wants_aggregated(accept)
        key = (path.rstrip("/"), aggregated)
        if key not in self._made:
            self._made[key] = self._make(*key)
        made = self._made[key]
        if made is not None and etag and etag == made.headers.get("ETag"):
            return Answer(304, made.content_type, b"", made.headers)
        return made

    def _make(self, path: str, aggregated: bool) -> Answer | None:
        document = self._aggregated(path) if aggregated else self._document(path)
        if document is None:
            return None
        body = msgspec.json.encode(document)
        content_type = discovery.AGGREGATED if aggregated else JSON
        return Answer(200, content_type, body, {"ETag": f'"{_digest(body)}"', "Vary": "Accept"})

    def _aggregated(self, path: str) -> dict[str, Any]:
        return discovery.aggregated(self._kinds, core=path == "/api")

    def _document(self, path: str) -> dict[str, Any] | None:
        match path.strip("/").split("/"):
            case ["api"]:
                return discovery.core_versions()
            case ["api", version]:
                return discovery.resource_list(self._kinds, "", version)
            case ["apis"]:
                return discovery.group_list(self._kinds)
            case ["apis", group]:
                return discovery.group_document(self._kinds, group)
            case ["apis", group, version] if group:
                return discovery.resource_list(self._kinds, group, version)
            case ["openapi", "v2"]:
                return openapi.version_2(self._kinds)
            case ["openapi", "v3"]:
                return self._index()
            case ["openapi", "v3", *rest]:
                return self._version_3("/".join(rest))
        return None

    def _by_version(self) -> dict[str, list[ServedKind]]:
        found: dict[str, list[ServedKind]] = {}
        for kind in self._kinds:
            prefix = f"apis/{kind.group}" if kind.group else "api"
            found.setdefault(f"{prefix}/{kind.version}", []).append(kind)
        return found

    def _index(self) -> dict[str, Any]:
        return {
            "paths": {
                name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={_fingerprint(kinds)}"}
                for name, kinds in self._by_version().items()
            }
        }

    def _version_3(self, name: str) -> dict[str, Any] | None:
        kinds = self._by_version().get(name)
        return None if kinds is None else openapi.version_3(kinds)


def _wants_aggregated(accept: str) -> bool:
    for wanted in accept.split(","):
        parts = {part.strip() for part in wanted.split(";")}
        if {"g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"} <= parts:
            return True
        if parts <= {JSON, "*/*"}:
            return False
    return False


def _digest(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()


def _fingerprint(kinds: Sequence[ServedKind]) -> str:
    """Changes when a document does, and costs less than making it."""
    parts = [
        [
            kind.names,
            sorted(kind.verbs),
            sorted(kind.subresources),
            kind.schema if isinstance(kind, CustomKind) else None,
        ]
        for kind in kinds
    ]
    return _digest(msgspec.json.encode(parts))
