"""Which nodes a selector, a term or a set of tolerations accepts, for all node rows at once.

Labels are compared once for each distinct value, taints once for each distinct set of them. Masks have
one entry a node row; rows without a live node count as nodes without labels and taints, and are for the
caller to leave out.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

import numpy as np

from volcano_py.scheduler.model.kept import kept
from volcano_py.scheduler.model.kube.constraints import PodConstraints
from volcano_py.scheduler.model.kube.selectors import (
    NODE_NAME_FIELD,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    Taint,
    Toleration,
    node_taints,
    untolerated,
)
from volcano_py.scheduler.model.nodes import NodeTable
from volcano_py.scheduler.model.resources import Ints, Mask, Rows32

BLOCKING: Set[str] = frozenset({"NoSchedule", "NoExecute"})
DISCOURAGING: Set[str] = frozenset({"PreferNoSchedule"})


def rows_passing(nodes: NodeTable, test: Requirement) -> Mask:
    """(capacity,) node rows whose labels pass *test*."""
    codes, values = nodes.label_codes(test.key)
    accepted = np.zeros(len(values) + 1, np.bool_)
    if test.operator in ("In", "NotIn"):
        accepted[[values[value] for value in test.values if value in values]] = True
        if test.operator == "NotIn":
            np.logical_not(accepted, out=accepted)
    else:
        accepted[:-1] = [test.matches({test.key: value}) for value in values]
        accepted[-1] = test.matches({})
    return _padded(accepted[codes], nodes)


def rows_named(nodes: NodeTable, test: Requirement) -> Mask:
    """(capacity,) node rows whose name passes *test* (In or NotIn)."""
    mask = np.zeros(len(nodes.version), np.bool_)
    mask[[nodes.index[name] for name in test.values if name in nodes.index]] = True
    return mask if test.operator == "In" else ~mask


def rows_in_term(nodes: NodeTable, term: NodeSelectorTerm) -> Mask:
    """(capacity,) node rows that *term* selects; an empty term selects none."""
    mask = np.full(len(nodes.version), not term.is_empty)
    for test in term.expressions:
        mask &= rows_passing(nodes, test)
    for test in term.fields:
        mask &= rows_named(nodes, test) if test.key == NODE_NAME_FIELD else False
    return mask


def rows_selected(nodes: NodeTable, selector: NodeSelector) -> Mask:
    """(capacity,) node rows of which at least one term of *selector* holds."""
    mask = np.zeros(len(nodes.version), np.bool_)
    for term in selector.terms:
        mask |= rows_in_term(nodes, term)
    return mask


def rows_labelled(nodes: NodeTable, selector: LabelSelector) -> Mask:
    """(capacity,) node rows whose labels *selector* accepts."""
    mask = np.full(len(nodes.version), not selector.nothing)
    for test in selector.requirements:
        mask &= rows_passing(nodes, test)
    return mask


def rows_wanted(nodes: NodeTable, constraints: PodConstraints) -> Mask:
    """(capacity,) node rows that node selector and required node affinity accept."""
    mask = rows_labelled(nodes, constraints.node_selector)
    if constraints.node_affinity is not None:
        mask &= rows_selected(nodes, constraints.node_affinity)
    return mask


@dataclass(frozen=True, slots=True, eq=False)
class TaintGroups:
    """Nodes by their set of taints.

    Attributes:
        code: (capacity,) int32, the group of each node row; group 0 has no taints.
        taints: group -> its taints.
    """

    code: Rows32
    taints: list[tuple[Taint, ...]]

    def has(self, effects: Set[str]) -> bool:
        """Whether any node has a taint with one of *effects*."""
        return any(taint.effect in effects for group in self.taints for taint in group)

    def tolerated(self, tolerations: Iterable[Toleration], effects: Set[str]) -> Mask:
        """(capacity,) rows with no taint of *effects* that *tolerations* leave open."""
        wishes = tuple(tolerations)
        free = np.array([untolerated(group, wishes, effects) is None for group in self.taints])
        mask: Mask = free[self.code]
        return mask

    def count_untolerated(self, tolerations: Iterable[Toleration], effects: Set[str]) -> Ints:
        """(capacity,) taints of *effects* on each row that *tolerations* leave open."""
        wishes = tuple(tolerations)
        counts = [
            sum(untolerated((taint,), wishes, effects) is not None for taint in group)
            for group in self.taints
        ]
        found: Ints = np.array(counts, np.int64)[self.code]
        return found


def taint_groups(nodes: NodeTable) -> TaintGroups:
    """The nodes by their taints (a cordon counts as its taint), found once until nodes change."""
    version = (nodes.static_epoch, len(nodes.version))
    return kept(nodes.memo, "taints", version, lambda: _taint_groups(nodes))


def _taint_groups(nodes: NodeTable) -> TaintGroups:
    code = np.zeros(len(nodes.version), np.int32)
    groups: dict[tuple[Taint, ...], int] = {(): 0}
    for row in nodes.order.tolist():
        node = nodes.objects[row]
        if node is not None and (node.spec.taints or node.spec.unschedulable):
            code[row] = groups.setdefault(node_taints(node), len(groups))
    return TaintGroups(code, list(groups))


def _padded(mask: Mask, nodes: NodeTable) -> Mask:
    """*mask* with False for rows taken since the labels were coded (names without a node)."""
    missing = len(nodes.version) - len(mask)
    return np.concatenate([mask, np.zeros(missing, np.bool_)]) if missing > 0 else mask
