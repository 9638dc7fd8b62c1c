"""Nodes into node rows and their cards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from volcano_py.scheduler.model.cards import CardSpec, moved
from volcano_py.scheduler.model.kube.errors import ObjectError
from volcano_py.scheduler.model.kube.objects import Node
from volcano_py.scheduler.model.kube.request import node_allocatable, pod_request
from volcano_py.scheduler.model.kube.selectors import node_taints
from volcano_py.scheduler.model.node_match import BLOCKING
from volcano_py.scheduler.model.tasks import NOWHERE

if TYPE_CHECKING:
    from volcano_py.scheduler.model.cluster import ClusterState


class NodeIntake:
    """Applies node events to the state."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state

    def upsert(self, node: Node) -> None:
        """Take in *node* as it is now; raises ``ObjectError`` on amounts or taints that mean nothing."""
        state, nodes = self.state, self.state.nodes
        node_taints(node)  # refuses a node whose taints mean nothing
        specs = self._cards_of(node)
        amounts = state.card_source.offers(node_allocatable(node), specs)
        row = nodes.row(node.name)
        known = nodes.objects[row]
        nodes.objects[row] = node
        recut = specs != state.cards.specs.get(row, ())
        handshakes = state.card_source.handshakes
        if known is not None and _same_for_placement(known, node, handshakes) and not recut:
            return
        vector = state.vocabulary.vector(amounts)  # first: a new resource makes another array of the column
        nodes.allocatable[row] = vector
        nodes.live[row] = True
        nodes.unschedulable[row] = node.spec.unschedulable
        nodes.tainted[row] = any(taint.effect in BLOCKING for taint in node.spec.taints)
        nodes.touch_static(row)
        if recut:
            self._replace_cards(row, specs)

    def remove(self, name: str) -> None:
        """Node *name* is gone; pods said to be there keep its row, so that it does not come back empty."""
        nodes = self.state.nodes
        row = nodes.index.get(name)
        if row is None:
            return
        nodes.live[row] = False
        nodes.objects[row] = None
        nodes.allocatable[row] = 0
        nodes.touch_static(row)
        self._replace_cards(row, ())

    def read_cards_again(self) -> None:
        """The card source reads registers and asks differently now."""
        state, tasks = self.state, self.state.tasks
        for row, node in enumerate(state.nodes.objects):
            if node is not None:
                state.nodes.objects[row] = None  # as if it came for the first time
                self.upsert(node)
        for key, task in list(tasks.index.items()):
            pod = tasks.pods[task]
            if pod is None:
                continue
            try:
                state.card_source.shape(pod, pod_request(pod))
            except ObjectError as error:
                state.delete("Pod", key)
                state.mark("Pod", key, list(error.problems))
                continue
            state.pods.reclass(task)

    def _cards_of(self, node: Node) -> tuple[CardSpec, ...]:
        """What *node* registers; a register that can't be read leaves a node without cards."""
        self.state.doubts.pop(f"Node {node.name}", None)
        try:
            return tuple(self.state.card_source.cards_of(node))
        except ObjectError as error:
            self.state.doubt("Node", node.name, error.problems)
            return ()

    def _replace_cards(self, row: int, specs: tuple[CardSpec, ...]) -> None:
        """New cards on node *row*: what its pods hold is read again from their records."""
        state, tasks = self.state, self.state.tasks
        held = [int(t) for t in np.flatnonzero(tasks.node[: tasks.size] == row) if tasks.klass[t] != NOWHERE]
        held = [t for t in held if state.classes[int(tasks.klass[t])].cards is not None]
        for task in held:
            state.accounts.book(state.accounts.batch([task]), -1)
        before = state.cards.specs.get(row, ())
        state.cards.set_cards(row, specs)
        for task in held:
            self._hold_again(task, before, specs)
            state.accounts.book(state.accounts.batch([task]), 1)
        if state.card_source.sees(int(state.cards.memory.max(initial=0))):
            with_cards = [k.row for k in state.classes.classes if k is not None and k.cards is not None]
            for task in np.flatnonzero(np.isin(tasks.klass[: tasks.size], with_cards)).tolist():
                state.pods.reclass(task)

    def _hold_again(self, task: int, before: tuple[CardSpec, ...], specs: tuple[CardSpec, ...]) -> None:
        """What *task* holds of the cards *specs* that replace *before* on its node."""
        state, tasks = self.state, self.state.tasks
        pod, held = tasks.pods[task], tasks.slices.get(task)
        if pod is not None and pod.spec.node_name:
            held = state.card_source.recorded(pod, specs) or held
        elif held is not None:
            held = moved(held, before, specs)
        if held is not None:
            tasks.slices[task] = held
            state.doubt("Pod", tasks.keys[task], held.problems)


def _same_for_placement(old: Node, new: Node, handshakes: tuple[str, ...]) -> bool:
    """Heartbeats change nothing that a predicate or score could read."""
    notes, before = new.metadata.annotations, old.metadata.annotations
    return (
        old.metadata.labels == new.metadata.labels
        and (notes == before or _lasting(notes, handshakes) == _lasting(before, handshakes))
        and old.spec == new.spec
        and old.status.allocatable == new.status.allocatable
        and old.status.images == new.status.images
    )


def _lasting(annotations: Mapping[str, str], handshakes: tuple[str, ...]) -> dict[str, str]:
    return {key: text for key, text in annotations.items() if not key.startswith(handshakes)}
