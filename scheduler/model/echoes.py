"""Events of pods that tell nothing but how far a pod has come: echoes of our own binds, and of kubelets.

They are most of what a busy cluster sends, and cost a fraction of taking a pod in anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from volcano_py.crds.annotations import (
    CHECKPOINT,
    COOLDOWN,
    GROUP,
    JOB_VERSION,
    PREEMPTABLE,
    ROLE,
    TASK_PRIORITY,
)
from volcano_py.scheduler.model.kube.request import pod_request
from volcano_py.scheduler.model.tasks import NOWHERE, Status

if TYPE_CHECKING:
    from volcano_py.scheduler.model.cards import CardChoice
    from volcano_py.scheduler.model.cluster import ClusterState
    from volcano_py.scheduler.model.kube.objects import Pod

_READ: Final = (GROUP, PREEMPTABLE, COOLDOWN, ROLE, TASK_PRIORITY, CHECKPOINT, JOB_VERSION)
"""Annotations that the model or built-in policies read; cards' are the card source's business."""


def only_moved(state: ClusterState, task: int, pod: Pod) -> bool:
    """Nothing of *pod*, which is known as *task*, is new but how far it has come: the usual event."""
    tasks = state.tasks
    old = tasks.pods[task]
    if old is None or tasks.uids[task] != pod.uid or old.metadata.labels != pod.metadata.labels:
        return False
    if old.spec != pod.spec and not _arrived(state, task, old, pod):
        return False
    if _in_place(old) != _in_place(pod) or _frees_cards(state, task, old, pod):
        return False
    return old.metadata.annotations == pod.metadata.annotations or _reads_alike(state, task, old, pod)


def _arrived(state: ClusterState, task: int, old: Pod, pod: Pod) -> bool:
    """*pod* stands where we bound it, and nothing else of its spec is new."""
    tasks, name = state.tasks, pod.spec.node_name
    if tasks.status[task] != Status.BINDING or state.nodes.names[tasks.node[task]] != name:
        return False
    return msgspec.structs.replace(old.spec, node_name=name) == pod.spec


def _frees_cards(state: ClusterState, task: int, old: Pod, pod: Pod) -> bool:
    """The init containers have ended since, and what they held of cards is free."""
    cards = state.classes[int(state.tasks.klass[task])].cards
    return cards is not None and old.init_is_over != pod.init_is_over


def _in_place(pod: Pod) -> list[object]:
    """What the statuses say of containers' amounts, which may be changed while they run."""
    status = pod.status
    containers = (*status.container_statuses, *status.init_container_statuses)
    return [status.resize, *((one.name, one.resources, one.allocated_resources) for one in containers)]


def _reads_alike(state: ClusterState, task: int, old: Pod, pod: Pod) -> bool:
    """The annotations differ in nothing that is read, by the model or by the card source."""
    before, after = old.metadata.annotations, pod.metadata.annotations
    if any(before.get(key) != after.get(key) for key in _READ):
        return False
    source = state.card_source
    if source.shape(old, pod_request(old)) != source.shape(pod, pod_request(pod)):
        return False
    node, klass = int(state.tasks.node[task]), state.classes[int(state.tasks.klass[task])]
    if node == NOWHERE or klass.cards is None:
        return True
    told, held = source.recorded(pod, state.cards.specs.get(node, ())), state.tasks.slices.get(task)
    if told is not None and told.problems:
        return False  # they are noted where a pod is taken in
    return told == held or _same_cards(told, held, klass.signature.charge)


def _same_cards(told: CardChoice | None, held: CardChoice | None, usual: tuple[tuple[str, int], ...]) -> bool:
    """A record spells out the charge that a choice leaves to its class (*usual*)."""
    if told is None or held is None:
        return False
    same = (told.slices, told.holds) == (held.slices, held.holds)
    return same and dict(told.charge or usual) == dict(held.charge or usual)
