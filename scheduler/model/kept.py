"""Values derived once and kept until what they were derived from changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

T = TypeVar("T")


def kept(memo: dict[str, object], name: str, version: Hashable, compute: Callable[[], T]) -> T:
    """The value called *name* in *memo*, computed anew where *version* differs from the last time."""
    known = memo.get(name)
    if isinstance(known, tuple) and known[0] == version:
        return cast("T", known[1])
    value = compute()
    memo[name] = (version, value)
    return value
