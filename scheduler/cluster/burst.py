"""While binds queue they come before what is told of groups, but not for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Burst:
    """Begins when binds queue, and ends when none does.

    Args:
        longest_s: so long it puts off what is to be told.
        over: called when it has lasted so long, and when it ends.
    """

    def __init__(self, longest_s: float, over: Callable[[], None]) -> None:
        self._longest_s, self._over = longest_s, over
        self._timer: asyncio.TimerHandle | None = None

    @property
    def puts_off(self) -> bool:
        """Whether what is told of groups waits. On the loop's thread."""
        return self._timer is not None and asyncio.get_running_loop().time() < self._timer.when()

    def mark(self, backlog: int) -> None:
        """So many binds queue now. On the loop's thread."""
        if not backlog:
            self._end()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._longest_s, self._over)

    def close(self) -> None:
        """Nobody is called any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        if self._timer is not None:
            self.close()
            self._over()
