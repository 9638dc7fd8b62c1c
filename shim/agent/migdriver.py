"""Cutting cards in MIG mode: which instances a card can have, making and ending them.

As ``nvml``: every fault is a ``DriverError``, and calls block.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

import pynvml
import structlog

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
        capabilities: Path,
        nodes: Path,
    ) -> None:
        self._capabilities, self._nodes = capabilities, nodes
        self._log = structlog.get_logger()

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

    def make(self, wish: Wish, minor: int, held: Collection[Wish] = ()) -> Instance:
        """The instance of *wish* on the card with device node *minor*; one that is just there is taken.

        Instances in its way that nobody has end first: only *held* ones are somebody's. What can't be made
        whole leaves nothing. Raises ``DriverError``.
        """
        with asking(f"card {wish.card} for a {wish.profile} at {wish.start}"):
            handle = pynvml.nvmlDeviceGetHandleByUUID(wish.card)
            info = next((each for each in _profile_infos(handle) if _name(each) == wish.profile), None)
            if info is None:
                raise DriverError(f"card {wish.card} has no profile {wish.profile}")
            if wish in held:
                raise DriverError(f"the {wish.profile} at {wish.start} is another pod's")
            whole = _at(handle, info.id, wish)
            if whole is not None:
                return self._told(handle, whole, info.sliceCount, wish, minor)
            self._clear(handle, wish, held)
            whole = _made(handle, info.id, wish)
            try:
                return self._told(handle, whole, info.sliceCount, wish, minor)
            except Exception:
                _end(whole)
                raise

    def _told(self, handle: Any, whole: Any, slices: int, wish: Wish, minor: int) -> Instance:
        """The instance *whole*, with the compute instance that takes all of it."""
        number = pynvml.nvmlGpuInstanceGetInfo(whole).id
        compute = _compute(whole, slices)
        nodes = self._device_nodes(minor, number, compute)
        uuid = _uuid(handle, number, compute)
        return Instance(uuid, wish.card, wish.profile, wish.start, wish.size, number, compute, nodes)

    def _clear(self, handle: Any, wish: Wish, held: Collection[Wish]) -> None:
        """End what is at the place of *wish* and was left by somebody who is gone."""
        for info in _profile_infos(handle, media=True):
            for whole in _instances(handle, info.id):
                place = pynvml.nvmlGpuInstanceGetInfo(whole).placement
                there = Wish(wish.card, _name(info), place.start, place.size)
                if there.start < wish.start + wish.size and wish.start < there.start + there.size:
                    if there in held:
                        raise DriverError(f"a {there.profile} at {there.start} is in the way")
                    _end(whole)
                    self._log.warning("ended an instance that nobody has", card=wish.card, was=there)

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
            _end(whole)

    def _device_nodes(self, minor: int, gpu_instance: int, compute_instance: int) -> tuple[str, ...]:
        folder = self._capabilities / f"gpu{minor}" / "mig" / f"gi{gpu_instance}"
        files = (folder / "access", folder / f"ci{compute_instance}" / "access")
        return tuple(str(self._nodes / f"nvidia-cap{_device_minor(file)}") for file in files)


def _profile_infos(handle: Any, *, media: bool = False) -> Iterator[Any]:
    """Profiles that *handle* has; those with engines for *media* are never handed out."""
    for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, number)
        except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_InvalidArgument):
            continue
        if media or ("+" not in _name(info) and "-" not in _name(info)):
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
    for each in _instances(handle, profile):
        place = pynvml.nvmlGpuInstanceGetInfo(each).placement
        if (place.start, place.size) == (wish.start, wish.size):
            return each
    return None


def _instances(handle: Any, profile: int) -> list[Any]:
    found = (pynvml.c_nvmlGpuInstance_t * _PLACES)()
    count = ctypes.c_uint(_PLACES)
    pynvml.nvmlDeviceGetGpuInstances(handle, profile, found, ctypes.byref(count))
    return list(found[: count.value])


def _end(whole: Any) -> None:
    """End the instance *whole* with the compute instances in it; the driver refuses while it is used."""
    for number in _COMPUTE.values():
        try:
            profile = _compute_profile(whole, number)
        except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_InvalidArgument):
            continue
        for compute in _compute_instances(whole, profile):
            pynvml.nvmlComputeInstanceDestroy(compute)
    pynvml.nvmlGpuInstanceDestroy(whole)


def _made(handle: Any, profile: int, wish: Wish) -> Any:
    place = pynvml.c_nvmlGpuInstancePlacement_t(start=wish.start, size=wish.size)
    # The binding hands it on as it is, and NVML wants to be told where it stands.
    return pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(handle, profile, ctypes.byref(place))


def _compute(whole: Any, slices: int) -> int:
    """The number of the compute instance that has all of *whole*; it is made where there is none."""
    if slices not in _COMPUTE:
        raise DriverError(f"no compute instance is known of {slices} slices")
    profile = _compute_profile(whole, _COMPUTE[slices])
    there = _compute_instances(whole, profile)
    compute = there[0] if there else pynvml.nvmlGpuInstanceCreateComputeInstance(whole, profile)
    return int(pynvml.nvmlComputeInstanceGetInfo(compute).id)


def _compute_profile(whole: Any, number: int) -> int:
    shared = pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
    return int(pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(whole, number, shared).id)


def _compute_instances(whole: Any, profile: int) -> list[Any]:
    found = (pynvml.c_nvmlComputeInstance_t * _PLACES)()
    count = ctypes.c_uint(_PLACES)
    pynvml.nvmlGpuInstanceGetComputeInstances(whole, profile, found, ctypes.byref(count))
    return list(found[: count.value])


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
