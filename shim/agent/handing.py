"""What of a record becomes a container's: shares, limits, and the ids that are on its cards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from volcano_py.crds.cards.instances import INSTANCES
from volcano_py.crds.cards.records import Part
from volcano_py.shim.agent.answers import Host
from volcano_py.shim.agent.books import Held, Room
from volcano_py.shim.agent.exchange import moved
from volcano_py.shim.agent.identify import Waiting, card_of, cards_of, ids_of, wanted_cards
from volcano_py.shim.agent.instances import Instance, Wish, wishes
from volcano_py.shim.agent.kubelet import Holding
from volcano_py.shim.agent.migdriver import MigDriver
from volcano_py.shim.agent.pods import INIT, Claim, Pod, RecordError
from volcano_py.shim.agent.region import DeviceLimit
from volcano_py.shim.agent.slices import Owner, Share
from volcano_py.shim.agent.view import View

_MIB: Final = 1 << 20
_WHOLE_CORES: Final = 100


@dataclass(frozen=True, slots=True)
class Machine:
    """This machine as it is now.

    Attributes:
        host: where things are.
        rooms: what each card has to hand out.
        mig: cards that are cut by the hardware.
        library: name of the quota library's file.
        cutter: makes and ends instances.
    """

    host: Host
    rooms: Mapping[str, Room]
    mig: frozenset[str]
    library: str
    cutter: MigDriver


def is_whole(parts: Sequence[Part], machine: Machine) -> bool:
    """Whether *parts* are whole cards, or cut by the hardware: nothing that a library must hold."""
    return all(
        part.card in machine.mig or (_is_all_memory(part, machine) and part.cores in (0, _WHOLE_CORES))
        for part in parts
    )


def wishes_of(pod: Pod, claim: Claim, machine: Machine) -> list[Wish]:
    """The instances that *claim* of *pod* wants, one for each part; [] where its cards are not cut.

    Raises ``RecordError`` where a cut card is among them and its instance is not named.
    """
    if not any(part.card in machine.mig for part in claim.parts):
        return []
    named = wishes(pod)
    found = [named.get((claim.segment, at)) for at in range(len(claim.parts))]
    for part, wish in zip(claim.parts, found, strict=True):
        if wish is None or wish.card != part.card:
            raise RecordError(f"card {part.card} is in MIG mode, and {INSTANCES} names no instance of it")
    return [wish for wish in found if wish is not None]


def paired(
    owners: Sequence[Owner], view: View, pod: Pod, claims: Sequence[Claim], resource: str, ids: Sequence[str]
) -> list[tuple[Owner, str]]:
    """Which of *owners*, allocations of the same *ids*, is which container's.

    An init container and the containers after it may be given the same ids; they are allocated in the order
    in which they start. What the ledger does not tell of an init container is as it was supposed.
    """
    wanted = frozenset(ids)
    names = [c.container for c in claims if ids_of(view.ledger, pod, c.container, resource) == wanted]
    told_of = list(zip(owners, reversed(names), strict=False))
    inits = {claim.container for claim in claims if claim.role == INIT} - set(names)
    rest = owners[len(told_of) :]
    return told_of + [(o, o.container) for o in rest if o.pod_uid == pod.uid and o.container in inits]


def is_cut(who: Waiting, ids: Iterable[str], machine: Machine) -> bool:
    """Whether *ids*, or what *who* should have, are on cards that the hardware cuts."""
    return bool(machine.mig & (cards_of(ids) + wanted_cards(who.claim)).keys())


def is_told(owner: Owner, holders: Iterable[Holding]) -> bool:
    """Whether one of *holders* is the container that *owner* was confirmed for."""
    return owner.confirmed and any(
        each.container == owner.container
        and (each.uid or (each.namespace, each.pod))
        == (owner.pod_uid if each.uid else (owner.namespace, owner.pod))
        for each in holders
    )


def ids_on(cards: Counter[str], free: Iterable[str], must: Sequence[str], count: int) -> list[str]:
    """*must* and then ids on *cards*, *count* at most; the lowest numbers of each card first."""
    chosen = list(must)
    left = cards - cards_of(chosen)
    for device_id in sorted(free, key=_number):
        card = card_of(device_id)
        if len(chosen) < count and left[card] > 0 and device_id not in chosen:
            chosen.append(device_id)
            left[card] -= 1
    return chosen


def parts_on(who: Waiting, cards: Counter[str]) -> tuple[Part, ...]:
    """The parts of *who* on *cards*, where the kubelet took other ones."""
    if wanted_cards(who.claim) == cards:
        return who.claim.parts
    after = moved(who.record, who.claim, cards)
    return next(claim.parts for claim in after.claims if claim.container == who.claim.container)


def shares_of(
    parts: Sequence[Part], rooms: Mapping[str, Room], instances: Sequence[Instance] = ()
) -> tuple[Share, ...]:
    """*parts* by card, with a limit each: no limit of memory is all that the card has.

    Where *instances* were made, they are what is held, one for each part.
    """
    if instances:
        pairs = zip(instances, parts, strict=True)
        return tuple(Share(made.uuid, part.memory_mib, part.cores) for made, part in pairs)
    by_card: dict[str, Share] = {}
    for part in parts:
        room = rooms.get(part.card)
        memory = part.memory_mib or (room.memory_mib if room else 0)
        before = by_card.get(part.card, Share(part.card))
        by_card[part.card] = Share(part.card, before.memory_mib + memory, before.cores + part.cores)
    return tuple(by_card.values())


def limits_of(owner: Owner, machine: Machine) -> list[DeviceLimit]:
    """What the region says of each card: nothing is held of whole cards, else every card has a limit."""
    parts = [Part(share.uuid, "", share.memory_mib, share.cores) for share in owner.shares]
    if is_whole(parts, machine):
        return [DeviceLimit(part.uuid, 0) for part in parts]
    return [DeviceLimit(p.uuid, p.memory_mib * _MIB, min(p.cores, _WHOLE_CORES)) for p in parts]


def handed_out(owners: Iterable[Owner], living: set[str]) -> list[Held]:
    """What containers of *living* pods have for certain, by pod; the last word on each container counts."""
    last = {(o.pod_uid, o.container): o for o in owners if o.confirmed and o.pod_uid in living}
    by_pod: dict[str, list[tuple[str, list[Part]]]] = {}
    for owner in sorted(last.values(), key=lambda each: each.sequence):
        card = {each.uuid: each.card for each in owner.instances}
        parts = [Part(card.get(s.uuid, s.uuid), "", s.memory_mib, s.cores) for s in owner.shares]
        by_pod.setdefault(owner.pod_uid, []).append((owner.role, parts))
    return list(by_pod.values())


def _is_all_memory(part: Part, machine: Machine) -> bool:
    room = machine.rooms.get(part.card)
    return not part.memory_mib or (room is not None and part.memory_mib >= room.memory_mib)


def _number(device_id: str) -> tuple[str, int, str]:
    card, _, number = device_id.rpartition("-")
    return card, int(number) if number.isdecimal() else 0, device_id
