"""The resource vocabulary: which name is which column, in exact integers.

Every amount in the engine is an int64 in base units (milli-CPU, bytes, milli of everything else, see
``volcano_py.crds.quantity``). A vector has one entry per column and always the vocabulary's full
``width``; unused columns hold 0 (amounts) or ``UNLIMITED`` (limits). The vocabulary may grow while
running: tables subscribe with ``on_widen`` and pad their arrays.

Neighbours: ``rows`` (tables of such vectors), ``crds.quantity`` (text to base units).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from volcano_py.crds.quantity import format_base

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Rows32 = NDArray[np.int32]
Scores = NDArray[np.float64]

CPU: Final = 0
MEMORY: Final = 1
PODS: Final = 2
POD_UNIT: Final = 1000
"""One pod in the base unit of the ``pods`` column (milli)."""

UNLIMITED: Final = 2**62
"""A limit that nobody set. Sums of real amounts stay far below it; never add to it."""

_FIRST_WIDTH: Final = 8


class Vocabulary:
    """Resource names and their columns; columns are never renumbered.

    Attributes:
        names: column -> name, for the columns in use.
        width: length of every vector; at least ``len(names)``.
    """

    def __init__(self) -> None:
        self.names: list[str] = ["cpu", "memory", "pods"]
        self.columns: dict[str, int] = {name: i for i, name in enumerate(self.names)}
        self.width: int = _FIRST_WIDTH
        self._widened: list[Callable[[int], None]] = []

    def alias(self, name: str, column_of: str) -> None:
        """From now on *name* means the column of *column_of*."""
        self.columns[name] = self.column(column_of)

    def on_widen(self, callback: Callable[[int], None]) -> None:
        """Call *callback* with the new width whenever vectors get longer."""
        self._widened.append(callback)

    def column(self, name: str) -> int:
        """The column of *name*; a name not seen before gets the next one."""
        column = self.columns.get(name)
        if column is not None:
            return column
        column = len(self.names)
        self.names.append(name)
        self.columns[name] = column
        if column >= self.width:
            self.width *= 2
            for callback in self._widened:
                callback(self.width)
        return column

    def vector(self, amounts: Mapping[str, int]) -> Ints:
        """(R,) amounts in base units; names left out are 0."""
        columns = [self.column(name) for name in amounts]
        vector = np.zeros(self.width, np.int64)
        for column, amount in zip(columns, amounts.values(), strict=True):
            vector[column] = amount
        return vector

    def limits(self, amounts: Mapping[str, int] | None) -> Ints:
        """(R,) limits in base units; names left out are ``UNLIMITED``."""
        columns = [self.column(name) for name in amounts or {}]
        vector = np.full(self.width, UNLIMITED, np.int64)
        for column, amount in zip(columns, (amounts or {}).values(), strict=True):
            vector[column] = amount
        return vector

    def amounts(self, vector: Ints) -> dict[str, int]:
        """The named non-zero, limited amounts of *vector* (R,), in column order."""
        return {
            self.names[i]: int(vector[i])
            for i in np.flatnonzero(vector).tolist()
            if i < len(self.names) and vector[i] < UNLIMITED
        }

    def text(self, vector: Ints) -> dict[str, str]:
        """As ``amounts``, each as Kubernetes writes it (``{"cpu": "500m"}``)."""
        return {name: format_base(name, amount) for name, amount in self.amounts(vector).items()}


def summed(amounts: Ints) -> Ints:
    """(R,) the sums of *amounts* (n, R), ``UNLIMITED`` where they come to more: none leaves 64 bits."""
    sums = amounts.sum(axis=0)
    return np.where(amounts.sum(axis=0, dtype=np.float64) < UNLIMITED, sums, np.int64(UNLIMITED))


def pad(array: Ints, width: int, fill: int = 0) -> Ints:
    """*array* (..., R) with its last axis filled up to *width*."""
    missing = width - array.shape[-1]
    if missing <= 0:
        return array
    return np.concatenate([array, np.full((*array.shape[:-1], missing), fill, np.int64)], axis=-1)
