"""Tables whose columns are NumPy arrays: rows are added, freed and used again.

A table declares its columns once; growing doubles every array, so adding a row is amortised O(1). A
freed row is reset to the fill values and handed out again. Row numbers mean nothing: whatever has an
order has an explicit key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from volcano_py.scheduler.model.resources import Vocabulary

T = TypeVar("T")

_FIRST_CAPACITY: Final = 16


@dataclass(frozen=True, slots=True)
class Column:
    """One declared column.

    Attributes:
        dtype: NumPy type of an entry.
        fill: value of rows that are not in use.
        per_resource: (rows, R) rather than (rows,).
    """

    dtype: DTypeLike
    fill: Any = 0
    per_resource: bool = False


def put_at(objects: list[T | None], row: int, item: T) -> None:
    """Write *item* at *row* of the objects kept beside a table: a row used before, or the next one."""
    if row == len(objects):
        objects.append(item)
    else:
        objects[row] = item


class Rows:
    """A growing table; subclasses declare ``COLUMNS`` and annotate the arrays as attributes.

    Attributes:
        size: rows ever handed out (high-water mark); arrays are at least this long.
    """

    COLUMNS: ClassVar[Mapping[str, Column]] = {}

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.size = 0
        self._free: list[int] = []
        self._capacity = 0
        for name, column in self.COLUMNS.items():
            setattr(self, name, self._blank(column, 0))
        vocabulary.on_widen(self._widen)
        self._grow()

    def take_row(self) -> int:
        """A row filled with the declared fill values."""
        if self._free:
            return self._free.pop()
        if self.size == self._capacity:
            self._grow()
        self.size += 1
        return self.size - 1

    def give_back(self, row: int) -> None:
        """Reset *row* and allow it to be taken again."""
        for name, column in self.COLUMNS.items():
            getattr(self, name)[row] = column.fill
        self._free.append(row)

    def _blank(self, column: Column, rows: int) -> np.ndarray[Any, Any]:
        shape = (rows, self.vocabulary.width) if column.per_resource else (rows,)
        return np.full(shape, column.fill, column.dtype)

    def _grow(self) -> None:
        more = max(_FIRST_CAPACITY, self._capacity)
        for name, column in self.COLUMNS.items():
            setattr(self, name, np.concatenate([getattr(self, name), self._blank(column, more)]))
        self._capacity += more

    def _widen(self, width: int) -> None:
        for name, column in self.COLUMNS.items():
            if column.per_resource:
                old = getattr(self, name)
                wide = np.full((old.shape[0], width), column.fill, column.dtype)
                wide[:, : old.shape[1]] = old
                setattr(self, name, wide)
