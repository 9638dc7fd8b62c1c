"""Waiting for what must come true, with an end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(
    holds: Callable[[], object], what: str = "what was waited for", *, within_s: float = 60.0
) -> None:
    """Return as soon as *holds*; fails naming *what* if it does not in time."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + within_s
    while not holds():
        assert clock() < deadline, f"not within {within_s} s: {what}"
        await asyncio.sleep(0.002)
