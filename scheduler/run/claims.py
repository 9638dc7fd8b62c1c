"""Claims that have to be bound before the pods of this cycle, and the volumes chosen for them.

What is chosen is pinned in the state, so that no later cycle chooses anew while the binding is on its way; an
outcome takes the pin off (``scheduler/outcomes``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from volcano_py.scheduler.cluster.orders import ClaimOrder
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.framework.decision import Decision
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.kube.podspec import ephemeral_claim_name

Claims = Mapping[str, tuple[ClaimOrder, ...]]
"""Pod key -> its claims that are not bound yet."""


def pin_claims(engine: Engine, decisions: Iterable[Decision]) -> Claims:
    """The claims behind the binds among *decisions*, with their volumes pinned."""
    state = engine.state
    found: dict[str, tuple[ClaimOrder, ...]] = {}
    taken: Mapping[str, str] | None = None
    for decision in decisions:
        if decision.kind != "bind" or not _has_claims(state, decision.pod):
            continue
        taken = _taken(engine) if taken is None else taken
        names = list(_unbound(state, decision.pod))
        chosen = {name: taken.get(name, "") for name in names}
        state.volumes.pin(decision.pod, chosen)
        orders = (ClaimOrder(name.partition("/")[2], volume) for name, volume in chosen.items())
        found[decision.pod] = tuple(orders)
    return found


def _taken(engine: Engine) -> Mapping[str, str]:
    taken: dict[str, str] = {}
    for plugin in engine.plugins:
        taken.update(plugin.volumes_taken())
    return taken


def _has_claims(state: ClusterState, pod: str) -> bool:
    claims = state.classes[int(state.tasks.klass[state.tasks.index[pod]])].constraints.claims
    return bool(claims.named or claims.ephemeral)


def _unbound(state: ClusterState, pod: str) -> Iterator[str]:
    """Keys of the claims of *pod* that are not bound yet, those that are still to be made included."""
    claims = state.classes[int(state.tasks.klass[state.tasks.index[pod]])].constraints.claims
    names = [f"{use.namespace}/{use.name}" for use in claims.named]
    names += [ephemeral_claim_name(pod, template.volume) for template in claims.ephemeral]
    for name in names:
        claim = state.volumes.claims.get(name)
        if claim is None or not claim.bound:
            yield name
