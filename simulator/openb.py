"""The published OpenB experiment, through the engine and its deviceshare plugin.

A cluster of empty nodes, one pod after another, nobody leaves, nobody is tried again: one long cycle
of the allocate action over one job whose pods come in order of arrival. The placement policies are
those a cluster could be configured with. Source: Weng et al., "Beware of Fragmentation", USENIX ATC 2023.
Neighbours: ``openb_workload`` (what arrives), ``openb_reference`` (figures, and the plain loop it is
compared with).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from volcano_py.crds.annotations import GROUP
from volcano_py.crds.cards.register import VOLCANO_REGISTER, CardReport, encode_volcano
from volcano_py.crds.schedulerconfig import SchedulerConfig, parse_scheduler_config
from volcano_py.plugins.deviceshare.placement.state import WHOLE_CARD, CardAsk
from volcano_py.scheduler.decoding import decode_object
from volcano_py.scheduler.engine import CycleResult, Engine
from volcano_py.simulator.openb_reference import History
from volcano_py.simulator.openb_workload import Trace, Workload

NAMESPACE: Final = "openb"
TRACE: Final = "trace"
CARD_MIB: Final = WHOLE_CARD
"""Cards report 1,000 MiB, so that a slice's memory is its milli of a card."""


@dataclass(frozen=True, slots=True)
class Played:
    """One run.

    Attributes:
        history: what stood where after each arrival.
        cpu_s: CPU seconds from decoded objects to decisions.
    """

    history: History
    cpu_s: float


def play_through_engine(trace: Trace, workload: Workload, policy: str) -> Played:
    """Submit the whole *workload* to an engine with *policy*."""
    order = {trace.node_names[row]: place for place, row in enumerate(workload.node_order.tolist())}
    engine = Engine(_config(trace, policy, workload.seed), tie_key=lambda name: order.get(name, -1))
    objects = [decode_object(document) for document in _documents(trace, workload)]
    before = time.process_time()
    wrong = engine.state.upsert_all(objects)
    result = engine.cycle(0.0)
    cpu_s = time.process_time() - before
    if wrong:
        raise ValueError(f"the trace makes objects the engine refuses: {next(iter(wrong.items()))}")
    return Played(_history(trace, workload, result), cpu_s)


def _config(trace: Trace, policy: str, seed: int) -> SchedulerConfig:
    arguments = {
        "deviceshare.VGPUEnable": True,
        "deviceshare.SchedulePolicy": policy,
        "deviceshare.ScheduleWeight": 1,
        "deviceshare.PolicySeed": seed,
        "deviceshare.typicalAsks": [_past_ask(trace, ask, count) for ask, count in trace.counts()],
    }
    plugins = [{"name": "predicates"}, {"name": "deviceshare", "arguments": arguments}]
    return parse_scheduler_config({"actions": "allocate", "tiers": [{"plugins": plugins}]})


def _past_ask(trace: Trace, ask: CardAsk, count: int) -> dict[str, Any]:
    return {
        "cpuMilli": ask.cpu_milli,
        "cards": ask.count,
        "cardMilli": ask.milli,
        "types": [trace.models[model] for model in sorted(ask.models or ())],
        "count": count,
    }


def _documents(trace: Trace, workload: Workload) -> list[dict[str, Any]]:
    made = [_node(trace, row) for row in range(len(trace.node_names))]
    made.append(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": TRACE, "namespace": NAMESPACE},
            "spec": {"minMember": 1},
            "status": {"phase": "Inqueue"},
        }
    )
    asks = {id(ask): _pod_parts(trace, ask) for ask in trace.asks}
    for place, pod in enumerate(workload.arrivals.tolist()):
        spec, annotations = asks[id(trace.asks[pod])]
        meta = {"name": _pod_name(place), "namespace": NAMESPACE, "annotations": annotations}
        made.append({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    return made


def _pod_name(place: int) -> str:
    """Ends in a number, by which pods of a job are ordered."""
    return f"pod-{place}"


def _node(trace: Trace, row: int) -> dict[str, Any]:
    nodes, name = trace.nodes, trace.node_names[row]
    cards = int((nodes.free[row] >= 0).sum())
    model = trace.models[int(nodes.model[row])] if cards else ""
    reports = [CardReport(f"{name}-{i}", i, 10, CARD_MIB, 100, model) for i in range(cards)]
    amounts = {"cpu": f"{nodes.cpu_idle[row]}m", "memory": str(nodes.memory_idle[row]), "pods": "1000"}
    if cards:
        amounts |= {
            "volcano.sh/vgpu-number": str(10 * cards),
            "volcano.sh/vgpu-memory": str(CARD_MIB * cards),
            "volcano.sh/vgpu-cores": str(100 * cards),
        }
    meta = {"name": name, "annotations": {VOLCANO_REGISTER: encode_volcano(reports)} if cards else {}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": amounts}}


def _pod_parts(trace: Trace, ask: CardAsk) -> tuple[dict[str, Any], dict[str, str]]:
    """Spec and annotations of a pod with *ask*."""
    amounts = {"cpu": f"{ask.cpu_milli}m", "memory": str(ask.memory)}
    if ask.count:
        amounts |= {"volcano.sh/vgpu-number": str(ask.count), "volcano.sh/vgpu-memory": str(ask.milli)}
    annotations = {GROUP: TRACE}
    if ask.models is not None:
        annotations["nvidia.com/use-gputype"] = ",".join(trace.models[model] for model in sorted(ask.models))
    container = {"name": "main", "resources": {"requests": amounts, "limits": amounts}}
    return {"schedulerName": "volcano-py", "containers": [container]}, annotations


def _history(trace: Trace, workload: Workload, result: CycleResult) -> History:
    """Decisions, in order, as what stood where after each arrival."""
    rows = {name: row for row, name in enumerate(trace.node_names)}
    bound = {decision.pod: decision for decision in result.decisions}
    cpu_left, room = trace.nodes.cpu_idle.copy(), trace.nodes.free.copy()
    count = len(workload.arrivals)
    took = np.full(count, -1, np.int64)
    cpu = np.zeros(count, np.int64)
    free = np.full((count, room.shape[1]), -1, np.int32)
    asked = np.zeros(count, np.int64)
    for place, pod in enumerate(workload.arrivals.tolist()):
        ask = trace.asks[pod]
        asked[place] = ask.total_milli
        decision = bound.get(f"{NAMESPACE}/{_pod_name(place)}")
        if decision is None:
            continue
        row = took[place] = rows[decision.node]
        cpu_left[row] -= ask.cpu_milli
        for slice_ in decision.slices:
            room[row, slice_.card] -= slice_.memory_mib
        cpu[place], free[place] = cpu_left[row], room[row]
    model = np.where(took >= 0, trace.nodes.model[took], -1).astype(np.int32)
    allocated = np.cumsum(np.where(took >= 0, asked, 0))
    return History(np.cumsum(asked), allocated, took, cpu, free, model)
