"""A node for a test: the embedded API server, a kubelet, and an agent, all in one event loop."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tests.agent.driver import PretendCutter, PretendDriver, card
from tests.agent.kubelet import Admitted, Kubelet
from volcano_py.client.api import Api
from volcano_py.crds.cards import records
from volcano_py.crds.cards.records import Keys, Part
from volcano_py.shim.agent.agent import Agent
from volcano_py.shim.agent.nvml import Card
from volcano_py.shim.agent.options import Options, Paces
from volcano_py.shim.agent.region import Region, read
from volcano_py.shim.agent.slices import OWNER
from volcano_py.simulator.apiserver.serving import EmbeddedServer

Document = dict[str, Any]
NODE: Final = "n1"
GPU: Final = "nvidia.com/gpu"
VGPU: Final = "volcano.sh/vgpu-number"
ANY: Final = "volcano-py.io/accelerator"
PODS: Final = "/api/v1/namespaces/default/pods"
WAIT_S: Final = 60.0
CASE_S: Final = 300.0
FAST: Final = Paces(cards=0.05, kubelet=0.05, records=0.2, slices=0.1, quiet=0.2, linger=0, patience=0)


class NodeUnderTest:
    """What a case works with.

    Attributes:
        api: the API server, as an administrator.
        agent: the one that runs.
    """

    def __init__(self, api: Api, kubelet: Kubelet, driver: PretendDriver, options: Options) -> None:
        self.api, self.kubelet, self.driver, self.options = api, kubelet, driver, options
        self.cutter = PretendCutter()
        self.agent: Agent
        self._running: asyncio.Task[None] | None = None
        self._pods = 0

    async def start(self) -> None:
        """Start the agent; returns when the kubelet knows its devices."""
        self.agent = Agent(self.options, self.api, self.driver, self.cutter)
        self._running = asyncio.ensure_future(self.agent.run())
        await self.kubelet.until_registered(*self.options.resources)

    async def stop(self) -> None:
        """End the agent; raises what it broke with."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.wait({running}, timeout=WAIT_S)
            assert running.done(), f"the agent does not end: {[*map(str, asyncio.all_tasks())]}"
            if not running.cancelled():
                running.result()

    async def restart(self) -> None:
        """End the agent and start another one with nothing in its memory."""
        await self.stop()
        await self.kubelet_loses()
        await self.start()

    async def kubelet_loses(self) -> None:
        """Wait until the kubelet has noticed that the plugins are gone."""
        await until(lambda: not self.kubelet.endpoints, "endpoints gone")

    # -- pods -------------------------------------------------------------------------------------

    async def bind(self, name: str, spec: Document, notes: dict[str, str] | None = None) -> Document:
        """A pod as it is after its bind to this node."""
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "annotations": notes or {}},
            "spec": {**spec, "nodeName": NODE},
        }
        created: Document = await self.api.post(PODS, document)
        return created

    async def sliced(self, name: str, *parts: Part, resource: str = GPU, **notes: str) -> Document:
        """A pod of one container whose record gives it *parts*, bound after those before it."""
        keys = records.VOLCANO if resource == VGPU else records.HAMI
        return await self.bind(
            name,
            {"containers": [container("main", {resource: len(parts)})]},
            self.record(keys, [parts]) | notes,
        )

    def record(self, keys: Keys, segments: Sequence[Sequence[Part]]) -> dict[str, str]:
        """Annotations of a record, a second younger than the last one."""
        self._pods += 1
        text = records.encode(segments, terminated=keys == records.HAMI)
        at = str(1_700_000_000 + self._pods)
        return {
            keys.node: NODE,
            keys.time: at,
            keys.allocated: text,
            keys.to_allocate: text,
            keys.phase: "allocating",
            keys.bind_time: at,
        }

    async def pod(self, name: str) -> Document:
        """The pod as it is."""
        found: Document = await self.api.get(f"{PODS}/{name}")
        return found

    async def note(self, name: str, key: str) -> str:
        """An annotation of a pod, "" without."""
        found = await self.pod(name)
        return str(found["metadata"].get("annotations", {}).get(key, ""))

    async def until_note(self, name: str, key: str, value: str) -> None:
        """Wait until an annotation of a pod is *value*."""

        async def says() -> bool:
            return await self.note(name, key) == value

        await until(says, f"{key} of {name} is {value!r}")

    async def delete(self, name: str) -> None:
        """Delete a pod, at once."""
        await self.api.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})

    async def run(self, pod: Document, name: str = "main") -> Admitted:
        """The pod is admitted and its container *name* starts."""
        admitted = await self.kubelet.admit(pod)
        await self.kubelet.start_container(admitted, name)
        return admitted

    # -- what is seen -----------------------------------------------------------------------------

    def owners(self) -> list[Document]:
        """All ``owner.json``, in the order in which they were made."""
        found = [json.loads(path.read_text()) for path in self.options.hook.glob(f"slices/*/{OWNER}")]
        return sorted(found, key=lambda owner: int(owner["sequence"]))

    def region(self, admitted: Admitted, name: str = "main") -> Region:
        """The region that is mounted into a container."""
        mounts = {mount.container_path: mount.host_path for mount in admitted.answers[name].mounts}
        return read(mounts["/usr/local/vgpu/slice/region"])

    async def node_notes(self) -> dict[str, str]:
        """Annotations of the node."""
        found = await self.api.get(f"/api/v1/nodes/{NODE}")
        return dict(found["metadata"].get("annotations", {}))

    async def events(self) -> list[Document]:
        """Events in the pods' namespace."""
        found = await self.api.get("/api/v1/namespaces/default/events")
        return [each for each in found["items"] if each["source"].get("component") == "volcano-py-agent"]

    async def patch_node(self, notes: dict[str, str | None]) -> None:
        """Change annotations of the node."""
        await self.api.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"annotations": notes}})


@asynccontextmanager
async def node(
    place: Path,
    cards: Sequence[Card] = (card(0), card(1)),
    *,
    keeps_checkpoint: bool = True,
    started: bool = True,
    **options: Any,
) -> AsyncIterator[NodeUnderTest]:
    """A node with *cards*; *options* replace fields of ``Options``."""
    library = place / "libvgpu.so"
    library.write_bytes(b"quota")
    config = place / "config"
    # Addresses of unix sockets are short, folders of tests are not.
    with tempfile.TemporaryDirectory(prefix="vpy-") as short:
        async with EmbeddedServer(crds=False) as apiserver:
            apiserver.write_kubeconfig(config)
            async with await Api.connect(str(config)) as api:
                await api.post(
                    "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
                )
                kubelet = Kubelet(Path(short), keeps_checkpoint=keeps_checkpoint)
                await kubelet.start()
                base = Options(
                    NODE,
                    library,
                    kubelet=kubelet.folder,
                    hook=place / "vgpu",
                    devices=place / "dev",
                    paces=FAST,
                )
                under_test = NodeUnderTest(api, kubelet, PretendDriver(cards), replace(base, **options))
                try:
                    if started:
                        await under_test.start()
                    async with asyncio.timeout(CASE_S):  # rather than for ever
                        yield under_test
                finally:
                    await under_test.stop()
                    await kubelet.stop()


async def until(holds: Callable[[], Any], what: str) -> Any:
    """Ask *holds* again and again until it is true; it may be a coroutine function."""
    end = asyncio.get_running_loop().time() + WAIT_S
    while True:
        value = holds()
        if asyncio.iscoroutine(value):
            value = await value
        if value:
            return value
        assert asyncio.get_running_loop().time() < end, f"not so after {WAIT_S:.0f} s: {what}"
        await asyncio.sleep(0.02)


def part(uuid: str, memory_mib: int = 4096, cores: int = 50) -> Part:
    """A share of a card."""
    return Part(uuid, "NVIDIA", memory_mib, cores)


def container(name: str, asks: dict[str, int], **more: Any) -> Document:
    """A container that asks for shares."""
    amounts = {resource: str(count) for resource, count in asks.items()}
    return {"name": name, "image": "busybox", "resources": {"limits": amounts, "requests": amounts}, **more}
