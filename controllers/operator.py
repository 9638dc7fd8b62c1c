"""The controller process: campaigns for its Lease, and leads for one term after the other.

A standby waits for the Lease and watches nothing. A term ends when the Lease is lost, the watches break or
the process is told to stop.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack, suppress

import structlog

from volcano_py.client.api import Api
from volcano_py.controllers import keys
from volcano_py.controllers.carrier import NotLeading
from volcano_py.controllers.figures import Figures
from volcano_py.controllers.options import Options
from volcano_py.controllers.racing import end_of_first
from volcano_py.controllers.term import Term
from volcano_py.scheduler.cluster.lease import Lease, own_identity
from volcano_py.scheduler.probes import Web

__all__ = ["Operator"]

_log = structlog.get_logger("controllers")

# Pause before a term that follows one that broke.
_RESTART_S = 2.0


class Operator:
    """One controller process.

    Attributes:
        figures: what it counts.
        address: host and port where it listens, once it does.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._identity = own_identity()
        self._lease: Lease | None = None
        self._stop, self._leading, self._lost = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._takes_signals = False
        self.figures = Figures()
        self.address: tuple[str, int] | None = None

    def stop(self) -> None:
        """End :meth:`run` soon."""
        self._stop.set()

    def stop_on_signals(self) -> None:
        """Stop on SIGTERM and SIGINT; only for the main thread."""
        self._takes_signals = True
        self._take_signals()

    def trouble(self) -> str:
        """What keeps it from being ready; empty: nothing. A standby is ready to take over."""
        term = self.figures.term
        if term is not None:
            return "" if term.intake.complete else "the cluster is not listed yet"
        if self._lease is not None and self._lease.trouble is not None:
            return f"the Lease can't be reached: {self._lease.trouble}"
        return ""

    async def run(self) -> None:
        """Until stopped. Raises AccessError where no server is configured, OSError for a taken port."""
        options = self._options
        async with AsyncExitStack() as stack:
            connecting = Api.connect(options.kubeconfig, options.context, agent=keys.FIELD_MANAGER)
            api = await stack.enter_async_context(await connecting)
            web = Web(lambda: "", self.trouble, self.figures.text)
            stack.push_async_callback(web.stop)
            await web.start(options.listening)
            if web.bound:
                self.address = web.bound[0]
                _log.info("listening", host=self.address[0], port=self.address[1])
            if options.election is not None:
                self._lease = Lease(
                    api,
                    namespace=options.election.namespace,
                    name=options.election.name,
                    identity=self._identity,
                )
            await end_of_first(self._campaign(), self._lead_whenever_possible(api))

    def _may_write(self) -> bool:
        return self._lease is None or self._lease.held

    async def _campaign(self) -> None:
        if self._lease is None:
            self._leading.set()
            await asyncio.Event().wait()
        else:
            await self._lease.run(self._leading.set, self._on_lost)

    def _on_lost(self) -> None:
        self._leading.clear()
        self._lost.set()

    async def _lead_whenever_possible(self, api: Api) -> None:
        while not self._stop.is_set():
            await end_of_first(self._leading.wait(), self._stop.wait())
            if not self._stop.is_set() and not await self._lead(api):
                await end_of_first(asyncio.sleep(_RESTART_S), self._stop.wait())

    async def _lead(self, api: Api) -> bool:
        """One term; whether it ended as it should."""
        self._lost.clear()
        term = Term(api, self._options, identity=self._identity, fence=self._may_write, figures=self.figures)
        self.figures.begin(term)
        try:
            await end_of_first(term.run(self._take_signals), self._lost.wait(), self._stop.wait())
        except NotLeading:
            _log.warning("not_leading", identity=self._identity)
        except Exception as error:
            _log.exception("term_broke", error=str(error))
            return False
        finally:
            self.figures.end()
        return self._lost.is_set() or self._stop.is_set()

    def _take_signals(self) -> None:
        if self._takes_signals:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                with suppress(ValueError):
                    loop.add_signal_handler(number, self._stop.set)
