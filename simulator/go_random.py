"""The numbers that Go's ``math/rand`` draws from a seed, so a published seed means the same here.

The generator is additive lagged Fibonacci (Mitchell and Reeds; Knuth, The Art of Computer
Programming, vol. 2, 3.2.2): x[n] = x[n-607] + x[n-273] modulo 2**64. Go mixes the seed into a table
that is the generator's own state after 7.8e12 steps; it is worked out here by powers of the
recurrence instead of being copied. Neighbour: ``openb_workload``.
"""

from collections.abc import MutableSequence
from functools import cache
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
Item = TypeVar("Item")

_LONG, _SHORT = 607, 273
_TABLE_STEPS = 7_800_000_000_000
_MULTIPLIER, _MODULUS, _ZERO_SEED = 48_271, (1 << 31) - 1, 89_482_311
_SKIPPED = 20
_BITS_63 = (1 << 63) - 1


class GoRandom:
    """One seeded source; every draw moves it on."""

    def __init__(self, seed: int) -> None:
        self._past = _seed_words(seed, 40, 20) ^ _table()
        self._block: list[int] = []

    def int63(self) -> int:
        """A number in [0, 2**63)."""
        if not self._block:
            self._past, drawn = _advance(self._past)
            self._block = drawn[::-1].tolist()
        return self._block.pop() & _BITS_63

    def intn(self, n: int) -> int:
        """A number in [0, n), for n up to 2**31 - 1; rejects draws that would favour small numbers."""
        top = (1 << 31) - 1 - (1 << 31) % n
        draw = self.int63() >> 32
        while draw > top and n & (n - 1):
            draw = self.int63() >> 32
        return draw % n

    def shuffle(self, items: MutableSequence[Item]) -> None:
        """Reorder *items* in place (Fisher and Yates, drawing from the end)."""
        for i in range(len(items) - 1, 0, -1):
            j = self._scaled(i + 1)
            items[i], items[j] = items[j], items[i]

    def permutation(self, n: int) -> list[int]:
        """The numbers 0 to n - 1 in random order (inside-out Fisher and Yates)."""
        order = [0] * n
        for i in range(n):
            j = self.intn(i + 1)
            order[i] = order[j]
            order[j] = i
        return order

    def _scaled(self, n: int) -> int:
        # Lemire, "Fast random integer generation in an interval", 2019, on 32-bit draws.
        product = (self.int63() >> 31) * n
        while product % (1 << 32) < (1 << 32) % n:
            product = (self.int63() >> 31) * n
        return product >> 32


def _seed_words(seed: int, high: int, middle: int) -> Words:
    """(607,) uint64, oldest first: a multiplicative generator's numbers, three to a word."""
    state = seed % _MODULUS or _ZERO_SEED
    raw = []
    for _ in range(_SKIPPED + 3 * _LONG):
        state = state * _MULTIPLIER % _MODULUS
        raw.append(state)
    triples = np.array(raw[_SKIPPED:], dtype=np.uint64).reshape(_LONG, 3)
    words = (triples[:, 0] << np.uint64(high)) ^ (triples[:, 1] << np.uint64(middle)) ^ triples[:, 2]
    return _by_age(words)


def _by_age(words: Words) -> Words:
    """Go's register order to oldest first, and back: its first step writes word 333, then 332, and so on."""
    aged: Words = words[(_LONG - _SHORT - 1 - np.arange(_LONG)) % _LONG]
    return aged


def _advance(past: Words) -> tuple[Words, Words]:
    """The last 607 numbers after one more block of 273, and that block."""
    drawn = past[:_SHORT] + past[_LONG - _SHORT :]
    return np.concatenate((past[_SHORT:], drawn)), drawn


@cache
def _table() -> Words:
    """(607,) uint64, oldest first: the state after ``_TABLE_STEPS`` steps from seed 1."""
    start = _seed_words(1, 20, 10)
    known = start
    for _ in range(3):
        known = np.append(known, _advance(known[-_LONG:])[1])
    power = _power(_TABLE_STEPS)
    state: Words = np.array([(power * known[i : i + _LONG]).sum(dtype=np.uint64) for i in range(_LONG)])
    # Steps taken are not a whole number of turns: bring the register back to where it started.
    return np.roll(state, _TABLE_STEPS % _LONG)


def _power(steps: int) -> Words:
    """Weights of the first 607 numbers in number *steps*: z**steps modulo z**607 - z**334 - 1."""
    power = np.zeros(_LONG, dtype=np.uint64)
    power[0] = 1
    for bit in bin(steps)[2:]:
        power = _reduced(np.convolve(power, power))
        if bit == "1":
            power = _reduced(np.append(np.uint64(0), power))
    return power


def _reduced(weights: Words) -> Words:
    weights = weights.copy()
    for end in range(len(weights), _LONG, -_SHORT):  # a block never feeds itself
        block = slice(max(end - _SHORT, _LONG), end)
        high, size = weights[block].copy(), block.stop - block.start
        weights[block.start - _LONG :][:size] += high
        weights[block.start - _SHORT :][:size] += high
    return weights[:_LONG]
