"""Lists: at which version, in which pages."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from volcano_py.simulator.apiserver.schema.kinds import ServedKind
from volcano_py.simulator.apiserver.selectors import Selector
from volcano_py.simulator.apiserver.status import Document, bad_request, expired, too_large_version
from volcano_py.simulator.apiserver.store import Compacted, Item, Key, Store

_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You must start a new "
    "list without the continue parameter."
)


class _Token(msgspec.Struct, rename={"version": "v", "start": "start"}):
    """Where a list goes on: the version it is of, and the last key that was given out."""

    version: int
    start: Key


@dataclass(frozen=True, slots=True)
class Page:
    """One answer to a list."""

    items: list[Item]
    metadata: Document


def list_page(
    store: Store, kind: ServedKind, namespace: str, selector: Selector, query: Mapping[str, str]
) -> Page:
    """The objects that the query asks for.

    Raises:
        Refused: 400; 410 for a version that is no longer kept; 504 for one that has not been yet.
    """
    limit = _whole(query.get("limit") or "0", "limit")
    token = _read_token(query["continue"]) if query.get("continue") else None
    version = token.version if token is not None else _version(store, query)
    try:
        items = store.items_at(kind.bucket, namespace, version)
    except Compacted as error:
        raise expired(_TOO_OLD if token is not None else str(error)) from error
    if not selector.everything:
        items = [item for item in items if selector.matches(item)]
    if token is not None:
        items = [item for item in items if item.key > token.start]
    return _page(items, limit, version)


def _page(items: list[Item], limit: int, version: int) -> Page:
    metadata: Document = {"resourceVersion": str(version)}
    if limit and len(items) > limit:
        metadata["continue"] = _write_token(_Token(version, items[limit - 1].key))
        metadata["remainingItemCount"] = len(items) - limit
        items = items[:limit]
    return Page(items, metadata)


def _version(store: Store, query: Mapping[str, str]) -> int:
    """The version that the list is of: the newest, unless exactly an older one is asked for."""
    asked, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    if match and not asked:
        raise bad_request("resourceVersionMatch is forbidden unless resourceVersion is provided")
    wanted = _whole(asked or "0", "resourceVersion")
    if wanted > store.version:
        raise too_large_version(wanted, store.version)
    exact = match == "Exact" or (query.get("limit") and not match and wanted)
    return wanted if exact else store.version


def _whole(text: str, name: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise bad_request(f'invalid {name}: parsing "{text}": invalid syntax') from error


def _write_token(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode()


def _read_token(text: str) -> _Token:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=_Token)
    except (binascii.Error, msgspec.DecodeError, ValueError) as error:
        raise bad_request(
            "invalid continue token: continue key is not valid: it was not made by this server"
        ) from error
