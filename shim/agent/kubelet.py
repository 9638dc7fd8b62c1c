"""What the kubelet itself says about who holds which devices: its PodResources API, and its checkpoint.

PodResources lists containers and sidecars of the pods that it knows, by name. Ordinary init containers it
leaves out; those, and the UIDs of pods, are in the checkpoint that the kubelet writes after each allocation.
What both say together is the **ledger**.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
import msgspec

from volcano_py.shim.agent.wire import podresources_pb2 as resources
from volcano_py.shim.agent.wire.services import FRESH, LIST

CHECKPOINT: Final = "kubelet_internal_checkpoint"
_PATIENCE_S: Final = 20.0
"""An Allocate that is denied ends its pod for good; for PreStartContainer the kubelet itself waits 30 s."""
_LARGEST: Final = 64 << 20


class KubeletError(Exception):
    """The kubelet did not say who holds what; the message says why."""


@dataclass(frozen=True, slots=True)
class Holding:
    """Devices of one resource that a container holds.

    Attributes:
        uid: the pod's, "" where only its name is known.
        namespace, pod: its name, "" where only its UID is known.
        ids: device ids.
    """

    uid: str
    namespace: str
    pod: str
    container: str
    resource: str
    ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Ledger:
    """Who holds what, as the kubelet has it.

    Attributes:
        holdings: of containers with devices.
        empty: (namespace, pod, container) of containers that are known and hold nothing.
        complete: whether init containers are in it.
    """

    holdings: tuple[Holding, ...] = ()
    empty: frozenset[tuple[str, str, str]] = frozenset()
    complete: bool = False

    def pods(self) -> set[tuple[str, str]]:
        """(namespace, name) of all pods that the kubelet knows."""
        known = {(namespace, pod) for namespace, pod, _ in self.empty}
        return known | {(each.namespace, each.pod) for each in self.holdings if each.pod}

    def owners(self, resource: str, ids: Iterable[str]) -> list[Holding]:
        """Who holds any of *ids* of *resource*."""
        wanted = frozenset(ids)
        return [each for each in self.holdings if each.resource == resource and each.ids & wanted]

    def held(self, resource: str, *, uid: str, namespace: str, pod: str, container: str) -> frozenset[str]:
        """Ids that a container holds; what is another pod's of the same name, by UID, is not among them."""
        mine = [each.ids for each in self._of(resource, container) if each.uid and each.uid == uid]
        if mine or (namespace, pod, container) in self.empty:
            return frozenset().union(*mine)
        named = [each.ids for each in self._of(resource, container) if _named(each, namespace, pod)]
        others = [each.ids for each in self.holdings if each.uid and each.resource == resource]
        return frozenset().union(*named).difference(*others)

    def _of(self, resource: str, container: str) -> Iterator[Holding]:
        return (each for each in self.holdings if each.resource == resource and each.container == container)


def _named(holding: Holding, namespace: str, pod: str) -> bool:
    return bool(holding.pod) and (holding.namespace, holding.pod) == (namespace, pod)


async def read_ledger(resources_socket: Path, plugins: Path) -> Ledger:
    """The ledger of now.

    Args:
        resources_socket: where PodResources is served.
        plugins: the kubelet's folder of device plugins, with its checkpoint.

    Raises:
        KubeletError: PodResources can't be asked. The checkpoint may be missing.
    """
    answer = await _list(resources_socket)
    holdings, empty = _from_resources(answer)
    kept = read_checkpoint(plugins / CHECKPOINT)
    return Ledger((*holdings, *(kept or ())), frozenset(empty), kept is not None)


async def _list(socket: Path) -> resources.ListPodResourcesResponse:
    options = [("grpc.max_receive_message_length", _LARGEST), *FRESH]
    try:
        async with grpc.aio.insecure_channel(f"unix:{socket}", options=options) as channel:
            request = resources.ListPodResourcesRequest()
            answer = await LIST.call(channel)(request, timeout=_PATIENCE_S)
    except grpc.aio.AioRpcError as error:
        raise KubeletError(f"PodResources on {socket}: {error.code().name}: {error.details()}") from error
    assert isinstance(answer, resources.ListPodResourcesResponse)
    return answer


def _from_resources(
    answer: resources.ListPodResourcesResponse,
) -> tuple[list[Holding], set[tuple[str, str, str]]]:
    holdings: list[Holding] = []
    empty: set[tuple[str, str, str]] = set()
    for pod in answer.pod_resources:
        for container in pod.containers:
            found = _by_resource(container)
            if not found:
                empty.add((pod.namespace, pod.name, container.name))
            holdings += [
                Holding("", pod.namespace, pod.name, container.name, resource, frozenset(ids))
                for resource, ids in found.items()
            ]
    return holdings, empty


def _by_resource(container: resources.ContainerResources) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for devices in container.devices:  # an entry for each NUMA node
        found.setdefault(devices.resource_name, set()).update(devices.device_ids)
    return found


def read_checkpoint(path: Path) -> tuple[Holding, ...] | None:
    """What the kubelet's checkpoint says; None where there is none that can be read."""
    try:
        data = msgspec.json.decode(path.read_bytes())
        entries = data["Data"]["PodDeviceEntries"] or []
        return tuple(_from_entry(entry) for entry in entries)
    except (OSError, msgspec.DecodeError, KeyError, TypeError, AttributeError, ValueError):
        return None


def _from_entry(entry: Any) -> Holding:
    by_numa = entry["DeviceIDs"] or {}
    ids = [str(each) for listed in by_numa.values() for each in listed]
    return Holding(
        str(entry["PodUID"]), "", "", str(entry["ContainerName"]), str(entry["ResourceName"]), frozenset(ids)
    )
