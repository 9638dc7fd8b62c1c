"""Pods, nodes and engines with cards, in few words."""

from __future__ import annotations

import json
from typing import Any

from tests.clusters import Document, group, node, pod
from volcano_py.crds.schedulerconfig import parse_scheduler_config
from volcano_py.scheduler.engine import CycleResult, Engine
from volcano_py.scheduler.model.kube.meta import ObjectMeta
from volcano_py.scheduler.model.kube.objects import Node, Pod
from volcano_py.scheduler.model.kube.pod import Container, PodSpec, Resources

NOW = 1_767_225_600.0


def container(name: str = "main", *, sidecar: bool = False, **limits: Any) -> Container:
    """A container; *limits* spelled with ``_`` for what a keyword can't hold, see ``SPELLINGS``."""
    amounts = {SPELLINGS[key]: value for key, value in limits.items()}
    return Container(name, resources=Resources(limits=amounts), restart_policy="Always" if sidecar else "")


SPELLINGS = {
    "gpu": "nvidia.com/gpu",
    "gpumem": "nvidia.com/gpumem",
    "gpu_mem": "nvidia.com/gpu-mem",
    "percent": "nvidia.com/gpumem-percentage",
    "gpucores": "nvidia.com/gpucores",
    "gpucompute": "nvidia.com/gpucompute",
    "number": "volcano.sh/vgpu-number",
    "memory": "volcano.sh/vgpu-memory",
    "vpercent": "volcano.sh/vgpu-memory-percentage",
    "cores": "volcano.sh/vgpu-cores",
    "cpu": "cpu",
}


def make_pod(
    *apps: Container, init: tuple[Container, ...] = (), on: str = "", notes: dict[str, str] | None = None
) -> Pod:
    """A pod; *notes* are annotations."""
    spec = PodSpec(containers=apps, init_containers=init, node_name=on)
    return Pod(ObjectMeta("p", "ml", annotations=notes or {}), spec)


def make_node(**notes: str) -> Node:
    """A node that states nothing but annotations."""
    return Node(ObjectMeta("n", annotations=notes))


def hami(*memories: int, kind: str = "NVIDIA-A100", slots: int = 10, prefix: str = "GPU") -> str:
    """HAMi's register of cards with *memories* MiB."""
    devices = [
        {
            "id": f"{prefix}-{at}",
            "index": at,
            "count": slots,
            "devmem": memory,
            "devcore": 100,
            "type": kind,
            "mode": "hami-core",
            "health": True,
        }
        for at, memory in enumerate(memories)
    ]
    return json.dumps(devices)


def volcano(*memories: int, kind: str = "NVIDIA-A100", slots: int = 10) -> str:
    """Volcano's register of cards with *memories* MiB."""
    return "".join(f"GPU-{at},{slots},{memory},{kind},true,hami-core:" for at, memory in enumerate(memories))


def card_node(name: str, *memories: int, family: str = "hami.io", **more: Any) -> Document:
    """A node whose device plugin reports cards with *memories* MiB."""
    slots = more.get("slots", 10)
    if family == "hami.io":
        notes = {"hami.io/node-nvidia-register": hami(*memories, prefix=f"{name}-GPU", slots=slots)}
        amounts = {"nvidia.com/gpu": str(slots * len(memories))}
    else:
        notes = {"volcano.sh/node-vgpu-register": volcano(*memories, slots=slots)}
        amounts = {"volcano.sh/vgpu-number": str(slots * len(memories))}
    return node(name, "64", "512Gi", annotations=notes | more.get("annotations", {}), amounts=amounts)


def ask(name: str, *, on: str = "", notes: dict[str, str] | None = None, **limits: Any) -> list[Document]:
    """A group of one pod whose container asks *limits*; *on*: it runs there."""
    amounts = {SPELLINGS[key]: str(value) for key, value in limits.items()}
    made = pod(f"{name}-0", name, None, on=on, requests=amounts, annotations=notes or {})
    return [group(name, phase="Running" if on else "Inqueue"), made]


def card_engine(*documents: Document, **arguments: object) -> Engine:
    """An engine with the plugin and *arguments* (without ``deviceshare.``) that knows *documents*."""
    options = {f"deviceshare.{key}": value for key, value in arguments.items()}
    plugins = [{"name": "gang"}, {"name": "deviceshare", "arguments": options}]
    engine = Engine(parse_scheduler_config({"actions": "allocate", "tiers": [{"plugins": plugins}]}))
    for document in documents:
        engine.apply(document)
    return engine


def bound(result: CycleResult) -> dict[str, list[tuple[str, str, int, int]]]:
    """Pod name -> (node, card, MiB, percent) of each slice."""
    return {
        decision.pod.removeprefix("ml/"): [
            (decision.node, part.uuid, part.memory_mib, part.cores) for part in decision.slices
        ]
        for decision in result.decisions
        if decision.kind == "bind"
    }
