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
from volcano_py.scheduler.model.storage import Claim, claim_of_template

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
        unbound = dict(_unbound(state, decision.pod))
        chosen = {key: taken.get(key, "") for key in unbound}
        state.volumes.pin(decision.pod, chosen)
        found[decision.pod] = tuple(_order(state, key, claim, chosen[key]) for key, claim in unbound.items())
    return found


def _taken(engine: Engine) -> Mapping[str, str]:
    taken: dict[str, str] = {}
    for plugin in engine.plugins:
        taken.update(plugin.volumes_taken())
    return taken


def _has_claims(state: ClusterState, pod: str) -> bool:
    claims = state.classes[int(state.tasks.klass[state.tasks.index[pod]])].constraints.claims
    return bool(claims.named or claims.ephemeral)


def _unbound(state: ClusterState, pod: str) -> Iterator[tuple[str, Claim | None]]:
    """The claims of *pod* that are not bound yet, by key, those that are still to be made included.

    None where nothing is known of a claim, which happens if no plugin looks at claims.
    """
    claims = state.classes[int(state.tasks.klass[state.tasks.index[pod]])].constraints.claims
    meant: list[tuple[str, Claim | None]] = [(f"{use.namespace}/{use.name}", None) for use in claims.named]
    for template in claims.ephemeral:
        key = ephemeral_claim_name(pod, template.volume)
        meant.append((key, claim_of_template(template, key)))
    for key, instead in meant:
        claim = state.volumes.claims.get(key, instead)
        if claim is None or not claim.bound:
            yield key, claim


def _order(state: ClusterState, key: str, claim: Claim | None, volume: str) -> ClaimOrder:
    """Bind the claim *key*, to *volume* if one is chosen; with what people have to know of its class."""
    name = key.partition("/")[2]
    kind = None if claim is None else state.volumes.storage_class(claim)
    if kind is None:
        return ClaimOrder(name, volume)
    return ClaimOrder(name, volume, kind.name, kind.provisioner)
