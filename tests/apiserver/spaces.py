"""Namespaces for cases, and waiting for what a server does by and by."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from volcano_py.client.api import Api
from volcano_py.client.errors import ApiError

WAIT_S = 120.0


async def new_namespace(api: Api, *, with_controllers: bool = True) -> str:
    """A namespace in which pods can be made, without tokens mounted into them.

    What controllers put into every namespace is there already, so that no watch of a case tells of it.
    """
    name = f"t-{secrets.token_hex(4)}"
    home = f"/api/v1/namespaces/{name}"
    await api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    account = f"{home}/serviceaccounts/default"
    if with_controllers:
        await until(lambda: exists(api, account))
        if not await _is_embedded(api):
            await until(lambda: exists(api, f"{home}/configmaps/kube-root-ca.crt"))
    elif not await exists(api, account):
        await api.post(account.removesuffix("/default"), {"metadata": {"name": "default"}})
    await api.patch(account, {"automountServiceAccountToken": False})
    await until(lambda: _makes_plain_pods(api, home))
    return name


async def _is_embedded(api: Api) -> bool:
    """Whether it is the embedded server, which publishes no certificates."""
    version = msgspec.json.decode(await api.call("GET", "/version"))
    return str(version["gitVersion"]).endswith("+volcano-py")


async def _makes_plain_pods(api: Api, home: str) -> bool:
    """Whether admission knows what the service account says by now; a real server learns it by a watch."""
    probe = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "c", "image": "busybox"}]}}
    try:
        made = await api.post(f"{home}/pods", probe, dryRun="All")
    except ApiError as error:
        if error.status != 403:
            raise
        return False
    return "volumes" not in made["spec"]


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
