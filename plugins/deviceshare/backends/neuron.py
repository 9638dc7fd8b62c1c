"""AWS Neuron: a node states its devices and their cores together; one core, or whole devices, are asked for.

Records tell the cores of a device by their bits. Several devices of a container are neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano_py.crds.cards.names import ResourceNames
from volcano_py.plugins.deviceshare.backend import Backend, Counted, Held, Wishes, hami_family, in_nanoseconds
from volcano_py.scheduler.model.kube.objects import Pod
from volcano_py.scheduler.model.kube.pod import Container

_DEVICES: Final = "aws.amazon.com/neuron"
_CORES: Final = "aws.amazon.com/neuroncore"
_NAME: Final = "AWSNeuron"


def _chosen(pod: Pod, held: Held, now: float) -> Mapping[str, str]:
    """Numbers of the devices, or of the cores over all devices, as the vendor's plugin takes them."""
    both = (*pod.spec.init_containers, *pod.spec.containers)
    whole = {container.name for container in both if _asks_devices(container)}
    taken = [entry for segment in held for entry in segment]
    numbers: list[int] = []
    by_core = False
    for part, spec in taken:
        if part.container in whole:
            numbers.append(spec.index)
            continue
        by_core = True
        start, _, size = part.instance.partition("@")[2].partition("-")
        first = spec.index * spec.cores + int(start)
        numbers += range(first, first + int(size))
    last = taken[-1][1]
    return {
        "aws.amazon.com/predicate-node": last.uuid.removesuffix(f"-{_NAME}-{last.index}"),
        "AWS_NEURON_IDS": ",".join(map(str, numbers)),
        "NEURON_ALLOC_TIME": in_nanoseconds(now),
        "NEURON_ALLOCATED": "false",
        **({"NEURON_RESOURCE_TYPE": _CORES} if by_core else {}),
    }


def _asks_devices(container: Container) -> bool:
    amounts = container.resources
    return _DEVICES in amounts.limits or _DEVICES in amounts.requests


NEURON: Final = Backend(
    vendor="awsneuron",
    word="AWSNeuron",
    names=ResourceNames((_DEVICES,), cores=(_CORES,)),
    families=hami_family("aws-neuron", extra=_chosen, consumed=False),
    counted=Counted(_DEVICES, _NAME, cores=_CORES),
    wishes=Wishes(
        use_uuid=("aws.amazon.com/use-neuron-uuid",), not_uuid=("aws.amazon.com/nouse-neuron-uuid",)
    ),
    most_cores=2,
    in_rows=True,
)
