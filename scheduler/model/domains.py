"""Topology domains of spread constraints: which nodes lie in which, and whose pods count there.

Source of the rules: kube-scheduler's PodTopologySpread. Pods count on nodes that have every topology key
of the class's constraints of the same kind (hard or soft) and that the constraint's policies let count;
a domain exists where such a node does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.scheduler.model.kept import kept
from volcano_py.scheduler.model.node_match import BLOCKING, rows_wanted, taint_groups

if TYPE_CHECKING:
    from volcano_py.scheduler.model.classes import TaskClass
    from volcano_py.scheduler.model.coupling import Coupling
    from volcano_py.scheduler.model.nodes import NodeTable
    from volcano_py.scheduler.model.resources import Ints, Mask, Rows32
    from volcano_py.scheduler.model.terms import Spread

_WANTED: Final = "nodes.wanted"


@dataclass(frozen=True, slots=True, eq=False)
class Domains:
    """The domains of one constraint.

    Attributes:
        spread: the constraint and its term.
        code: (rows,) domain of each node row, 0 for none.
        counted: (rows,) rows whose pods count, as 0 or 1.
        exists: (domains,) some counted row lies there; never for 0.
    """

    spread: Spread
    code: Rows32
    counted: Ints
    exists: Mask

    def sums(self, counts: Ints) -> Ints:
        """(domains,) the counted ones of *counts* (at least (rows,)) in each domain."""
        here = counts[: len(self.code)] * self.counted
        # bincount sums in float64, exact up to 2**53 pods.
        return np.bincount(self.code, here, minlength=len(self.exists)).astype(np.int64)


def wanted(nodes: NodeTable, klass: TaskClass) -> Mask:
    """(capacity,) node rows that the class's node selector and required node affinity accept."""
    version = (nodes.static_epoch, len(nodes.version))
    return kept(klass.memo, _WANTED, version, lambda: rows_wanted(nodes, klass.constraints))


def spread_domains(nodes: NodeTable, coupling: Coupling, klass: TaskClass, *, hard: bool) -> list[Domains]:
    """The domains of each of the class's *hard* (or soft) constraints, kept until nodes change."""
    version = (nodes.static_epoch, len(nodes.version))
    spreads = [spread for spread in coupling.speech(klass).spread if spread.rule.hard == hard]
    return kept(klass.memo, f"domains {hard}", version, lambda: _compute(nodes, klass, spreads))


def _compute(nodes: NodeTable, klass: TaskClass, spreads: list[Spread]) -> list[Domains]:
    codes = [nodes.label_codes(spread.rule.topology_key)[0] for spread in spreads]
    size = min((len(each) for each in codes), default=0)
    everywhere: Mask = nodes.live[:size].copy()
    for each in codes:
        everywhere &= each[:size] >= 0
    pairs = zip(spreads, codes, strict=True)
    return [_one(nodes, klass, spread, everywhere, each[:size] + 1) for spread, each in pairs]


def _one(nodes: NodeTable, klass: TaskClass, spread: Spread, everywhere: Mask, code: Rows32) -> Domains:
    rule = spread.rule
    counted = everywhere.copy()
    if rule.honor_affinity:
        counted &= wanted(nodes, klass)[: len(code)]
    if rule.honor_taints:
        groups = taint_groups(nodes)
        counted &= groups.tolerated(klass.constraints.tolerations, BLOCKING)[: len(code)]
    exists = np.zeros(int(code.max(initial=0)) + 1, np.bool_)
    exists[code[counted]] = True
    return Domains(spread, code, counted.astype(np.int64), exists)
