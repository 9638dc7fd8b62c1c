"""Equal parts of objects, held once.

The pods of a job ask for the same, the nodes of a pool hold the same images: what a large cluster says over
and over is kept as one value, so that a pod costs what is its own.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import msgspec

__all__ = ["Shared"]

T = TypeVar("T")

# Distinct values that are remembered; beyond that all are forgotten and the next ones are learned anew. What
# is alike comes together (the pods of a job, a list of nodes), so a few thousand find nearly all of it; more
# would only hold what belonged to jobs long gone, about 1 KiB each.
_LIMIT: Final = 1 << 12

_encode: Final = msgspec.json.Encoder().encode


class Shared(Generic[T]):
    """Gives for each value the first one that was equal to it. Values are plain data that nobody changes."""

    __slots__ = ("_known", "_limit")

    def __init__(self, limit: int = _LIMIT) -> None:
        self._known: dict[bytes, T] = {}
        self._limit = limit

    def __call__(self, value: T) -> T:
        """The value to keep in place of *value*; an empty one as it is."""
        if not value:
            return value
        key = _encode(value)
        known = self._known.get(key)
        if known is not None:
            return known
        if len(self._known) >= self._limit:
            self._known.clear()
        self._known[key] = value
        return value

    def __len__(self) -> int:
        return len(self._known)
