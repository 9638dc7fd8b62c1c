"""Whether the parts of a playground do their work: asked from outside, as any client would."""

from __future__ import annotations

from pathlib import Path

import aiohttp

from volcano_py.client.api import AccessError, Api, ApiError, Unreachable

_ANSWER_S = 2.0


async def serves(kubeconfig: Path) -> bool:
    """Whether the API server of *kubeconfig* answers it."""
    try:
        async with await Api.connect(str(kubeconfig)) as api:
            await api.call("GET", "/readyz", timeout_s=_ANSWER_S)
    except (AccessError, ApiError, Unreachable):
        return False
    return True


def says(log: Path, after: int, words: str) -> bool:
    """Whether *words* stand in *log* behind its first *after* bytes."""
    try:
        return words.encode() in log.read_bytes()[after:]
    except FileNotFoundError:
        return False


async def is_ready(port: int) -> bool:
    """Whether the component that listens on *port* calls itself ready."""
    limits = aiohttp.ClientTimeout(total=_ANSWER_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=limits) as session,
            session.get(f"http://127.0.0.1:{port}/readyz") as answer,
        ):
            return answer.status == 200
    except (TimeoutError, aiohttp.ClientError):
        return False
