"""Namespaces for cases, and waiting for what a server does by and by."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any

from volcano_py.client.api import Api
from volcano_py.client.errors import ApiError

WAIT_S = 30.0


async def new_namespace(api: Api, *, with_controllers: bool = True) -> str:
    """A namespace in which pods can be made, without tokens mounted into them."""
    name = f"t-{secrets.token_hex(4)}"
    await api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    if with_controllers:
        await until(lambda: exists(api, account))
    elif not await exists(api, account):
        await api.post(account.removesuffix("/default"), {"metadata": {"name": "default"}})
    await api.patch(account, {"automountServiceAccountToken": False})
    return name


async def exists(api: Api, path: str) -> bool:
    """Whether there is something at *path*."""
    return await state(api, path) is not None


async def state(api: Api, path: str) -> Any:
    """The object at *path*; None where there is none."""
    try:
        return await api.get(path)
    except ApiError as error:
        # A kind that has just been defined answers 429 for a moment.
        if error.status not in (404, 429):
            raise
        return None


async def until(condition: Callable[[], Awaitable[bool]], wait_s: float = WAIT_S) -> None:
    """Ask until *condition* holds.

    Raises:
        TimeoutError: it did not within *wait_s*.
    """
    end = time.monotonic() + wait_s
    while not await condition():
        if time.monotonic() > end:
            raise TimeoutError("what was waited for did not come")
        await asyncio.sleep(0.05)
