"""A controller process around the in-memory server: the real reconciler, with hand-made watches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import cast

from tests.controllers.server import Event, Server
from volcano_py.client.api import Api
from volcano_py.controllers.acts import Say
from volcano_py.controllers.carrier import Carrier
from volcano_py.controllers.intake import Intake
from volcano_py.controllers.observed import KINDS, Change, Observed
from volcano_py.controllers.podgroup.build import Rules
from volcano_py.controllers.podgroup.controller import PodGroupController
from volcano_py.controllers.queue.controller import QueueController
from volcano_py.controllers.queue.reconcile import always_there
from volcano_py.controllers.reconciler import Limits, Reconciler

NAMES = ("volcano-py", "volcano")
_QUICK = Limits(workers=3, in_flight=4, first_wait_s=0.001, longest_wait_s=0.004, refused_wait_s=0.002)


class Process:
    """One life of a controller process.

    Attributes:
        said: events it wrote.
        failed: reasons of failures.
        carrier: what carries its acts out.
    """

    def __init__(
        self,
        server: Server,
        *,
        rules: Rules | None = None,
        counts_every_s: float = 0.002,
        remake_after_s: float = 0.002,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.server = server
        self.said: list[Say] = []
        self.failed: list[str] = []
        self.seen = Observed(NAMES)
        api = cast(Api, server)
        self.carrier = Carrier(
            api,
            self.seen,
            changed=self._changed,
            say=self.said.append,
            fence=lambda: True,
            count=lambda _verb, _kind: None,
        )
        controllers = (
            PodGroupController(
                self.seen,
                clock,
                rules=rules,
                remake_after_s=remake_after_s,
            ),
            QueueController(self.seen, clock, counts_every_s, always_there((rules or Rules()).default_queue)),
        )
        self.reconciler = Reconciler(
            controllers, self.carrier, say=self.said.append, failed=self.failed.append, limits=_QUICK
        )
        self.intake = Intake(
            api, self.seen, changed=self.reconciler.changed, scheduler_names=NAMES, every_s=1e6
        )

    def _changed(self, change: Change) -> None:
        self.reconciler.changed(change)

    async def start(self) -> None:
        """List everything; what was to be watched before is of no interest any more."""
        self.server.events.clear()
        await self.intake.fill()
        for name in ("root", "default"):
            self.reconciler.add("queue", name)

    def hear(self, position: int) -> None:
        """Take one event of the watches."""
        kind, what, document = self.server.events.pop(position)
        if kind in KINDS:
            self.intake.event(kind, what, document)

    async def settle(self, pick: Callable[[list[Event]], int] = lambda _events: 0) -> None:
        """Hear everything, in the order that *pick* says, and work until nothing is left to do.

        Raises what the work raises.
        """
        work = asyncio.create_task(self.reconciler.run())
        try:
            async with asyncio.timeout(120):
                while not work.done() and (self.server.events or not self.reconciler.is_idle):
                    if self.server.events:
                        self.hear(pick(self.server.events))
                    await asyncio.sleep(0)
        finally:
            work.cancel()
            (outcome,) = await asyncio.gather(work, return_exceptions=True)
        if outcome is not None and not isinstance(outcome, asyncio.CancelledError):
            raise outcome
        assert "fault" not in self.failed


def settled(server: Server, *, rules: Rules | None = None) -> Process:
    """A whole life of a process on *server*, from its start until nothing is left to do."""

    async def live() -> Process:
        process = Process(server, rules=rules)
        await process.start()
        await process.settle()
        return process

    return asyncio.run(live())
