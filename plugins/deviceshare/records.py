"""What a pod's annotations say it holds of cards, and what is written there when it is placed.

A record has one segment a container, empty where it has no card. HAMi counts init containers first and
ends every segment with ``;``, Volcano begins with the app containers and joins segments by ``;``. Records
without empty segments are about. Neighbours: ``asks`` for what was asked, ``register`` for the cards.
Source: ``spec/hami-semantics.md`` 1.3, 1.4 and decisions.md 25, 26, 28.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from volcano_py.crds.cards.errors import WireError
from volcano_py.crds.cards.records import HAMI, VOLCANO, Keys, Part
from volcano_py.crds.cards.records import decode as decode_record
from volcano_py.crds.cards.records import encode as encode_record
from volcano_py.plugins.deviceshare import names
from volcano_py.plugins.deviceshare.asks import ContainerAsk, Role, containers_of, peak
from volcano_py.scheduler.model.cards import CardHold, CardSpec, Slice
from volcano_py.scheduler.model.kube.objects import Pod


@dataclass(frozen=True, slots=True)
class Family:
    """Annotation keys and form of one family."""

    name: str
    keys: Keys
    init_first: bool
    terminated: bool


FAMILIES: Final = {
    names.HAMI: Family(names.HAMI, HAMI, init_first=True, terminated=True),
    names.VOLCANO: Family(names.VOLCANO, VOLCANO, init_first=False, terminated=False),
}


class RecordError(ValueError):
    """A record that says nothing that can be booked; the message is for the pod's condition."""


def annotations_for(pod: Pod, slices: Sequence[Slice], node: str, family: str, now: float) -> dict[str, str]:
    """What is written on *pod* when it is bound to *node* with *slices*, for the agent and for a restart.

    *now* in epoch seconds. The list to allocate is the agent's to consume, the other one stays.
    """
    keys = FAMILIES[family].keys
    record = encode(pod, slices, family)
    seconds = str(int(now))
    return {
        keys.node: node,
        keys.time: seconds,
        keys.allocated: record,
        keys.to_allocate: record,
        keys.phase: "allocating",
        keys.bind_time: seconds,
    }


def encode(pod: Pod, slices: Sequence[Slice], family: str) -> str:
    """*slices* of *pod* in the form of *family*."""
    by_container: dict[str, list[Slice]] = {}
    for part in slices:
        by_container.setdefault(part.container, []).append(part)
    form = FAMILIES[family]
    segments = [
        [
            Part(part.uuid, names.CARD_WORD, part.memory_mib, part.cores)
            for part in by_container.get(container, ())
        ]
        for container in _order(pod, form, with_init=_some_init_asks(pod, by_container))
    ]
    return encode_record(segments, terminated=form.terminated)


def written_family(annotations: Mapping[str, str], preferred: str) -> Family | None:
    """The family in which the pod has a record; *preferred* if it has both, None if it has none."""
    found = [name for name, form in FAMILIES.items() if annotations.get(form.keys.allocated)]
    if not found:
        return None
    return FAMILIES[preferred if preferred in found else found[0]]


def decode(pod: Pod, form: Family, asks: Sequence[ContainerAsk]) -> list[tuple[str, Part]]:
    """The (container, share) pairs of *pod*'s record, "" where the container can't be told.

    Raises ``RecordError`` where it can't be read at all.
    """
    key = form.keys.allocated
    try:
        segments = decode_record(pod.metadata.annotations[key])
    except WireError as error:
        raise RecordError(str(error)) from error
    if not any(segments):
        raise RecordError(f"{key} names no card")
    counts = {ask.container: ask.count for ask in asks}
    given = [len(segment) for segment in segments]
    for order in _readings(pod, form, counts):
        wanted = [counts.get(name, 0) for name in order]
        if given == wanted[: len(given)] and not any(wanted[len(given) :]):
            pairs = zip(order, segments, strict=False)
            return [(name, part) for name, segment in pairs for part in segment]
    return [("", part) for segment in segments for part in segment]


NO_CARD: Final = -1
"""Position of a recorded card that the node does not report."""


def slices_of(
    pairs: Iterable[tuple[str, Part]], cards: Sequence[CardSpec]
) -> tuple[list[Slice], list[Slice]]:
    """Recorded shares as slices of the node's *cards*, and those of cards that are not among them."""
    position = {spec.uuid: at for at, spec in enumerate(cards)}
    slices: list[Slice] = []
    lost: list[Slice] = []
    for container, part in pairs:
        at = position.get(part.card)
        if at is None:
            lost.append(Slice(container, NO_CARD, part.card, part.memory_mib, part.cores))
            continue
        memory = part.memory_mib or cards[at].memory_mib  # 0 lets the container take all of it
        slices.append(Slice(container, at, part.card, memory, part.cores))
    return slices, lost


def holds_of(slices: Iterable[Slice], roles: Mapping[str, Role]) -> tuple[CardHold, ...]:
    """What *slices* book on each card: init containers one after another, the others together.

    *slices* stand in the order in which their containers start. A container without a role counts as
    one that runs all the time.
    """
    by_card: dict[int, list[tuple[Role, Slice]]] = {}
    for part in slices:
        by_card.setdefault(part.card, []).append((roles.get(part.container, Role.APP), part))
    return tuple(
        CardHold(
            card,
            peak((role, part.memory_mib) for role, part in parts),
            peak((role, part.cores) for role, part in parts),
            peak((role, 1) for role, _ in parts),
        )
        for card, parts in sorted(by_card.items())
    )


def _order(pod: Pod, form: Family, *, with_init: bool) -> list[str]:
    """Container names in the order of the family's segments."""
    by_role: dict[Role, list[str]] = {role: [] for role in Role}
    started = []
    for role, container, _ in containers_of(pod):
        by_role[role].append(container.name)
        started.append(container.name)
    if form.init_first:
        return started
    return by_role[Role.APP] + by_role[Role.SIDECAR] + (by_role[Role.INIT] if with_init else [])


def _some_init_asks(pod: Pod, by_container: Mapping[str, object]) -> bool:
    return any(role == Role.INIT and c.name in by_container for role, c, _ in containers_of(pod))


def _readings(pod: Pod, form: Family, counts: Mapping[str, int]) -> list[list[str]]:
    """Container orders in which a record may be meant, the likeliest first."""
    orders = [_order(pod, form, with_init=True), _order(pod, form, with_init=False)]
    apps = [container.name for container in pod.spec.containers]
    orders.append(apps)
    orders += [[name for name in order if counts.get(name)] for order in tuple(orders)]
    return orders
