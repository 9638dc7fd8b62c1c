"""The services of the kubelet's APIs as tables: how each method is called and how it is served.

Both ends of each are here, since the tests play the kubelet. Messages are what ``generate`` makes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import grpc
from google.protobuf.message import Message

from volcano_py.shim.agent.wire import deviceplugin_pb2 as plugin
from volcano_py.shim.agent.wire import podresources_pb2 as resources

Q = TypeVar("Q", bound=Message)
A = TypeVar("A", bound=Message)

VERSION: Final = "v1beta1"
"""Of the device-plugin API, as it is told at registration."""
FRESH: Final = (("grpc.use_local_subchannel_pool", 1),)
"""Option of a channel that does not wait because another one to its address failed a moment ago."""
HEALTHY: Final = "Healthy"
UNHEALTHY: Final = "Unhealthy"


@dataclass(frozen=True, slots=True)
class Method(Generic[Q, A]):
    """One method of a service.

    Attributes:
        streams: whether the answer is many messages.
    """

    service: str
    name: str
    request: type[Q]
    answer: type[A]
    streams: bool = False

    def call(self, channel: grpc.aio.Channel) -> Callable[..., Any]:
        """What calls it over *channel*: awaited, or iterated where the answer streams."""
        make = channel.unary_stream if self.streams else channel.unary_unary
        return make(
            f"/{self.service}/{self.name}",
            request_serializer=self.request.SerializeToString,
            response_deserializer=self.answer.FromString,
        )


REGISTER: Final = Method("v1beta1.Registration", "Register", plugin.RegisterRequest, plugin.Empty)

_PLUGIN: Final = "v1beta1.DevicePlugin"
OPTIONS: Final = Method(_PLUGIN, "GetDevicePluginOptions", plugin.Empty, plugin.DevicePluginOptions)
WATCH: Final = Method(_PLUGIN, "ListAndWatch", plugin.Empty, plugin.ListAndWatchResponse, streams=True)
PREFER: Final = Method(
    _PLUGIN, "GetPreferredAllocation", plugin.PreferredAllocationRequest, plugin.PreferredAllocationResponse
)
ALLOCATE: Final = Method(_PLUGIN, "Allocate", plugin.AllocateRequest, plugin.AllocateResponse)
PRE_START: Final = Method(
    _PLUGIN, "PreStartContainer", plugin.PreStartContainerRequest, plugin.PreStartContainerResponse
)

LIST: Final = Method(
    "v1.PodResourcesLister", "List", resources.ListPodResourcesRequest, resources.ListPodResourcesResponse
)

Behaviour = Callable[[Any, "grpc.aio.ServicerContext[Any, Any]"], Any]
"""Answers one request, or iterates the answers where the method streams."""


def handlers(behaviours: Mapping[Method[Any, Any], Behaviour]) -> tuple[grpc.GenericRpcHandler, ...]:
    """What a server is given to serve *behaviours*."""
    services: dict[str, dict[str, grpc.RpcMethodHandler[Any, Any]]] = {}
    for method, behaviour in behaviours.items():
        make = grpc.unary_stream_rpc_method_handler if method.streams else grpc.unary_unary_rpc_method_handler
        services.setdefault(method.service, {})[method.name] = make(
            behaviour,
            request_deserializer=method.request.FromString,
            response_serializer=method.answer.SerializeToString,
        )
    return tuple(grpc.method_handlers_generic_handler(name, table) for name, table in services.items())
