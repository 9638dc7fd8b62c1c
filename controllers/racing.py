"""Tasks of which the first to end ends all."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

__all__ = ["end_of_first"]


async def end_of_first(*work: Coroutine[Any, Any, Any]) -> None:
    """Run all of *work* until one ends, cancel the others, and wait for them.

    Raises what the first one raised; what comes of cancelling the others is of no interest.
    """
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        task.result()
