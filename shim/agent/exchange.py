"""The kubelet gave a container other cards than its record says: what records would be true, and fit.

It happens when the kubelet takes pods in another order than supposed, or does not follow our preference. If
the container that was meant still waits, the two exchange their cards; else the record moves to where the
container is. Either is refused where a card would hold more than it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from volcano_py.crds.cards.records import Part
from volcano_py.shim.agent.books import Held, Room, overfull
from volcano_py.shim.agent.identify import Placed, Waiting, wanted_cards
from volcano_py.shim.agent.pods import Claim, Record


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A pod whose record becomes another.

    Attributes:
        before, after: the record.
    """

    placed: Placed
    after: Record

    @property
    def before(self) -> Record:
        """The record as it stands on the pod."""
        return self.placed.record


def settle(
    placed: Sequence[Placed],
    who: Waiting,
    cards: Counter[str],
    others: Iterable[Waiting],
    rooms: Mapping[str, Room],
) -> list[Rewrite] | str:
    """The rewrites, in the order in which they are safe, by which *who* truly has *cards*; [] for none.

    Args:
        placed: all living pods with records.
        who: a container that the kubelet gave *cards*.
        cards: shares on each card.
        others: containers that wait for as many shares of the same resource.
        rooms: what each card has.

    Returns:
        Why it can't be, in words, where no rewrite fits.
    """
    if wanted_cards(who.claim) == cards:
        return []
    mine = Rewrite(_placed(who), moved(who.record, who.claim, cards))
    why = ""
    for other in others:
        if other.pod.uid != who.pod.uid and wanted_cards(other.claim) == cards:
            theirs = Rewrite(_placed(other), moved(other.record, other.claim, wanted_cards(who.claim)))
            why = overfull(_books(placed, [theirs, mine]), rooms)
            if not why:
                # The other first: killed in between, the container's own move alone is left, and fits.
                return [theirs, mine]
    alone = overfull(_books(placed, [mine]), rooms)
    return (why or alone) if alone else [mine]


def moved(record: Record, claim: Claim, cards: Counter[str]) -> Record:
    """*record* with *claim*'s parts on *cards*; a part stays where it is if its card is among them."""
    left = Counter(cards)
    stays = []
    for part in claim.parts:
        stays.append(left[part.card] > 0)
        left[part.card] -= stays[-1]
    free = iter(sorted((+left).elements()))
    parts = tuple(
        part if stay else replace(part, uuid=next(free))
        for part, stay in zip(claim.parts, stays, strict=True)
    )
    return with_parts(record, claim, parts)


def with_parts(record: Record, claim: Claim, parts: tuple[Part, ...]) -> Record:
    """*record* in which *claim* has *parts*."""
    segments = tuple(parts if at == claim.segment else segment for at, segment in enumerate(record.segments))
    claims = tuple(
        replace(each, parts=parts) if each.container == claim.container else each for each in record.claims
    )
    return replace(record, segments=segments, claims=claims)


def held_of(record: Record) -> Held:
    """*record* as the books count it."""
    return [(claim.role, claim.parts) for claim in record.claims]


def _placed(who: Waiting) -> Placed:
    return Placed(who.pod, who.record)


def _books(placed: Iterable[Placed], rewrites: Iterable[Rewrite]) -> list[Held]:
    after = {each.placed.pod.uid: each.after for each in rewrites}
    return [held_of(after.get(each.pod.uid, each.record)) for each in placed]
