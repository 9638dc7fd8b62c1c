"""Cutting cards in MIG mode: which instances a card can have, making and ending them.

As ``nvml``: every fault is a ``DriverError``, and calls block.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pynvml

from volcano_py.crds.cards.register import MigProfile
from volcano_py.shim.agent.instances import Instance, Wish
from volcano_py.shim.agent.nvml import DriverError, asking

_PLACES: Final = 32
_PERCENT: Final = 100
_COMPUTE: Final = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4, 8: 5, 6: 6}
"""Slices of an instance -> NVML's number of the compute profile that takes all of it."""


class MigDriver:
    """NVML's side of MIG.

    Args:
        capabilities: where the kernel module tells the device nodes of instances.
        nodes: folder of those nodes.
    """

    def __init__(
        self,
        capabilities: Path = Path("/proc/driver/nvidia/capabilities"),
        nodes: Path = Path("/dev/nvidia-caps"),
    ) -> None:
        self._capabilities, self._nodes = capabilities, nodes

    def profiles(self, card: str) -> tuple[MigProfile, ...]:
        """What *card* can be cut into; raises ``DriverError``."""
        with asking(f"profiles of card {card}"):
            handle = pynvml.nvmlDeviceGetHandleByUUID(card)
            infos = list(_profile_infos(handle))
            most = max((info.multiprocessorCount for info in infos), default=1)
            return tuple(
                MigProfile(
                    name=_name(info),
                    memory_mib=int(info.memorySizeMB),
                    cores=-(-_PERCENT * info.multiprocessorCount // most),
                    slices=int(info.sliceCount),
                    placements=tuple(_placements(handle, info.id)),
                )
                for info in infos
            )

    def make(self, wish: Wish, minor: int) -> Instance:
        """The instance of *wish* on the card with device node *minor*; one that is just there is taken.

        Raises ``DriverError``.
        """
        with asking(f"card {wish.card} for a {wish.profile} at {wish.start}"):
            handle = pynvml.nvmlDeviceGetHandleByUUID(wish.card)
            info = next((each for each in _profile_infos(handle) if _name(each) == wish.profile), None)
            if info is None:
                raise DriverError(f"card {wish.card} has no profile {wish.profile}")
            whole = _at(handle, info.id, wish) or pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(
                handle, info.id, pynvml.c_nvmlGpuInstancePlacement_t(start=wish.start, size=wish.size)
            )
            number = pynvml.nvmlGpuInstanceGetInfo(whole).id
            compute = _compute(whole, info.sliceCount)
            uuid = _uuid(handle, number, compute)
            return Instance(
                uuid, wish.card, wish.profile, wish.start, wish.size, number, compute,
                self._device_nodes(minor, number, compute),
            )  # fmt: skip

    def end(self, instance: Instance) -> None:
        """End *instance*; one that is gone is fine. Raises ``DriverError``, also while it is used."""
        with asking(f"card {instance.card} to end {instance.uuid}"):
            handle = pynvml.nvmlDeviceGetHandleByUUID(instance.card)
            try:
                whole = pynvml.nvmlDeviceGetGpuInstanceById(handle, instance.gpu_instance)
                info = pynvml.nvmlGpuInstanceGetInfo(whole)
            except pynvml.NVMLError_NotFound:
                return
            if (info.placement.start, info.placement.size) != (instance.start, instance.size):
                return  # somebody else's under the same number
            try:
                compute = pynvml.nvmlGpuInstanceGetComputeInstanceById(whole, instance.compute_instance)
                pynvml.nvmlComputeInstanceDestroy(compute)
            except pynvml.NVMLError_NotFound:
                pass  # ended before us, its GPU instance was not
            pynvml.nvmlGpuInstanceDestroy(whole)

    def _device_nodes(self, minor: int, gpu_instance: int, compute_instance: int) -> tuple[str, ...]:
        folder = self._capabilities / f"gpu{minor}" / "mig" / f"gi{gpu_instance}"
        files = (folder / "access", folder / f"ci{compute_instance}" / "access")
        return tuple(str(self._nodes / f"nvidia-cap{_device_minor(file)}") for file in files)


def _profile_infos(handle: Any) -> Iterator[Any]:
    """Profiles that *handle* has, without those for media only."""
    for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, number)
        except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_InvalidArgument):
            continue
        if "+" not in _name(info) and "-" not in _name(info):
            yield info


def _name(info: Any) -> str:
    """``MIG 1g.10gb`` without the word in front."""
    text = info.name.decode("utf-8", "replace") if isinstance(info.name, bytes) else str(info.name)
    return text.removeprefix("MIG ").strip()


def _placements(handle: Any, profile: int) -> Iterator[tuple[int, int]]:
    places = (pynvml.c_nvmlGpuInstancePlacement_t * _PLACES)()
    count = ctypes.c_uint(_PLACES)
    pynvml.nvmlDeviceGetGpuInstancePossiblePlacements(handle, profile, places, ctypes.byref(count))
    return ((place.start, place.size) for place in places[: count.value])


def _at(handle: Any, profile: int, wish: Wish) -> Any:
    """The instance of *profile* that is at the place of *wish* already, None without."""
    found = (pynvml.c_nvmlGpuInstance_t * _PLACES)()
    count = ctypes.c_uint(_PLACES)
    pynvml.nvmlDeviceGetGpuInstances(handle, profile, found, ctypes.byref(count))
    for each in found[: count.value]:
        place = pynvml.nvmlGpuInstanceGetInfo(each).placement
        if (place.start, place.size) == (wish.start, wish.size):
            return each
    return None


def _compute(whole: Any, slices: int) -> int:
    """The number of the compute instance that has all of *whole*; it is made where there is none."""
    info = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(
        whole, _COMPUTE[slices], pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
    )
    found = (pynvml.c_nvmlComputeInstance_t * _PLACES)()
    count = ctypes.c_uint(_PLACES)
    pynvml.nvmlGpuInstanceGetComputeInstances(whole, info.id, found, ctypes.byref(count))
    compute = found[0] if count.value else pynvml.nvmlGpuInstanceCreateComputeInstance(whole, info.id)
    return int(pynvml.nvmlComputeInstanceGetInfo(compute).id)


def _uuid(handle: Any, gpu_instance: int, compute_instance: int) -> str:
    for number in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            device = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
        except pynvml.NVMLError_NotFound:
            continue
        numbers = (
            pynvml.nvmlDeviceGetGpuInstanceId(device),
            pynvml.nvmlDeviceGetComputeInstanceId(device),
        )
        if numbers == (gpu_instance, compute_instance):
            uuid = pynvml.nvmlDeviceGetUUID(device)
            return uuid.decode() if isinstance(uuid, bytes) else str(uuid)
    raise DriverError(f"instance {gpu_instance}/{compute_instance} has no device")


def _device_minor(file: Path) -> int:
    """The number in ``DeviceFileMinor: 12``; raises ``OSError`` and ``ValueError``."""
    for line in file.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "DeviceFileMinor":
            return int(value)
    raise ValueError(f"{file} names no device node")
