"""The kubelet's side of device plugins and PodResources, as far as an agent can tell.

Real protobufs over real unix sockets, a ledger of devices, and the checkpoint that is kept of it. Where a
plugin states no preference, or is not followed, devices are taken in an order that nobody would guess.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc

from volcano_py.shim.agent.wire import deviceplugin_pb2 as wire
from volcano_py.shim.agent.wire import podresources_pb2 as resources
from volcano_py.shim.agent.wire import services

Document = dict[str, Any]
WAIT_S: Final = 60.0
_INIT: Final = "init"
_Context = grpc.aio.ServicerContext[Any, Any]


class AdmissionError(Exception):
    """The pod would end as Failed with UnexpectedAdmissionError.

    Attributes:
        denied: the plugin said so; else there was none to ask, or it broke off.
    """

    def __init__(self, message: str, *, denied: bool = False) -> None:
        super().__init__(message)
        self.denied = denied


class StartError(Exception):
    """The container would wait with CreateContainerError."""


@dataclass
class Endpoint:
    """A plugin that registered."""

    channel: grpc.aio.Channel
    options: wire.DevicePluginOptions
    devices: dict[str, str] = field(default_factory=dict)
    updates: int = 0
    watching: asyncio.Task[None] | None = None


@dataclass
class Admitted:
    """A pod that the kubelet knows."""

    uid: str
    namespace: str
    name: str
    containers: list[tuple[str, str, dict[str, int]]]
    held: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    answers: dict[str, wire.ContainerAllocateResponse] = field(default_factory=dict)


class Kubelet:
    """One node's kubelet.

    Attributes:
        folder: its own, with ``device-plugins`` and ``pod-resources`` in it.
        follows_preference: whether a plugin's preference counts.
        keeps_checkpoint: whether a checkpoint is written.
        endpoints: by resource.
        pods: by UID.
        registrations: (resource, endpoint) of all that came.
    """

    def __init__(self, folder: Path, *, keeps_checkpoint: bool = True) -> None:
        self.folder, self.keeps_checkpoint = folder, keeps_checkpoint
        self.plugins, self.lists = folder / "device-plugins", folder / "pod-resources"
        self.follows_preference = True
        self.endpoints: dict[str, Endpoint] = {}
        self.pods: dict[str, Admitted] = {}
        self.registrations: list[tuple[str, str]] = []
        self._servers: list[grpc.aio.Server] = []
        self._salt = itertools.count(1)

    async def start(self, *, clears: bool = True) -> None:
        """Serve; what pods hold is known still, plugins are not. A real one *clears* all sockets first."""
        for folder in (self.plugins, self.lists):
            folder.mkdir(parents=True, exist_ok=True)
            for old in folder.glob("*.sock" if clears else "kubelet.sock"):
                old.unlink()
        await self._serve(self.plugins / "kubelet.sock", {services.REGISTER: self._register})
        await self._serve(self.lists / "kubelet.sock", {services.LIST: self._list})
        self._write_checkpoint()

    async def stop(self) -> None:
        """End as a killed one does: sockets stay behind."""
        for endpoint in list(self.endpoints.values()):  # one whose plugin ends meanwhile goes by itself
            if endpoint.watching is not None:
                endpoint.watching.cancel()
            await endpoint.channel.close()
        self.endpoints.clear()
        for server in self._servers:
            await server.stop(None)
        self._servers.clear()

    async def restart(self) -> None:
        """End and start again."""
        await self.stop()
        await self.start()

    async def until_registered(self, *names: str, devices: int = 1) -> None:
        """Wait until these resources are served and have told *devices* at least."""
        async with asyncio.timeout(WAIT_S):
            while not all(
                name in self.endpoints and len(self.endpoints[name].devices) >= devices for name in names
            ):
                await asyncio.sleep(0.02)

    # -- pods -------------------------------------------------------------------------------------

    async def admit(self, pod: Document) -> Admitted:
        """Take *pod*: devices for all its containers in turn. Raises ``AdmissionError``."""
        self.know(pod)
        admitted = self.pods[pod["metadata"]["uid"]]
        reusable: dict[str, set[str]] = {}
        try:
            for name, role, asks in admitted.containers:
                for resource, count in asks.items():
                    spare = reusable.setdefault(resource, set())
                    ids = await self._choose(resource, count, spare)
                    admitted.answers[name] = await self._allocate(resource, ids)
                    admitted.held[name, resource] = ids
                    spare.difference_update(ids)
                    if role == _INIT:
                        spare.update(ids)
                    self._write_checkpoint()
        except grpc.aio.AioRpcError as error:
            self.pods.pop(admitted.uid)
            self._write_checkpoint()
            denied = error.code() == grpc.StatusCode.FAILED_PRECONDITION
            raise AdmissionError(error.details() or "", denied=denied) from error
        except AdmissionError:
            self.pods.pop(admitted.uid)
            raise
        return admitted

    def know(self, pod: Document) -> None:
        """The pod is known, as it is a moment before it is admitted."""
        meta = pod["metadata"]
        self.pods[meta["uid"]] = Admitted(meta["uid"], meta["namespace"], meta["name"], _containers(pod))

    async def start_container(self, admitted: Admitted, name: str) -> None:
        """Call PreStartContainer for what the container holds. Raises ``StartError``."""
        for (container, resource), ids in admitted.held.items():
            endpoint = self.endpoints.get(resource)
            if container != name:
                continue
            if endpoint is None:
                raise StartError(f"nobody serves {resource}")
            if endpoint.options.pre_start_required:
                request = wire.PreStartContainerRequest(devicesIDs=ids)
                try:
                    await services.PRE_START.call(endpoint.channel)(request, timeout=WAIT_S)
                except grpc.aio.AioRpcError as error:
                    raise StartError(error.details() or "") from error

    def forget(self, admitted: Admitted) -> None:
        """The pod is gone; its devices are free. The checkpoint follows at the next allocation only."""
        self.pods.pop(admitted.uid, None)

    def free(self, resource: str) -> list[str]:
        """Healthy devices that nobody holds, in an order that changes each time."""
        taken = {
            each
            for pod in self.pods.values()
            for (_, r), ids in pod.held.items()
            if r == resource
            for each in ids
        }
        healthy = [
            each for each, health in self.endpoints[resource].devices.items() if health == services.HEALTHY
        ]
        salt = next(self._salt)
        return sorted(set(healthy) - taken, key=lambda each: hash_of(each, salt))

    async def _choose(self, resource: str, count: int, spare: set[str]) -> list[str]:
        if resource not in self.endpoints:
            raise AdmissionError(f"nobody serves {resource}")
        reused = sorted(spare)[:count]
        free = self.free(resource)
        if len(reused) + len(free) < count:
            raise AdmissionError(f"{len(free)} of {resource} are free")
        preferred = await self._preferred(resource, free, reused, count)
        first = [each for each in preferred if each in free and each not in reused]
        return [*reused, *first, *(each for each in free if each not in first)][:count]

    async def _preferred(self, resource: str, free: list[str], reused: list[str], count: int) -> list[str]:
        endpoint = self.endpoints[resource]
        if not endpoint.options.get_preferred_allocation_available or count == len(reused):
            return []
        request = wire.PreferredAllocationRequest(
            container_requests=[
                wire.ContainerPreferredAllocationRequest(
                    available_deviceIDs=free + reused, must_include_deviceIDs=reused, allocation_size=count
                )
            ]
        )
        answer = await services.PREFER.call(endpoint.channel)(request, timeout=WAIT_S)
        return list(answer.container_responses[0].deviceIDs) if self.follows_preference else []

    async def _allocate(self, resource: str, ids: Iterable[str]) -> wire.ContainerAllocateResponse:
        request = wire.AllocateRequest(container_requests=[wire.ContainerAllocateRequest(devicesIDs=ids)])
        endpoint = self.endpoints.get(resource)
        if endpoint is None:  # it went after it had stated its preference
            raise AdmissionError(f"nobody serves {resource}")
        answer = await services.ALLOCATE.call(endpoint.channel)(request, timeout=WAIT_S)
        given: wire.ContainerAllocateResponse = answer.container_responses[0]
        return given

    # -- what plugins and agents ask --------------------------------------------------------------

    async def _serve(self, socket: Path, table: dict[services.Method[Any, Any], services.Behaviour]) -> None:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers(services.handlers(table))
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        self._servers.append(server)

    async def _register(self, request: wire.RegisterRequest, context: _Context) -> wire.Empty:
        if request.version != services.VERSION:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"version {request.version}")
        old = self.endpoints.get(request.resource_name)
        if old is not None and old.watching is not None:
            old.watching.cancel()
        channel = grpc.aio.insecure_channel(f"unix:{self.plugins / request.endpoint}")
        endpoint = Endpoint(channel, request.options)
        endpoint.watching = asyncio.ensure_future(self._watch(request.resource_name, endpoint))
        self.endpoints[request.resource_name] = endpoint
        self.registrations.append((request.resource_name, request.endpoint))
        return wire.Empty()

    async def _watch(self, resource: str, endpoint: Endpoint) -> None:
        try:
            async for answer in services.WATCH.call(endpoint.channel)(wire.Empty()):
                endpoint.devices = {device.ID: device.health for device in answer.devices}
                endpoint.updates += 1
        except grpc.aio.AioRpcError:
            pass  # the plugin is gone
        endpoint.devices = {}
        if self.endpoints.get(resource) is endpoint:
            del self.endpoints[resource]

    async def _list(
        self, request: resources.ListPodResourcesRequest, context: _Context
    ) -> resources.ListPodResourcesResponse:
        return resources.ListPodResourcesResponse(
            pod_resources=[
                resources.PodResources(
                    name=pod.name,
                    namespace=pod.namespace,
                    containers=[_listed(pod, name) for name, role, _ in pod.containers if role != _INIT],
                )
                for pod in self.pods.values()
            ]
        )

    def _write_checkpoint(self) -> None:
        if not self.keeps_checkpoint:
            return
        entries = [
            {
                "PodUID": pod.uid,
                "ContainerName": container,
                "ResourceName": resource,
                "DeviceIDs": {"-1": ids},
                "AllocResp": "",
            }
            for pod in self.pods.values()
            for (container, resource), ids in pod.held.items()
        ]
        data = {"Data": {"PodDeviceEntries": entries, "RegisteredDevices": {}}, "Checksum": 0}
        path = self.plugins / "kubelet_internal_checkpoint"
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(data))
        os.replace(draft, path)


def hash_of(word: str, salt: int) -> int:
    """An order that tells nothing, the same on every run."""
    return int.from_bytes(word.encode()[-6:], "little") * 2654435761 * (salt + 17) % 1000003


def _containers(pod: Document) -> list[tuple[str, str, dict[str, int]]]:
    spec = pod["spec"]
    inits = [
        (each, "sidecar" if each.get("restartPolicy") == "Always" else _INIT)
        for each in spec.get("initContainers", [])
    ]
    apps = [(each, "app") for each in spec["containers"]]
    return [(each["name"], role, _asks(each)) for each, role in (*inits, *apps)]


def _asks(container: Document) -> dict[str, int]:
    limits = container.get("resources", {}).get("limits", {})
    served = ("nvidia.com/gpu", "volcano.sh/vgpu-number", "volcano-py.io/accelerator")
    return {name: int(limits[name]) for name in served if name in limits}


def _listed(pod: Admitted, name: str) -> resources.ContainerResources:
    devices = [
        resources.ContainerDevices(resource_name=resource, device_ids=ids)
        for (container, resource), ids in pod.held.items()
        if container == name
    ]
    return resources.ContainerResources(name=name, devices=devices)
