"""Names that a pod asks for and nobody has, where somebody has a similar one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from volcano_py.crds.messages import did_you_mean
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.tasks import NOWHERE
from volcano_py.scheduler.model.wording import absent_text, offered


def near_misses(state: ClusterState, pod: str) -> list[str]:
    """Of *pod* ("namespace/name"): resources and node labels that no node has."""
    task = state.tasks.index.get(pod, NOWHERE)
    if task == NOWHERE:
        return []
    return [*_resources(state, task), *_labels(state, task)]


def _resources(state: ClusterState, task: int) -> Iterator[str]:
    known = offered(state)
    klass = state.classes[int(state.tasks.klass[task])]
    for name, amount in klass.signature.request:
        if amount and name != "pods" and name not in known:
            yield absent_text(state, name)
    if klass.cards is not None and not state.cards.specs:
        yield "no node reports cards: does the device plugin run, and does it register its cards?"


def _labels(state: ClusterState, task: int) -> Iterator[str]:
    pod = state.tasks.pods[task]
    labels = [node.metadata.labels for node in state.nodes.objects if node is not None]
    for key, value in (pod.spec.node_selector if pod is not None else {}).items():
        yield from _label(key, value, labels)


def _label(key: str, value: str, labels: list[Mapping[str, str]]) -> Iterator[str]:
    values = {found[key] for found in labels if key in found}
    if not values:
        keys = {name for found in labels for name in found}
        yield f"no node has label {key}{did_you_mean(key, sorted(keys))}"
    elif value not in values:
        yield f"no node has label {key}={value}{did_you_mean(value, sorted(values))}"
