"""Why no node takes a pod, in numbers: how many nodes fail which check, and which came closest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from volcano_py.scheduler.framework.ladder import free_amounts
from volcano_py.scheduler.framework.points import Check
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.framework.view import NodeView
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.resources import Ints, Mask, Rows32
from volcano_py.scheduler.model.wording import absent_text, amounts_text

NODES_UNFIT = "NodesUnfit"


def explain_nodes(state: ClusterState, klass: TaskClass, checks: list[Check]) -> Refusal:
    """The refusal of *klass* by all live nodes; each node counts under the first check it fails."""
    rows = state.nodes.order
    view = NodeView(state, rows)
    failed: dict[str, int] = {}
    lines: list[tuple[int, str]] = []
    left = np.ones(len(rows), np.bool_)
    for check in checks:
        bad = left & ~check.mask(klass, view)
        count = int(np.count_nonzero(bad))
        if count:
            failed[check.name] = count
            lines.append((count, check.explain(klass, NodeView(state, rows[bad]))))
        left &= ~bad
    short = _shortage(state, klass, rows)
    for name, count in _short_columns(state, short, left):
        failed[f"Insufficient {name}"] = count
        lines.append((count, f"Insufficient {name}"))
    nearest, missing = _nearest(state, klass, rows, short, left)
    lines.sort(key=lambda line: (-line[0], line[1]))
    reasons = _listed(lines)
    message = f"0/{len(rows)} nodes are available" + (f": {reasons}." if reasons else ".")
    absent = _nobody_has(state, missing, rows)
    if absent:
        message += f" And {'; '.join(absent_text(state, name) for name in absent)}."
    elif missing and nearest:
        message += f" Nearest is {nearest}, {amounts_text(state, missing)} short."
    return Refusal(NODES_UNFIT, message, len(rows), failed, missing, nearest, tuple(lines))


def shortened(refusal: Refusal, most: int) -> str:
    """The sentence of *refusal* with the *most* lines that rule out most nodes, and a count of the others."""
    lines, rest = refusal.lines[:most], refusal.lines[most:]
    if not rest:
        return refusal.message
    nodes = sum(count for count, _ in refusal.lines)
    more = f"{sum(count for count, _ in rest)} more nodes" if nodes == refusal.nodes else ""
    more = more or f"{len(rest)} other reason{'s' if len(rest) > 1 else ''}"
    return refusal.message.replace(_listed(refusal.lines), f"{_listed(lines)}, and {more}", 1)


def _listed(lines: Iterable[tuple[int, str]]) -> str:
    return ", ".join(f"{count} {text}" for count, text in lines)


def _shortage(state: ClusterState, klass: TaskClass, rows: Rows32) -> Ints:
    """(n, R) how much each node lacks of what is asked; 0 where it has enough."""
    short: Ints = np.maximum(klass.request - free_amounts(state, rows), 0)
    short[:, klass.request == 0] = 0
    return short


def _short_columns(state: ClusterState, short: Ints, left: Mask) -> list[tuple[str, int]]:
    """How many of the nodes *left* (n,) lack each resource, by *short* (n, R)."""
    counts = np.count_nonzero(short[left] > 0, axis=0)
    return [(state.vocabulary.names[i], int(counts[i])) for i in np.flatnonzero(counts).tolist()]


def _nearest(
    state: ClusterState, klass: TaskClass, rows: Rows32, short: Ints, left: Mask
) -> tuple[str, dict[str, int]]:
    """The node that lacks least, relative to what is asked, among those that pass all other checks."""
    candidates = np.flatnonzero(left & (short > 0).any(axis=1))
    if len(candidates) == 0:
        return "", {}
    asked = np.flatnonzero(klass.request)
    lack = (short[np.ix_(candidates, asked)] / klass.request[asked]).sum(axis=1)
    position = int(candidates[int(lack.argmin())])
    return state.nodes.names[rows[position]], state.vocabulary.amounts(short[position])


def _nobody_has(state: ClusterState, missing: Mapping[str, int], rows: Rows32) -> list[str]:
    """Those resources of *missing* that none of the nodes *rows* offers, by name."""
    column = state.vocabulary.column
    return [name for name in sorted(missing) if not state.nodes.allocatable[rows, column(name)].any()]
