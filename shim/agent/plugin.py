"""One resource of ours at the kubelet: a device plugin on a socket of its own, registered and kept so.

A kubelet that starts removes all sockets from its folder and makes its own anew; it is known by that socket's
inode. Then ours is made again and registered again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import grpc
import structlog

from volcano_py.shim.agent.desk import Denied, Desk
from volcano_py.shim.agent.wire import deviceplugin_pb2 as wire
from volcano_py.shim.agent.wire import services

T = TypeVar("T")
Context = grpc.aio.ServicerContext[Any, Any]

KUBELET: Final = "kubelet.sock"
_REGISTER_S: Final = 5.0
_STOP_S: Final = 1.0
_LARGEST_MESSAGE: Final = 16 << 20


class DevicePlugin:
    """Serves one resource.

    Args:
        resource: its name.
        folder: the kubelet's, for sockets.
        desk: who decides.
        devices: all shares as they are now.
        denied: told of what was denied.
        taken: called when the kubelet has taken the registration.

    Attributes:
        registered: times that the kubelet took the registration.
    """

    def __init__(
        self,
        resource: str,
        folder: Path,
        desk: Desk,
        devices: Callable[[], list[wire.Device]],
        denied: Callable[[Denied], None],
        taken: Callable[[], None],
    ) -> None:
        self.resource, self._folder, self._desk = resource, folder, desk
        self._devices, self._denied, self._taken = devices, denied, taken
        self.socket = folder / f"volcano-py-{resource.replace('/', '-')}.sock"
        self._server: grpc.aio.Server | None = None
        self._changed = asyncio.Condition()
        self._log = structlog.get_logger(resource=resource)
        self._seen: tuple[int, int] | None = None
        self.registered = 0

    async def keep(self, every_s: float) -> None:
        """Be served and registered, looking each *every_s* whether that still holds; for ever."""
        try:
            while True:
                try:
                    await self._look()
                except (OSError, RuntimeError, grpc.aio.AioRpcError) as error:
                    self._log.warning("not registered for now", error=_why(error))
                await asyncio.sleep(every_s)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Stop serving; the kubelet takes our devices for gone."""
        server, self._server, self._seen = self._server, None, None
        if server is not None:
            await server.stop(_STOP_S)
            self.socket.unlink(missing_ok=True)

    async def devices_changed(self) -> None:
        """Tell the kubelet of all devices anew."""
        async with self._changed:
            self._changed.notify_all()

    def is_registered(self) -> bool:
        """Whether the kubelet that is there has taken our registration."""
        return self._seen is not None and self._seen == _identity(self._folder / KUBELET)

    async def _look(self) -> None:
        kubelet = _identity(self._folder / KUBELET)
        if self._server is None or _identity(self.socket) is None:
            await self.stop()
            await self._serve()
        if kubelet is not None and kubelet != self._seen:
            await self._register()
            self._seen = kubelet
            self.registered += 1
            self._log.info("registered", socket=str(self.socket))
            self._taken()

    async def _serve(self) -> None:
        self.socket.unlink(missing_ok=True)
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", _LARGEST_MESSAGE)])
        server.add_generic_rpc_handlers(
            services.handlers(
                {
                    services.OPTIONS: self._options,
                    services.WATCH: self._watch,
                    services.PREFER: self._prefer,
                    services.ALLOCATE: self._allocate,
                    services.PRE_START: self._pre_start,
                }
            )
        )
        server.add_insecure_port(f"unix:{self.socket}")
        await server.start()
        self._server = server

    async def _register(self) -> None:
        request = wire.RegisterRequest(
            version=services.VERSION,
            endpoint=self.socket.name,
            resource_name=self.resource,
            options=_OPTIONS,
        )
        address = f"unix:{self._folder / KUBELET}"
        async with grpc.aio.insecure_channel(address, options=services.FRESH) as channel:
            await services.REGISTER.call(channel)(request, timeout=_REGISTER_S)

    # -- what the kubelet calls -------------------------------------------------------------------

    async def _options(self, request: wire.Empty, context: Context) -> wire.DevicePluginOptions:
        return _OPTIONS

    async def _watch(self, request: wire.Empty, context: Context) -> AsyncIterator[wire.ListAndWatchResponse]:
        last: list[wire.Device] | None = None
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: self._devices() != last)  # noqa: B023 - asked at once
                last = self._devices()
            yield wire.ListAndWatchResponse(devices=last)

    async def _prefer(
        self, request: wire.PreferredAllocationRequest, context: Context
    ) -> wire.PreferredAllocationResponse:
        answers = []
        for each in request.container_requests:
            chosen = await self._answered(
                context,
                self._desk.prefer(
                    self.resource,
                    each.available_deviceIDs,
                    each.must_include_deviceIDs,
                    each.allocation_size,
                ),
            )
            answers.append(wire.ContainerPreferredAllocationResponse(deviceIDs=chosen))
        return wire.PreferredAllocationResponse(container_responses=answers)

    async def _allocate(self, request: wire.AllocateRequest, context: Context) -> wire.AllocateResponse:
        asked: Sequence[Sequence[str]] = [list(each.devicesIDs) for each in request.container_requests]
        return await self._answered(context, self._desk.allocate(self.resource, asked))

    async def _pre_start(
        self, request: wire.PreStartContainerRequest, context: Context
    ) -> wire.PreStartContainerResponse:
        await self._answered(context, self._desk.pre_start(self.resource, list(request.devicesIDs)))
        return wire.PreStartContainerResponse()

    async def _answered(self, context: Context, work: Awaitable[T]) -> T:
        """What *work* gives; a denial, or a fault of ours, ends this one call and nothing else."""
        try:
            return await work
        except Denied as denial:
            self._log.warning("denied", why=str(denial), pod=denial.pod.key if denial.pod else "")
            self._denied(denial)
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(denial))
        except Exception as error:
            self._log.exception("a request of the kubelet failed")
            await context.abort(grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}")
        raise AssertionError("abort raises")


_OPTIONS: Final = wire.DevicePluginOptions(pre_start_required=True, get_preferred_allocation_available=True)


def _identity(path: Path) -> tuple[int, int] | None:
    """Tells a socket from one that was made later in its place; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns


def _why(error: Exception) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name}: {error.details()}"
    return str(error)
