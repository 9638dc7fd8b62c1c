"""The node agent as a whole: what runs beside what, from start to end.

Everything it knows it learns again after a start: cards from the driver and the node's annotations, pods from
the API server, holdings from the kubelet, slices from their folders.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from volcano_py.client.api import Api, ApiError, Unreachable
from volcano_py.crds.cards.errors import WireError
from volcano_py.crds.cards.lending import NOTHING, lent_percent
from volcano_py.crds.cards.register import AWAY, CORDON, HAMI_HANDSHAKE, away_since
from volcano_py.shim.agent.answers import Host, grant, write_cdi
from volcano_py.shim.agent.books import Room
from volcano_py.shim.agent.cards import Cards
from volcano_py.shim.agent.collect import Collector
from volcano_py.shim.agent.desk import Denied, Desk
from volcano_py.shim.agent.follow import Follower
from volcano_py.shim.agent.handing import Machine
from volcano_py.shim.agent.health import Health
from volcano_py.shim.agent.install import install
from volcano_py.shim.agent.keeper import Keeper, Watch
from volcano_py.shim.agent.libraries import Libraries
from volcano_py.shim.agent.metrics import SliceMetrics
from volcano_py.shim.agent.migdriver import MigDriver
from volcano_py.shim.agent.nvml import Card, Driver
from volcano_py.shim.agent.options import Options
from volcano_py.shim.agent.plugin import DevicePlugin
from volcano_py.shim.agent.pods import Node, Pod
from volcano_py.shim.agent.publish import (
    RECOVERED,
    Publisher,
    listed,
    notes_for,
    published,
    reports,
)
from volcano_py.shim.agent.slices import Slices
from volcano_py.shim.agent.tenants import Tenant, tenants_of
from volcano_py.shim.agent.truth import event
from volcano_py.shim.agent.view import Sources
from volcano_py.shim.agent.vitals import Vitals
from volcano_py.shim.agent.wire import deviceplugin_pb2 as wire
from volcano_py.shim.agent.wire.services import HEALTHY, UNHEALTHY

_WHOLE_CORES: Final = 100
_SAID_AGAIN_S: Final = 60.0


class Agent:
    """Runs on one node. Make it and :meth:`run` it in the same event loop.

    Args:
        driver, cutter: in place of NVML.

    Raises ``InstallError``, ``CgroupError`` and ``OSError`` where the host's folders can't be used.
    """

    def __init__(
        self,
        options: Options,
        server: Api,
        driver: Driver | None = None,
        cutter: MigDriver | None = None,
    ) -> None:
        self._options, self._server = options, server
        self._library = install(options.library, options.hook, options.region_fault)
        self._slices = Slices(options.hook / "slices")
        self._slices.load()
        self._log = structlog.get_logger()
        health = Health(options.paces.quiet, options.ignored_xids)
        self._cutter = cutter or MigDriver(options.capabilities, options.devices / "nvidia-caps")
        self.cards = Cards(
            driver or Driver(options.nvml), self._cutter, health, options.cut, self._cards_changed
        )
        self._nodes = Follower(
            server, "/api/v1/nodes", f"metadata.name={options.node}", Node, self._node_changed
        )
        self._pods = Follower(server, "/api/v1/pods", f"spec.nodeName={options.node}", Pod, _nothing)
        self.publisher = Publisher(server, options.node, self._notes, self._wanted)
        self.desk = Desk(
            self._sources(), server, self._pods, self._slices, self.machine, lambda: self._notes() or {}
        )
        self._collector = Collector(self._slices, options.cdi, self._cutter.end)
        self._libraries = Libraries(options.hook, self._library, self._slices, options.paces.libraries)
        folder = options.kubelet / "device-plugins"
        self.plugins = [
            DevicePlugin(resource, folder, self.desk, self._devices, self._denied, self.publisher.look)
            for resource in options.resources
        ]
        self.vitals = Vitals(self._count)
        self._looked = self._begun = False
        self._leaving = ""
        self.keeper = self._make_keeper(options.watch)
        self._denials = 0
        self._said: dict[tuple[str, str], float] = {}
        self._background: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Do everything until cancelled; then the node says so before the kubelet loses its devices."""
        work = asyncio.ensure_future(self._work())
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            await self._leave()
            raise
        finally:
            work.cancel()
            await asyncio.wait({work})

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            for work in (self._nodes.run(), self._pods.run(), self.publisher.run(), self._begin(group)):
                group.create_task(work)

    # -- how it stands, for probes ----------------------------------------------------------------

    def ready(self) -> str:
        """What keeps the agent from its work; "" if nothing does."""
        if not self._nodes.synced.is_set() or not self._pods.synced.is_set():
            return "the API server was not read yet"
        waiting = [each.resource for each in self.plugins if not each.is_registered()]
        if waiting:
            return f"not registered at the kubelet: {', '.join(waiting)}"
        return "" if self.cards.known else "no cards"

    def metrics(self) -> bytes:
        """All metrics in Prometheus' text form."""
        return self.vitals.text()

    def _count(self) -> dict[str, float]:
        return {
            "cards": len(self.cards.known),
            "cards_unwell": len(self.cards.health.troubles()),
            "slices": len(self._slices.all()),
            "registrations": sum(plugin.registered for plugin in self.plugins),
            "denials": self._denials,
            "publications": self.publisher.writes,
            "publication_failures": self.publisher.failures,
        }

    def machine(self) -> Machine:
        """This machine as it is now."""
        known = self.cards.all()
        options = self._options
        return Machine(
            host=Host(
                hook=options.hook,
                devices=options.devices,
                cdi=options.cdi,
                minors={card.uuid: card.minor for card in known},
                oversubscribed=options.cut.memory_scaling > 1 or self._lent() > NOTHING,
            ),
            rooms={card.uuid: self._room(card) for card in known},
            mig=frozenset(card.uuid for card in known if card.mig),
            library=self._library,
            cutter=self._cutter,
        )

    def _lent(self) -> int:
        """Percent of the cards that the node's people let be handed out; what can't be read lends nothing."""
        try:
            return lent_percent(self._notes() or {})
        except WireError:
            return NOTHING

    def _room(self, card: Card) -> Room:
        cut = self._options.cut
        shares = cut.shares(card, self.cards.profiles.get(card.uuid, ()))
        # Percents of instances are rounded up, so together they may come to more than all.
        if card.mig:
            return Room(shares, cut.memory_mib(card), 2 * _WHOLE_CORES)
        return Room(shares, cut.memory_mib(card), _WHOLE_CORES, self._lent())

    # -- the end ------------------------------------------------------------------------------------

    async def _leave(self) -> None:
        """Nothing new is placed here from now on, and who was placed before still gets its cards.

        A pod that comes to the kubelet when no device plugin is there is refused for good.
        """
        if self._notes() is None or not self._is_served():
            return
        self._leaving = away_since(datetime.now(UTC))
        try:
            async with asyncio.timeout(self._options.paces.server):
                await self.publisher.say({HAMI_HANDSHAKE: self._leaving})
        except (ApiError, Unreachable, TimeoutError) as error:
            self._log.warning("the node does not say that its agent goes", error=str(error))
            return
        await self._serve_the_last()

    async def _serve_the_last(self) -> None:
        """Stay while pods come whose bind was under way, and wait for their cards."""
        paces, loop = self._options.paces, asyncio.get_running_loop()
        end = loop.time() + paces.patience
        await asyncio.sleep(paces.linger)
        while loop.time() < end:
            try:
                if not (await self.desk.reconcile()).unserved():
                    return
            except Denied as error:
                self._log.warning("it is not known who waits", error=str(error))
                return
            await asyncio.sleep(paces.kubelet / 5)

    def _is_served(self) -> bool:
        """Whether the kubelet has known us: before, and without it, nobody would hand out a card."""
        return all(plugin.registered for plugin in self.plugins)

    # -- beginning, and what goes on ---------------------------------------------------------------

    async def _begin(self, group: asyncio.TaskGroup) -> None:
        """Know the cards, and if possible what was published of them, before the kubelet is told anything."""
        paces = self._options.paces
        await self.cards.look()
        self._looked = True
        self._node_changed()
        try:
            async with asyncio.timeout(paces.server):
                await self._nodes.synced.wait()
        except TimeoutError:
            self._log.warning("the API server does not answer; containers that have run may start again")
        self._write_cdi()
        work: list[Coroutine[Any, Any, None]] = [plugin.keep(paces.kubelet) for plugin in self.plugins]
        work += [self.cards.keep_looking(paces.cards), self.cards.listen()]
        work += [self._keep_true(paces.records), self._keep_clean(paces.slices)]
        work += [self.keeper.run()] if self.keeper is not None else []
        for each in work:
            group.create_task(each)

    async def _keep_true(self, every_s: float) -> None:
        """Records and marks follow what the kubelet holds: soon after it asked us, else now and then."""
        while True:
            self.desk.unmarked.clear()
            await self._tried(self.desk.reconcile, "records were not looked at")
            with suppress(TimeoutError):
                async with asyncio.timeout(every_s):
                    await self.desk.unmarked.wait()
                await asyncio.sleep(self._options.paces.kubelet / 5)  # the kubelet writes it down first

    async def _keep_clean(self, every_s: float) -> None:
        """Slices that nobody has any more go."""
        while True:
            await asyncio.sleep(every_s)
            await self._tried(self._clean, "slices were not looked at")

    async def _clean(self) -> None:
        if not self._pods.synced.is_set():
            return
        for owner in self._collector.collect(await self.desk.reconcile()):
            self._log.info("slice removed", slice=owner.id, pod=f"{owner.namespace}/{owner.pod}")
        for name in self._libraries.collect(asyncio.get_running_loop().time()):
            self._log.info("old library removed", file=name)

    async def _tried(self, work: Callable[[], Coroutine[Any, Any, Any]], what: str) -> None:
        """Whatever breaks one look ends no later one: the rest of the agent goes on."""
        try:
            await work()
        except (Denied, OSError) as error:
            self._log.warning(what, error=str(error))
        except Exception:
            self._log.exception(what)

    def _write_cdi(self) -> None:
        """Folders of CDI files may not outlive a boot; slices do."""
        cdi = self._options.cdi
        if cdi is not None:
            host = self.machine().host
            for owner in self._slices.all():
                write_cdi(owner, grant(owner, host), cdi)

    # -- the node ----------------------------------------------------------------------------------

    def _sources(self) -> Sources:
        kubelet = self._options.kubelet
        return Sources(
            self._options.node,
            self._options.resources,
            kubelet / "pod-resources" / "kubelet.sock",
            kubelet / "device-plugins",
        )

    def _notes(self) -> Mapping[str, str] | None:
        node = next(iter(self._nodes.objects.values()), None)
        return None if node is None else node.metadata.annotations

    def _wanted(self) -> dict[str, str | None] | None:
        notes = self._notes()
        if notes is None or not self._begun or not self._is_served():
            return None
        found = reports(
            self.cards.all(), self.cards.health.troubles(), self._options.cut, self.cards.profiles
        )
        wanted = notes_for(found, self.cards.scores, listed(notes, CORDON))
        if self._leaving or notes.get(HAMI_HANDSHAKE, "").startswith(AWAY):
            wanted[HAMI_HANDSHAKE] = self._leaving or None
        return wanted if RECOVERED not in notes else {**wanted, RECOVERED: None}

    def _node_changed(self) -> None:
        notes = self._notes()
        if notes is None or not self._looked:
            return
        if not self._begun:
            self.cards.remember({report.uuid: report for report in published(notes)})
            self._begun = True
        self.cards.recovered(listed(notes, RECOVERED))
        self.publisher.look()

    def _cards_changed(self) -> None:
        self.publisher.look()
        for plugin in self.plugins:
            self._beside(plugin.devices_changed())

    def _devices(self) -> list[wire.Device]:
        unwell = self.cards.health.troubles()
        devices = []
        for card in self.cards.all():
            topology = wire.TopologyInfo(nodes=[wire.NUMANode(ID=card.numa)]) if card.numa >= 0 else None
            health = UNHEALTHY if card.uuid in unwell else HEALTHY
            devices += [
                wire.Device(ID=f"{card.uuid}-{number}", health=health, topology=topology)
                for number in range(self._room(card).slots)
            ]
        return devices

    # -- pods --------------------------------------------------------------------------------------

    def _make_keeper(self, watch: Watch | None) -> Keeper | None:
        """What holds containers from outside, its figures among our metrics."""
        if watch is None:
            return None
        keeper = Keeper(watch, self._tenants, self._tell)
        self.vitals.registry.register(SliceMetrics(keeper, self._options.node, self.cards.health.troubles))
        return keeper

    def _tenants(self) -> tuple[Tenant, ...]:
        return tenants_of(self._slices.all(), self._pods.objects, self._slices.region)

    async def _tell(self, tenant: Tenant, reason: str, text: str) -> None:
        pod = self._pods.objects.get(tenant.pod_uid)
        if pod is not None:
            await self._say(pod, reason, text)

    def _denied(self, denial: Denied) -> None:
        """People look at the pod: a denial that concerns one stands there, once a minute at most."""
        self._denials += 1
        if denial.pod is None:
            return
        now = asyncio.get_running_loop().time()
        self._said = {key: at for key, at in self._said.items() if now - at < _SAID_AGAIN_S}
        if self._said.setdefault((denial.pod.uid, str(denial)), now) == now:
            self._beside(self._say(denial.pod, "CardDenied", str(denial)))

    async def _say(self, pod: Pod, reason: str, note: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        path = f"/api/v1/namespaces/{pod.metadata.namespace}/events"
        try:
            await self._server.post(path, event(pod, self._options.node, reason, note, now))
        except (ApiError, Unreachable) as error:
            self._log.warning("an event was not written", error=str(error))

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _nothing() -> None:
    """Pods are looked at when the kubelet asks."""
