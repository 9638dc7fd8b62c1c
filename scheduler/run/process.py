"""Puts the scheduler together from its settings, runs it, and takes it apart again in the right order.

Stopping: no more cycles; what was ordered is carried out, for a while; then the lease is given back, so that
the next one need not wait; last the watches end. A killed process needs none of this.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog

from volcano_py.client.api import Api
from volcano_py.crds.annotations import SERVED
from volcano_py.scheduler.cluster.feed import Feed
from volcano_py.scheduler.cluster.lease import Lease, own_identity
from volcano_py.scheduler.cluster.orders import Note, Subject
from volcano_py.scheduler.cluster.writer import Writer, WriterSettings
from volcano_py.scheduler.engine import SCHEDULER_NAMES
from volcano_py.scheduler.model.queues import DEFAULT_QUEUE
from volcano_py.scheduler.probes import Address, Web
from volcano_py.scheduler.run import collector
from volcano_py.scheduler.run.carry import Carrier, EvictionStyle
from volcano_py.scheduler.run.following import DeviceConfigs, feed_for
from volcano_py.scheduler.run.health import Health
from volcano_py.scheduler.run.journal import Journal
from volcano_py.scheduler.run.loop import Loop, Pacing
from volcano_py.scheduler.run.metrics import Metrics, Sample
from volcano_py.scheduler.run.reload import ConfigFile, Configured
from volcano_py.scheduler.run.replay import last_cycle
from volcano_py.scheduler.run.triggers import Triggers
from volcano_py.scheduler.run.worker import Worker

COMPONENT: Final = "volcano-py"
_CONFIG_POLL_S: Final = 1.0

_log = structlog.get_logger("scheduler")


@dataclass(frozen=True, slots=True)
class Election:
    """Leader election; times in seconds."""

    elect: bool = True
    namespace: str = "volcano-system"
    name: str = "volcano-py"
    duration_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """Where the journal is written; ``size`` in bytes."""

    folder: Path
    size: int = 256 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the command line says.

    Attributes:
        server: address of the API server, whatever the kubeconfig says.
        default_queue: of groups that name none.
        drain_s: how long the end waits for orders on their way.
    """

    kubeconfig: str | None = None
    context: str | None = None
    server: str | None = None
    config: Path | None = None
    scheduler_names: tuple[str, ...] = SCHEDULER_NAMES
    default_queue: str = DEFAULT_QUEUE
    pacing: Pacing = field(default_factory=Pacing)
    election: Election = field(default_factory=Election)
    evictions: EvictionStyle = field(default_factory=EvictionStyle)
    writer: WriterSettings = field(default_factory=WriterSettings)
    listen: Address | None = None
    health: Address | None = None
    journal: JournalSettings | None = None
    drain_s: float = 10.0


def boot_seconds() -> float:
    """Seconds that never go back and that pass while the machine sleeps, unlike monotonic ones on Linux."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


async def run_scheduler(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT.

    Raises:
        ConfigError: the configuration can't be carried out.
        AccessError: there is no server to reach.
        OSError: an address is taken, or the journal's folder can't be written to.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        connecting = Api.connect(settings.kubeconfig, settings.context, server=settings.server)
        api = await stack.enter_async_context(await connecting)
        await _Scheduler(settings, api, stop).run()


class _Scheduler:
    """One process's parts."""

    def __init__(self, settings: Settings, api: Api, stop: asyncio.Event) -> None:
        self._settings, self._stop = settings, stop
        self._file = ConfigFile(settings.config)
        first = self._file.first()
        self._metrics = Metrics()
        collector.watch(self._metrics)
        identity = own_identity()
        election = settings.election
        self._lease = Lease(
            api,
            namespace=election.namespace,
            name=election.name,
            identity=identity,
            duration_s=election.duration_s,
            renew_s=election.renew_s,
            retry_s=election.retry_s,
            clock=boot_seconds,
            notes={SERVED: ",".join(settings.scheduler_names)},
        )
        self._feed = feed_for(api, first.config)
        self._device_configs = DeviceConfigs(self._feed, first.config)
        self._writer = Writer(
            api, fence=self.leads, component=COMPONENT, instance=identity, settings=settings.writer
        )
        journal = settings.journal
        self._worker = Worker(
            first,
            settings.scheduler_names,
            Carrier(settings.evictions, identity, settings.pacing.period_s),
            Triggers(settings.pacing.period_s),
            self._metrics,
            None if journal is None else Journal(journal.folder, journal.size),
            0 if journal is None else last_cycle(journal.folder),
            settings.default_queue,
        )
        self._health = Health(config_trouble=self._trouble)
        self._loop = Loop(self._feed, self._writer, self._worker, self.leads, self._health, settings.pacing)
        self._web = Web(self._health.alive, self._health.ready, self._metrics.text)
        self._metrics.config_ok.set(1.0)
        self._metrics.watch(self._samples)
        self._metrics.watch(self._worker.figures.samples)

    def leads(self) -> bool:
        """Whether we may decide and write at this very moment."""
        return not self._settings.election.elect or self._lease.held

    async def run(self) -> None:
        """Run until told to stop, or until a part breaks."""
        await self._web.start(self._settings.listen, self._settings.health)
        _log.info("started", addresses=[f"{host}:{port}" for host, port in self._web.bound])
        aside = [self._feed.run(), self._watch_config(), self._watch_refusals()]
        if self._settings.election.elect:
            aside.append(self._lease.run(self._loop.nudge, self._lost))
        tasks = [asyncio.ensure_future(one) for one in aside]
        turning = asyncio.ensure_future(self._loop.run(self._stop))
        try:
            await _first_to_break(turning, tasks)
        finally:
            await self._take_apart(turning, tasks)

    async def _take_apart(self, turning: asyncio.Future[None], tasks: Sequence[asyncio.Future[None]]) -> None:
        self._stop.set()
        with suppress(Exception):
            await asyncio.wait_for(asyncio.shield(turning), self._settings.drain_s)
        drained = await self._writer.drain(self._settings.drain_s) if self.leads() else False
        await self._writer.close()
        for task in (*tasks, turning):
            task.cancel()
        await asyncio.gather(*tasks, turning, return_exceptions=True)
        await self._loop.close()
        await self._web.stop()
        _log.info("stopped", drained=drained)

    def _lost(self) -> None:
        self._loop.nudge()

    # -- the configuration file -----------------------------------------------------------------

    async def _watch_config(self) -> None:
        """Bring what the file says into force whenever it says something else."""
        told, coming = "", None
        while True:
            await asyncio.sleep(_CONFIG_POLL_S)
            found = self._file.changed()
            if found is not None:
                coming = found
                self._device_configs.expect(found.config)
            if coming is not None and self._device_configs.is_read:
                self._bring_in(coming)
                coming = None
            if self._trouble() != told:
                told = self._trouble()
                self._metrics.config_ok.set(0.0 if told else 1.0)
                self._tell_of_config(told)

    def _bring_in(self, config: Configured) -> None:
        self._loop.configure(config)
        self._device_configs.turn()
        self._metrics.config_reloads.inc()
        _log.info("config_reloaded", file=str(self._file.path))

    def _trouble(self) -> str:
        """Why what the file says is not in force."""
        return self._file.trouble or self._device_configs.trouble

    async def _watch_refusals(self) -> None:
        """Log what the server does not let us say, which nobody sees otherwise."""
        told: tuple[str, ...] = ("", "", "")
        while True:
            await asyncio.sleep(_CONFIG_POLL_S)
            writer = self._writer
            stats = (writer.status_stats, writer.event_stats, writer.problems.stats)
            last = tuple(one.last_refusal for one in stats)
            for what, before, now in zip(("status", "event", "problem"), told, last, strict=True):
                if now != before:
                    _log.warning("write_refused", what=what, error=now)
            told = last

    def _tell_of_config(self, trouble: str) -> None:
        if not trouble:
            _log.info("config_mended", file=str(self._file.path))
            return
        _log.error("config_refused", file=str(self._file.path), error=trouble)
        message = f"{self._file.path} is not in force, the last good configuration is: {trouble}"
        self._writer.events.note(
            self._self(), Note("ConfigRefused", message, warning=True, action="Reloading")
        )

    def _self(self) -> Subject:
        """What events about the scheduler itself are about: its pod, else its lease."""
        name, namespace = os.environ.get("POD_NAME", ""), os.environ.get("POD_NAMESPACE", "")
        if name and namespace:
            return Subject("Pod", namespace, name, os.environ.get("POD_UID", ""))
        election = self._settings.election
        return Subject("Lease", election.namespace, election.name, "")

    # -- what others count ----------------------------------------------------------------------

    def _samples(self) -> Iterator[Sample]:
        yield "volcano_py_leader", "1 while this process leads.", (), [((), float(self.leads()))]
        yield from _feed_samples(self._feed)
        yield from _writer_samples(self._writer)


async def _first_to_break(turning: asyncio.Future[None], tasks: Iterable[asyncio.Future[None]]) -> None:
    """Until *turning* ends or one of *tasks* does, which none of them ought to; its exception is raised."""
    done, _ = await asyncio.wait([turning, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for one in done:
        one.result()


def _feed_samples(feed: Feed) -> Iterator[Sample]:
    kinds = feed.stats.kinds
    fields: tuple[tuple[str, str, Callable[[str], float]], ...] = (
        ("volcano_py_feed_objects", "Objects known, by kind.", lambda kind: kinds[kind].objects),
        ("volcano_py_feed_events_total", "Watch events, by kind.", lambda kind: kinds[kind].events),
        ("volcano_py_feed_relists_total", "Lists after the first.", lambda kind: kinds[kind].relists),
        ("volcano_py_feed_drops_total", "Watches and lists that failed.", lambda kind: kinds[kind].drops),
        ("volcano_py_feed_unreadable_total", "Objects with faults.", lambda kind: kinds[kind].unreadable),
        ("volcano_py_feed_up", "1 while the kind is watched.", lambda kind: kinds[kind].state == "watching"),
    )
    for name, meaning, read in fields:
        yield name, meaning, ("kind",), [((kind,), float(read(kind))) for kind in kinds]
    yield "volcano_py_feed_merged_total", "Changes overtaken unread.", (), [((), float(feed.stats.merged))]


def _writer_samples(writer: Writer) -> Iterator[Sample]:
    stats, statuses, events = writer.stats, writer.status_stats, writer.event_stats
    counts = [
        (("bound",), float(stats.bound)),
        (("bind_failed",), float(stats.bind_failed)),
        (("evicted",), float(stats.evicted)),
        (("evict_failed",), float(stats.evict_failed)),
    ]
    yield "volcano_py_orders_total", "Binds and evictions by how they ended.", ("outcome",), counts
    waiting = [
        (("bind",), float(stats.binding)),
        (("evict",), float(stats.evicting)),
        (("notice",), float(stats.under_notice)),
    ]
    yield "volcano_py_orders_in_flight", "Binds and evictions on their way.", ("kind",), waiting
    said = [(("written",), float(statuses.written)), (("overtaken",), float(statuses.overtaken))]
    yield (
        "volcano_py_statuses_total",
        "Statuses written.",
        ("result",),
        [*said, (("refused",), float(statuses.refused))],
    )
    told = [
        (("written",), float(events.written)),
        (("repeated",), float(events.repeated)),
        (("dropped",), float(events.dropped)),
        (("refused",), float(events.refused)),
    ]
    yield "volcano_py_events_total", "Events.", ("result",), told
