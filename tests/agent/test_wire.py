"""The messages are those of the published APIs, and what is committed was made from the .proto files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from volcano_py.shim.agent.wire import deviceplugin_pb2 as plugin
from volcano_py.shim.agent.wire import generate, services
from volcano_py.shim.agent.wire import podresources_pb2 as resources


def test_the_committed_modules_are_not_stale(tmp_path: Path) -> None:
    generate.generate(tmp_path)
    made = sorted((tmp_path / generate.PACKAGE).iterdir())
    assert [path.name for path in made] == [
        f"{name}_pb2{ending}" for name in generate.NAMES for ending in (".py", ".pyi")
    ]
    for path in made:
        assert path.read_text() == (generate.HERE / path.name).read_text(), (
            f"{path.name} is stale: run python -m volcano_py.shim.agent.wire.generate"
        )


# Written by hand from the published field numbers: tag = number << 3 | kind.
@pytest.mark.parametrize(
    ("message", "wire"),
    [
        (
            plugin.RegisterRequest(
                version="v1beta1",
                endpoint="a.sock",
                resource_name="x/y",
                options=plugin.DevicePluginOptions(
                    pre_start_required=True, get_preferred_allocation_available=True
                ),
            ),
            b"\x0a\x07v1beta1\x12\x06a.sock\x1a\x03x/y\x22\x04\x08\x01\x10\x01",
        ),
        (
            plugin.Device(
                ID="d", health="Healthy", topology=plugin.TopologyInfo(nodes=[plugin.NUMANode(ID=1)])
            ),
            b"\x0a\x01d\x12\x07Healthy\x1a\x04\x0a\x02\x08\x01",
        ),
        (plugin.PreStartContainerRequest(devicesIDs=["d"]), b"\x0a\x01d"),
        (
            plugin.ContainerPreferredAllocationRequest(
                available_deviceIDs=["a"], must_include_deviceIDs=["b"], allocation_size=2
            ),
            b"\x0a\x01a\x12\x01b\x18\x02",
        ),
        (
            plugin.ContainerAllocateResponse(
                envs={"K": "V"},
                mounts=[plugin.Mount(container_path="c", host_path="h", read_only=True)],
                devices=[plugin.DeviceSpec(container_path="c", host_path="h", permissions="rw")],
                annotations={"A": "B"},
                cdi_devices=[plugin.CDIDevice(name="n")],
            ),
            b"\x0a\x06\x0a\x01K\x12\x01V"
            b"\x12\x08\x0a\x01c\x12\x01h\x18\x01"
            b"\x1a\x0a\x0a\x01c\x12\x01h\x1a\x02rw"
            b"\x22\x06\x0a\x01A\x12\x01B"
            b"\x2a\x03\x0a\x01n",
        ),
        (
            resources.PodResources(
                name="p",
                namespace="n",
                containers=[
                    resources.ContainerResources(
                        name="c", devices=[resources.ContainerDevices(resource_name="r", device_ids=["d"])]
                    )
                ],
            ),
            b"\x0a\x01p\x12\x01n\x1a\x0b\x0a\x01c\x12\x06\x0a\x01r\x12\x01d",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Message) else "",
)
def test_field_numbers(message: Message, wire: bytes) -> None:
    assert message.SerializeToString(deterministic=True) == wire


def test_methods_are_found_under_their_published_names() -> None:
    methods: list[services.Method[Any, Any]] = [
        services.REGISTER,
        services.OPTIONS,
        services.WATCH,
        services.PREFER,
        services.ALLOCATE,
    ]
    methods += [services.PRE_START, services.LIST]
    assert {f"/{each.service}/{each.name}" for each in methods} == {
        "/v1beta1.Registration/Register",
        "/v1beta1.DevicePlugin/GetDevicePluginOptions",
        "/v1beta1.DevicePlugin/ListAndWatch",
        "/v1beta1.DevicePlugin/GetPreferredAllocation",
        "/v1beta1.DevicePlugin/Allocate",
        "/v1beta1.DevicePlugin/PreStartContainer",
        "/v1.PodResourcesLister/List",
    }
    assert [each.name for each in methods if each.streams] == ["ListAndWatch"]
