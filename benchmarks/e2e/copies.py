"""Many objects of a built-in kind, put into etcd itself: a server takes minutes to create so many.

One object is made by the server, and the others are copies of what it stored. Their names and whatever else
differs are as long as in the first, since the stored form (protobuf) counts lengths.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import aiohttp

from tests.controlplane.controlplane import ControlPlane

PUTS: Final = 100
"""In one transaction; etcd takes 128."""


async def multiply(
    plane: ControlPlane, key: str, count: int, differs: Callable[[int], Mapping[str, str]]
) -> None:
    """Put *count* copies of what is stored at *key* beside it.

    Args:
        plane: whose etcd.
        key: such as ``/registry/pods/ns/name``.
        count: number them from 1.
        differs: of the copy of a number: what stands there in place of which texts of the first, in key and
            value, each of the same length.
    """
    root = f"http://127.0.0.1:{plane.etcd}/v3/kv"
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        async with session.post(f"{root}/range", json={"key": _text(key.encode())}) as answer:
            value = base64.b64decode((await answer.json())["kvs"][0]["value"])
        puts = _puts(key.encode(), value, count, differs)
        while some := list(islice(puts, PUTS)):
            async with session.post(f"{root}/txn", json={"success": some}):
                pass


def uid(number: int) -> str:
    """An identity of a copy."""
    return f"00000000-0000-4000-8000-{number:012}"


def _puts(
    key: bytes, value: bytes, count: int, differs: Callable[[int], Mapping[str, str]]
) -> Iterator[dict[str, Any]]:
    for number in range(1, count + 1):
        at, copy = key, value
        for old, new in differs(number).items():
            assert len(old) == len(new), f"{old} and {new} differ in length"
            at, copy = at.replace(old.encode(), new.encode()), copy.replace(old.encode(), new.encode())
        yield {"requestPut": {"key": _text(at), "value": _text(copy)}}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
