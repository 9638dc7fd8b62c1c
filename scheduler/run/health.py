"""Whether the process should be restarted (/healthz), and whether it does its work (/readyz)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

SILENT_S: Final = 60.0
"""No turn of the loop takes so long, even with tens of thousands of objects to take in."""
MOST_FAULTS: Final = 5
"""Cycles in a row that may fail before a restart is worth trying."""


class Health:
    """What is known of the loop's health; all of it is told from outside.

    Attributes:
        synced: everything was read once.
        unread: before that, what can't be read now, and why; "" if nothing.
        faults: cycles in a row that failed.
        config_trouble: what is wrong with the configuration file now.
    """

    def __init__(
        self,
        *,
        config_trouble: Callable[[], str] = lambda: "",
        silent_s: float = SILENT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.synced = False
        self.unread = ""
        self.faults = 0
        self.config_trouble = config_trouble
        self._silent_s, self._clock = silent_s, clock
        self._beat = clock()

    def beat(self) -> None:
        """The loop has come round."""
        self._beat = self._clock()

    def alive(self) -> str:
        """Why the process should be restarted; "" if it should not."""
        silent_s = self._clock() - self._beat
        if silent_s > self._silent_s:
            return f"the loop has not come round for {silent_s:.0f} s"
        if self.faults >= MOST_FAULTS:
            return f"the last {self.faults} cycles were broken off by exceptions"
        return ""

    def ready(self) -> str:
        """Why the process is not at its work; "" if it is."""
        if not self.synced:
            return "the cluster has not been read yet" + (f": {self.unread}" if self.unread else "")
        trouble = self.config_trouble()
        if trouble:
            return f"the configuration file is not in force: {trouble}"
        return self.alive()
