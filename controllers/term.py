"""One term of a controller process: from an empty memory and complete lists to the end of its lead.

Nobody decides before everything is listed. When anything breaks, the term ends, and the next one begins with
an empty memory: there is nothing to repair.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from volcano_py.client.api import Api
from volcano_py.controllers import keys
from volcano_py.controllers.acts import Say
from volcano_py.controllers.carrier import Carrier
from volcano_py.controllers.figures import Figures
from volcano_py.controllers.intake import Intake, pod_selector
from volcano_py.controllers.observed import Change, Observed
from volcano_py.controllers.options import Options
from volcano_py.controllers.podgroup.controller import PodGroupController
from volcano_py.controllers.queue.controller import QueueController
from volcano_py.controllers.queue.reconcile import always_there
from volcano_py.controllers.racing import end_of_first
from volcano_py.controllers.reconciler import Reconciler
from volcano_py.controllers.watching import Watch
from volcano_py.scheduler.cluster.events import Events, Reporter
from volcano_py.scheduler.cluster.orders import Note, Subject

__all__ = ["Term"]

_LAST_WORDS_S = 1.0


class Term:
    """What lives as long as the lead.

    Attributes:
        seen: what the server was last seen to hold.
        intake: what fills it.
        reconciler: what acts on it.
    """

    def __init__(
        self, api: Api, options: Options, *, identity: str, fence: Callable[[], bool], figures: Figures
    ) -> None:
        """*fence*: whether we may write at this moment."""
        names = options.scheduler_names
        self._queues = always_there(options.rules.default_queue)
        self.seen = Observed(names)
        self._events = Events(api, Reporter(keys.FIELD_MANAGER, identity), fence, time.time)
        carrier = Carrier(
            api, self.seen, changed=self._changed, say=self._say, fence=fence, count=figures.count_write
        )
        controllers = (
            PodGroupController(self.seen, time.monotonic, rules=options.rules),
            QueueController(self.seen, time.monotonic, always_there=self._queues),
        )
        self.reconciler = Reconciler(
            controllers, carrier, say=self._say, failed=figures.count_failure, limits=options.limits
        )
        self.intake = Intake(
            api, self.seen, changed=self._changed, scheduler_names=names, every_s=options.list_every_s
        )
        self._watch = Watch(
            self.intake.event, self.intake.listed, pod_selector(names), options.kubeconfig, options.context
        )

    async def run(self, on_started: Callable[[], None]) -> None:
        """Until cancelled. Raises when watches or leadership break; *on_started* as for :class:`Watch`."""
        try:
            await self.intake.fill()
            for name in self._queues:
                self.reconciler.add(QueueController.name, name)
            await end_of_first(self.reconciler.run(), self.intake.refresh(), self._watch.run(on_started))
        finally:
            await self._events.flush(_LAST_WORDS_S)
            await self._events.close()

    def _changed(self, change: Change) -> None:
        self.reconciler.changed(change)

    def _say(self, said: Say) -> None:
        target = said.target
        subject = Subject(target.kind, target.namespace, target.name, target.uid)
        self._events.note(subject, Note(said.reason, said.message, said.warning, action="Reconciling"))
