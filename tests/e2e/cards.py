"""A node with cards for end-to-end cases: stub driver, agent, a kubelet that runs pods as processes.

A container is a process under the real library, with the environment and the files that the agent's answer
gives it. It takes card memory until the driver refuses, says how much it got, and holds it until it is ended.
What really is on the cards is the stub driver's to say.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.agent.cgroup.hosts import Host
from tests.agent.kubelet import AdmissionError, Admitted, Kubelet, StartError
from tests.e2e import objects
from tests.e2e.cluster import Cluster
from tests.e2e.components import Component
from tests.e2e.live import Document
from tests.shim.harness import build_library
from tests.shim.stub import build
from tests.shim.stub.state import Card, Driver
from volcano_py.client.api import MERGE, ApiError
from volcano_py.crds.cards.register import HAMI_REGISTER
from volcano_py.shim.agent.cgroup.names import ContainerCgroup
from volcano_py.shim.agent.wire.deviceplugin_pb2 import ContainerAllocateResponse

GPU: Final = "nvidia.com/gpu"
NODE: Final = "g0"
CARD_MIB: Final = 4096
STEP_MIB: Final = 64
MIB: Final = 1 << 20
WAIT_S: Final = 120.0
_EVERY_S: Final = 0.1
_TWO: Final = (Card(memory_mib=CARD_MIB),) * 2
Names = tuple[str, str, str]
"""Of shares, MiB and percent."""
_HAMIS: Final = (GPU, "nvidia.com/gpumem", "nvidia.com/gpucores")
VOLCANOS: Final = ("volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores")
ANY_VENDORS: Final = (
    "volcano-py.io/accelerator",
    "volcano-py.io/accelerator-memory",
    "volcano-py.io/accelerator-core",
)
_UNEXPECTED: Final = (
    f"Allocate failed due to no healthy devices present; cannot allocate unhealthy devices {GPU}, "
    "which is unexpected"
)

TAKER: Final = f"""
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
device, context, block = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
for code in (cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0),
             cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device)):
    assert code == 0, code
got = 0
while got < 1 << 20:
    code = cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t({STEP_MIB << 20}))
    if code == 2:
        break
    assert code == 0, code
    got += {STEP_MIB}
print(got, flush=True)
sys.stdin.readline()
"""


@dataclass
class Running:
    """A pod that the kubelet has taken.

    Attributes:
        got_mib: what its process could take; None before it said so.
        trouble: why it does not start, for now.
    """

    admitted: Admitted
    process: asyncio.subprocess.Process | None = None
    got_mib: int | None = None
    trouble: str = ""
    cgroup: ContainerCgroup | None = None


@dataclass
class CardNode:
    """The node ``g0`` with its cards.

    Attributes:
        driver: the stub's state: the oracle.
        place: for the agent's files.
        running: by pod's UID.
        refused: reasons of pods that were not admitted, by name.
        strict: pods that come while no agent is there are refused for good, as by a real kubelet.
        reports: the node's amounts follow what the kubelet has.
        host: cgroups for the containers; None without.
    """

    cluster: Cluster
    driver: Driver
    kubelet: Kubelet
    place: Path
    library: Path
    running: dict[str, Running] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    strict: bool = False
    reports: bool = False
    host: Host | None = None

    def agent(self, *more: str, kubeconfig: Path | None = None) -> Component:
        """Start the agent, with *more* options; nobody is held by cgroups unless they say so."""
        options = [
            "--node-name",
            NODE,
            "--library",
            str(self.library),
            "--hook-path",
            str(self.place / "vgpu"),
        ]
        options += ["--kubelet-dir", str(self.kubelet.folder), "--device-dir", str(self.place / "dev")]
        options += ["--check-seconds", "0.5", "--collect-seconds", "0.5", "--listen-address", "127.0.0.1:0"]
        options += more or ["--no-keep"]
        return self.cluster.component("agent", *options, kubeconfig=kubeconfig)

    def until_registered(self) -> None:
        """Wait until the kubelet has the agent's devices, and schedulers can read of what cards they are.

        A pod that is placed before is placed as on a node without an agent of ours, and denied its cards.
        """
        self.cluster.call(self.kubelet.until_registered(GPU))
        self.cluster.until(self._is_published, what="cards published")

    def _is_published(self) -> bool:
        meta = (self.cluster.get("Node", NODE) or {}).get("metadata", {})
        return HAMI_REGISTER in meta.get("annotations", {})

    def pod(self, name: str, memory_mib: int, cores: int = 10, *, by: Names = _HAMIS) -> None:
        """Submit a pod that wants a slice, in words *by*; *memory_mib* 0 is a whole card."""
        share, memory, core = by
        asks = {"cpu": "10m", share: "1"}
        if memory_mib:
            asks |= {memory: str(memory_mib), core: str(cores)}
        space = self.cluster.space
        self.cluster.create(
            objects.group(space, name, 1), objects.pod(space, name, group=name, requests=asks)
        )

    def delete(self, name: str) -> None:
        """Ask for a pod's end; it is gone when its process is."""
        self.cluster.delete("PodGroup", f"{self.cluster.space}/{name}")
        self.cluster.delete("Pod", f"{self.cluster.space}/{name}", grace_s=30)

    @property
    def taken(self) -> list[Running]:
        """Who runs at this moment; others come and go on the loop's thread meanwhile."""
        return list(self.running.values())

    def one(self, name: str) -> Running:
        """The pod *name*, which has been taken."""
        return next(each for each in self.taken if each.admitted.name == name)

    def until_got(self, wanted: Mapping[str, int]) -> None:
        """Wait until just these pods run, each with all of its slice."""
        try:
            self.cluster.until(lambda: self.got() == wanted, what="all hold their slices")
        except AssertionError as error:
            logs = "\n".join(f"--- {each.name}\n{each.said()}" for each in self.cluster.components.values())
            raise AssertionError(f"{error}\n{self.state()}, wanted {wanted}\n{logs}") from None

    def state(self) -> str:
        """How it stands, for a failing test."""
        return f"got {self.got()}, troubles {self.troubles()}, refused {self.refused}"

    def got(self) -> dict[str, int]:
        """MiB that each pod's process could take, of those that run."""
        return {each.admitted.name: each.got_mib for each in self.taken if each.got_mib is not None}

    def names(self) -> set[str]:
        """Pods that were admitted."""
        return {each.admitted.name for each in self.taken}

    def troubles(self) -> dict[str, str]:
        """Why containers do not start, for now."""
        return {each.admitted.name: each.trouble for each in self.taken if each.trouble}

    def slices(self) -> list[str]:
        """Slices on disk."""
        return [path.name for path in (self.place / "vgpu" / "slices").glob("[!.]*")]

    # -- the kubelet's loop -----------------------------------------------------------------------

    async def live(self) -> None:
        """Run what is bound here, end what is deleted; for ever."""
        try:
            while True:
                await self._turn()
                await asyncio.sleep(_EVERY_S)
        finally:
            for each in self.taken:
                await _end(each)

    async def _turn(self) -> None:
        if self.reports:
            await self._report()
        path = f"/api/v1/namespaces/{self.cluster.space}/pods"
        here = {"fieldSelector": f"spec.nodeName={NODE}"}
        found = await self.cluster.asked("GET", path, query=here)
        pods = {pod["metadata"]["uid"]: pod for pod in found["items"]}
        for uid in self.running.keys() - pods.keys():
            await self._end(uid)
        for uid, pod in pods.items():
            if pod["metadata"].get("deletionTimestamp"):
                await self._end(uid)
                await self._remove(f"{path}/{pod['metadata']['name']}", uid)
            elif pod["status"].get("phase") != "Failed":
                await self._run(uid, pod)

    async def _remove(self, path: str, uid: str) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        try:
            await self.cluster.asked("DELETE", path, options)
        except ApiError as error:
            if not error.is_missing:
                raise

    async def _say(self, path: str, status: Document) -> None:
        await self.cluster.asked("PATCH", f"{path}/status", {"status": status}, content_type=MERGE)

    def _path(self, name: str) -> str:
        return f"/api/v1/namespaces/{self.cluster.space}/pods/{name}"

    async def _report(self) -> None:
        """Say how many shares there are, as a kubelet does: none are left when their plugin has gone."""
        there = self.kubelet.endpoints.get(GPU)
        amounts = {"allocatable": {GPU: str(len(there.devices) if there else 0)}}
        await self._say(f"/api/v1/nodes/{NODE}", amounts)

    async def _run(self, uid: str, pod: Document) -> None:
        if self.strict and uid not in self.running and GPU not in self.kubelet.endpoints:
            await self._refuse(pod, _UNEXPECTED)
            return
        if uid not in self.running and GPU in self.kubelet.endpoints:
            try:
                self.running[uid] = Running(await self.kubelet.admit(pod))
            except AdmissionError as error:
                if (
                    error.denied
                ):  # an agent that is not there says nothing about the pod, which is tried again
                    await self._refuse(pod, str(error))
        each = self.running.get(uid)
        if each is None or each.process is not None:
            return
        try:
            await self.kubelet.start_container(each.admitted, "main")
        except StartError as error:
            each.trouble = str(error)
            return
        each.trouble = ""
        await self._start(each)

    async def _refuse(self, pod: Document, why: str) -> None:
        self.refused[pod["metadata"]["name"]] = why
        status = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": why}
        await self._say(self._path(pod["metadata"]["name"]), status)

    async def _start(self, each: Running) -> None:
        environment = container_environment(each.admitted.answers["main"], os.environ)
        each.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-S",
            "-c",
            TAKER,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert each.process.stdout is not None
        async with asyncio.timeout(WAIT_S):
            line = await each.process.stdout.readline()
        each.got_mib = int(line)
        if self.host is not None:
            await self._contain(self.host, each)

    async def sleeper(self) -> asyncio.subprocess.Process:
        """A process that does nothing until it is ended."""
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec("cat", stdin=pipe, stdout=asyncio.subprocess.DEVNULL)

    async def _contain(self, host: Host, each: Running) -> None:
        """Put the container into a cgroup as the kubelet lays it out, and say in the status that it runs."""
        assert each.process is not None
        identity = uuid.uuid4().hex * 2
        path = f"{host.name}/kubepods/besteffort/pod{each.admitted.uid}/{identity}"
        each.cgroup = host.tree.layout.parse(path)
        assert each.cgroup is not None
        host.join(each.cgroup, each.process.pid)
        status = {
            "name": "main",
            "image": "busybox",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "containerID": f"containerd://{identity}",
            "state": {"running": {}},
        }
        running = {"phase": "Running", "containerStatuses": [status]}
        await self._say(self._path(each.admitted.name), running)

    async def cheat(self, name: str) -> asyncio.subprocess.Process:
        """A process in the container of pod *name* that goes round the library and takes the whole card."""
        each = self.one(name)
        environment = container_environment(each.admitted.answers["main"], os.environ)
        del environment["LD_PRELOAD"]
        pipe = asyncio.subprocess.PIPE
        cheat = await asyncio.create_subprocess_exec(
            sys.executable, "-S", "-c", TAKER, env=environment, stdin=pipe, stdout=pipe
        )
        assert self.host is not None
        assert each.cgroup is not None
        self.host.join(each.cgroup, cheat.pid)
        return cheat

    async def _end(self, uid: str) -> None:
        each = self.running.pop(uid, None)
        if each is not None:
            await _end(each)
            self.kubelet.forget(each.admitted)


async def _end(each: Running) -> None:
    if each.process is not None:
        with contextlib.suppress(ProcessLookupError):
            each.process.kill()
        await each.process.wait()


def container_environment(answer: ContainerAllocateResponse, base: Mapping[str, str]) -> dict[str, str]:
    """What a container runtime would make of *answer*, for a process that sees the host's files."""
    mounted = {mount.container_path: mount.host_path for mount in answer.mounts}
    given: dict[str, Any] = {name: mounted.get(value, value) for name, value in answer.envs.items()}
    # A container sees the cards whose nodes it has; here the driver is told.
    given["CUDA_VISIBLE_DEVICES"] = given["NVIDIA_VISIBLE_DEVICES"]
    preload = mounted.get("/etc/ld.so.preload")
    if preload is not None:
        named = Path(preload).read_text().split()
        given["LD_PRELOAD"] = " ".join(mounted[each] for each in named)
    return {**base, **given}


@contextlib.contextmanager
def card_node(
    cluster: Cluster, place: Path, cards: Sequence[Card] = _TWO, *, kind: type[CardNode] = CardNode
) -> Iterator[CardNode]:
    """A node of *cards*, its kubelet at work; scheduler and agent are for the case to start.

    ``STUB_DRIVER`` and ``LD_LIBRARY_PATH`` of this process are set meanwhile, and so of all that it starts.
    """
    short = Path(tempfile.mkdtemp(prefix="vpy-"))
    before = {name: os.environ.get(name) for name in ("STUB_DRIVER", "LD_LIBRARY_PATH")}
    with Driver.create(place / "cards", cards) as driver:
        os.environ.update(driver.environment(build.build()))
        (place / "dev").mkdir()
        node = kind(cluster, driver, Kubelet(short), place, build_library())
        try:
            cluster.create(_document(len(cards)))
            cluster.call(node.kubelet.start())
            cluster.background(node.live())
            yield node
        finally:
            cluster.end_background()
            cluster.call(node.kubelet.stop())
            shutil.rmtree(short, ignore_errors=True)
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def _document(cards: int) -> Document:
    node = objects.node(NODE)
    for amounts in ("allocatable", "capacity"):
        node["status"][amounts] = {**node["status"][amounts], GPU: str(10 * cards)}
    return node
