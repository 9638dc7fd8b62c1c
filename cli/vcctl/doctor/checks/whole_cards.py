"""Pods that hold whole cards while others wait for slices that would fit beside them."""

from __future__ import annotations

from collections.abc import Iterator

from volcano_py.cli.vcctl.doctor.finding import Evidence, Finding, some
from volcano_py.cli.vcctl.tables import counted
from volcano_py.plugins.deviceshare.asks import CardRequest
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.tasks import HOLDS_NODE, Status

WHOLE_CORES = 100


def check(evidence: Evidence) -> Iterator[Finding]:
    """At most one finding: who waits for slices, and which pods hold cards whole."""
    state = evidence.engine.state
    total = sum(len(specs) for specs in state.cards.specs.values())
    waiting = _waiting(state)
    holders = _holders(state)
    if not waiting or not holders:
        return
    cards = sum(len(places) for places in holders.values())
    told = [f"{pod} ({places[0]})" for pod, places in sorted(holders.items())]
    yield Finding(
        "warning",
        f"Pod {min(holders)}",
        f"{counted(len(waiting), 'pod')} without a slice of a card ({some(waiting)}), while {cards} of "
        f"{total} cards are each held whole by one pod: {some(told)}",
        "let those pods ask for the memory they need (nvidia.com/gpumem), or keep some nodes for slices "
        "(a taint, or the node groups of queues)",
    )


def _waiting(state: ClusterState) -> list[str]:
    """Pods that wait and ask for less than a whole card."""
    largest = max((spec.memory_mib for specs in state.cards.specs.values() for spec in specs), default=0)
    found = []
    for key, task in sorted(state.tasks.index.items()):
        if state.tasks.status[task] != Status.PENDING or state.tasks.job[task] < 0:
            continue
        request = state.classes[int(state.tasks.klass[task])].cards
        if isinstance(request, CardRequest) and all(
            ask.memory_on(largest) < largest and ask.cores < WHOLE_CORES for ask in request.asks
        ):
            found.append(key)
    return found


def _holders(state: ClusterState) -> dict[str, list[str]]:
    """Pod -> the cards (``node n1 card 0``) that it holds whole."""
    found: dict[str, list[str]] = {}
    for task, choice in state.tasks.slices.items():
        if not HOLDS_NODE[state.tasks.status[task]]:
            continue
        row = int(state.tasks.node[task])
        specs = state.cards.specs.get(row, ())
        for hold in choice.holds:
            spec = specs[hold.card] if hold.card < len(specs) else None
            if spec is not None and (hold.memory_mib >= spec.memory_mib or hold.cores >= WHOLE_CORES):
                place = f"node {state.nodes.names[row]} card {hold.card}"
                found.setdefault(state.tasks.keys[task], []).append(place)
    return found
