"""A whole cluster on one machine: API server, pretend kubelets, controllers, scheduler as child processes.

The server comes first and goes last. What stands in the cluster is its affair; here is only who runs. Jobs,
Deployments and volumes, which on other servers have a controller manager, are kept by this process itself.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from volcano_py.client.api import RESOURCES, Api, ApiError
from volcano_py.simulator.kubelet.nodes import NodeShape
from volcano_py.simulator.kubelet.play import PLAYING
from volcano_py.simulator.playground import readiness
from volcano_py.simulator.playground.folder import Folder, PlaygroundError, any_port
from volcano_py.simulator.playground.parts import Part, PartSpec
from volcano_py.simulator.volumes.keeping import keep_volumes
from volcano_py.simulator.volumes.plan import playground_class
from volcano_py.simulator.workloads.keeping import keep_workloads

VOLCANO_PY: Final = (sys.executable, "-m", "volcano_py.cli.main")
SYSTEM: Final = "volcano-system"
_SPARING: Final = ("--leases-per-second", "10")
"""Nobody here judges nodes by their leases, and 1,000 nodes that renew as kubelets do, every 10 s, cost
the server 3.5 s of CPU a minute and their own process 3.0. This is 0.45 and 0.37, however many nodes there
are; up to 100 of them still renew every 10 s."""
STORAGE_CLASS: Final = "playground"
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What kind of playground.

    Attributes:
        nodes: how many.
        shape: what each has.
        data: the folder that keeps it; None: a temporary one.
        port: of the API server; 0: the last one used there, or any.
        kubeconfig: where it is written; None: into the folder.
    """

    nodes: int = 4
    shape: NodeShape = field(default_factory=NodeShape)
    data: Path | None = None
    port: int = 0
    kubeconfig: Path | None = None


class Playground:
    """A playground: ``up``, then ``watch`` until it is enough, then ``down``.

    Attributes:
        folder: its folder.
        kubeconfig: for any client.
        metrics: where parts serve /metrics, /healthz and /readyz, by name.
    """

    def __init__(self, wishes: Wishes, tell: Tell) -> None:
        """Take the folder. Raises ``PlaygroundError`` where that can't be had."""
        self.kubeconfig = _writable(wishes.kubeconfig)
        self.folder = Folder.take(wishes.data)
        self.kubeconfig = self.kubeconfig or self.folder.kubeconfig
        self.metrics: dict[str, str] = {}
        self._wishes = wishes
        self._tell = tell
        self._parts: list[Part] = []

    async def up(self) -> None:
        """Start all parts.

        Raises:
            PlaygroundError: the port is taken, or a part did not come up; what had started is stopped,
                and its logs are kept.
        """
        try:
            port = self.folder.port(self._wishes.port)
            await self._start(self._server(port), f"API server on https://127.0.0.1:{port}")
            await self._furnish()
            others = (self._kubelets(), self._component("controller"), self._component("scheduler"))
            async with asyncio.TaskGroup() as group:
                for spec in others:
                    group.create_task(self._start(spec, self._line(spec.name)))
        except ExceptionGroup as errors:
            await self.down(keep=True)
            raise errors.exceptions[0] from None
        except BaseException as error:
            await self.down(keep=isinstance(error, PlaygroundError) and bool(self._parts))
            raise

    async def watch(self) -> None:
        """Start parts again that end, and keep workloads and volumes, until cancelled."""
        async with await Api.connect(str(self.kubeconfig)) as api, asyncio.TaskGroup() as group:
            group.create_task(keep_workloads(api))
            group.create_task(keep_volumes(api))
            for part in self._parts:
                group.create_task(part.keep(self._tell))

    async def down(self, *, keep: bool = False) -> None:
        """Stop all parts, the server last, and give the folder up; *keep* it even if it is temporary."""
        for part in self._parts:
            part.expect_end()
        if self._parts:
            server, *others = self._parts
            await asyncio.gather(*(part.stop() for part in others))
            await server.stop()
            self._parts = []
        self.folder.release(keep=keep)

    def pids(self) -> dict[str, int]:
        """The processes of the parts, by name."""
        return {part.spec.name: part.pid for part in self._parts if part.pid is not None}

    async def _furnish(self) -> None:
        """Make a storage class and the namespace of Leases; those in it are of processes that are gone."""
        space: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}
        async with await Api.connect(str(self._config())) as api:
            for document in (space, playground_class(STORAGE_CLASS)):
                try:
                    await api.post(RESOURCES[document["kind"]].path(), document)
                except ApiError as error:
                    if not error.is_exists:
                        raise
            await api.delete(RESOURCES["Lease"].path(SYSTEM))

    async def _start(self, spec: PartSpec, line: str) -> None:
        started = time.monotonic()
        part = Part(spec, self.folder.log(spec.name))
        self._parts.append(part)
        await part.start()
        self._tell(f"{line} ({time.monotonic() - started:.1f} s)")

    # -- the parts ------------------------------------------------------------------------------

    def _server(self, port: int) -> PartSpec:
        where = ["--data-dir", str(self.folder.state), "--port", str(port), *self._access()]
        argv = [sys.executable, "-m", "volcano_py.simulator.apiserver", *where]
        return PartSpec("apiserver", argv, lambda: readiness.serves(self._config()))

    def _kubelets(self) -> PartSpec:
        log = self.folder.log("kubelets")
        before = log.stat().st_size if log.exists() else 0

        async def is_ready() -> bool:
            return readiness.says(log, before, PLAYING)

        argv = [*VOLCANO_PY, "kubelets", *_SPARING, *self._access(), *self._node_words()]
        return PartSpec("kubelets", argv, is_ready)

    def _component(self, name: str) -> PartSpec:
        """The scheduler or the controllers."""
        port = any_port()
        self.metrics[name] = f"http://127.0.0.1:{port}"
        argv = [
            *VOLCANO_PY,
            name,
            *self._access(),
            "--listen-address",
            f"127.0.0.1:{port}",
        ]
        if name == "scheduler":
            argv += ["--healthz-address", "0"]
        return PartSpec(name, argv, lambda: readiness.is_ready(port))

    def _access(self) -> list[str]:
        return ["--kubeconfig", str(self._config())]

    def _config(self) -> Path:
        assert self.kubeconfig is not None
        return self.kubeconfig

    def _node_words(self) -> list[str]:
        shape, cards = self._wishes.shape, self._wishes.shape.cards
        words = {
            "nodes": self._wishes.nodes, "cpu": shape.cpu, "memory": shape.memory, "zones": shape.zones,
            "gpus": cards.count, "gpu-memory": cards.memory_mib, "gpu-slots": cards.slots,
            "gpu-model": cards.model, "gpu-family": cards.family,
        }  # fmt: skip
        return [word for name, value in words.items() for word in (f"--{name}", str(value))]

    def _line(self, name: str) -> str:
        """What is said when a part is there."""
        cards = self._wishes.shape.cards.count
        return {
            "kubelets": f"{self._wishes.nodes} pretend nodes" + (f" of {cards} cards each" if cards else ""),
            "controller": "controllers of PodGroups and queues",
            "scheduler": "scheduler, for pods with schedulerName volcano-py or volcano",
        }[name]


def _writable(kubeconfig: Path | None) -> Path | None:
    """*kubeconfig*, unless somebody else's stands there. Raises ``PlaygroundError`` then."""
    if kubeconfig is None:
        return None
    if kubeconfig.exists() and "https://127.0.0.1:" not in kubeconfig.read_text(errors="replace"):
        raise PlaygroundError(f"{kubeconfig} is another cluster's kubeconfig; say another --kubeconfig")
    return kubeconfig.absolute()


__all__ = ["Playground", "PlaygroundError", "Wishes"]
