"""What a pod's annotations say it holds of cards, and what is written there when it is placed.

A record has one segment a container, empty where it has no card. HAMi counts init containers first and
ends every segment with ``;``, Volcano begins with the app containers and joins segments by ``;``. Records
without empty segments are about. Neighbours: ``crds.cards.records`` for the text, ``holdings`` for what a
record books. Source: ``spec/hami-semantics.md`` 1.3, 1.4 and decisions.md 25, 26, 28.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from volcano_py.crds.cards.errors import WireError
from volcano_py.crds.cards.instances import (
    INSTANCES,
    InstanceEntry,
    Placement,
    decode_instances,
    encode_instances,
)
from volcano_py.crds.cards.records import Part
from volcano_py.crds.cards.records import decode as decode_record
from volcano_py.crds.cards.records import encode as encode_record
from volcano_py.plugins.deviceshare import names
from volcano_py.plugins.deviceshare.asks import ContainerAsk, Role, containers_of
from volcano_py.plugins.deviceshare.backend import Backend, Chip, Family
from volcano_py.plugins.deviceshare.catalogue import STANDARD, Catalogue
from volcano_py.plugins.deviceshare.mig import Geometry, mask_of
from volcano_py.scheduler.model.cards import CardSpec, Slice
from volcano_py.scheduler.model.kube.objects import Pod


class RecordError(ValueError):
    """A record that says nothing that can be booked; the message is for the pod's condition."""


def annotations_for(
    pod: Pod,
    slices: Sequence[Slice],
    node: str,
    cards: Sequence[CardSpec],
    now: float,
    catalogue: Catalogue = STANDARD,
) -> dict[str, str]:
    """What is written on *pod* when it is bound to *node* with *slices* of its *cards*.

    *now* in epoch seconds. The list to allocate is the agent's to consume, the other one stays.
    """
    seconds = str(int(now))
    written: dict[str, str] = {}
    for vendor in sorted({cards[part.card].vendor for part in slices}):
        own = [part for part in slices if cards[part.card].vendor == vendor]
        backend = catalogue.backends[vendor]
        form = backend.families[cards[own[0].card].family]
        held = _by_segment(pod, own, cards, form)
        record = encode_record([_parts(s, backend, form) for s in held], terminated=form.terminated)
        keys = form.keys
        written |= {
            keys.node: node,
            keys.time: seconds,
            keys.allocated: record,
            keys.to_allocate: record,
            keys.phase: "allocating",
            keys.bind_time: seconds,
        }
        if form.name == names.HAMI and any(_is_cut(part, cards[part.card]) for part in own):
            written[INSTANCES] = _instances(held)
        if form.extra is not None:
            written |= form.extra(pod, held, now)
    return written


def _by_segment(
    pod: Pod, slices: Sequence[Slice], cards: Sequence[CardSpec], form: Family
) -> list[list[tuple[Slice, CardSpec]]]:
    """*slices* and their cards by container, in the order of the record's segments."""
    by_container: dict[str, list[tuple[Slice, CardSpec]]] = {}
    for part in slices:
        by_container.setdefault(part.container, []).append((part, cards[part.card]))
    order = _order(pod, form, with_init=_some_init_asks(pod, by_container))
    return [by_container.get(container, []) for container in order]


def _parts(held: Iterable[tuple[Slice, CardSpec]], backend: Backend, form: Family) -> list[Part]:
    """A segment. A part of the hardware is told by its memory, and Volcano's instance by its place."""
    parts = []
    for part, spec in held:
        if isinstance(spec.cut, Geometry) and spec.cut.by_mask:
            mask = mask_of(part.instance.partition("@")[2])
            parts.append(Part(part.uuid, backend.word, 0, mask))
            continue
        label = part.instance.partition("@")[2]
        uuid = f"{part.uuid}[{label}]" if label and form.name == names.VOLCANO else part.uuid
        cores = part.cores
        if isinstance(spec.cut, Chip) and spec.mode != names.SOFT:
            cores = 0 if backend.chip else -(-part.cores * names.WHOLE_CORES // spec.cut.cores)
        word = spec.type if backend.tells_model else backend.word
        parts.append(Part(uuid, word, part.memory_mib, cores))
    return parts


def _is_cut(part: Slice, spec: CardSpec) -> bool:
    """It is an instance that HAMi's list tells of."""
    return bool(part.instance) and not (isinstance(spec.cut, Geometry) and spec.cut.by_mask)


def _instances(held: Sequence[Sequence[tuple[Slice, CardSpec]]]) -> str:
    instances = []
    for container, segment in enumerate(held):
        for at, (part, _) in enumerate(segment):
            profile, _, place = part.instance.partition("@")
            if place:
                start, _, size = place.partition("-")
                placement = Placement(int(start), int(size))
                instances.append(InstanceEntry(container, at, part.uuid, profile, placement))
    return encode_instances(instances)


def written_form(
    annotations: Mapping[str, str], backends: Iterable[Backend], cards: Sequence[CardSpec]
) -> tuple[Backend, Family] | None:
    """Whose record the pod has, and in which form: of the node's *cards* if it has several."""
    found = [
        (backend, form)
        for backend in backends
        for form in backend.families.values()
        if annotations.get(form.keys.allocated)
    ]
    there = {(spec.vendor, spec.family) for spec in cards}
    preferred = [entry for entry in found if (entry[0].vendor, entry[1].name) in there]
    return next(iter(preferred or found), None)


def decode(pod: Pod, form: Family, asks: Sequence[ContainerAsk]) -> list[tuple[str, Part]]:
    """The (container, share) pairs of *pod*'s record, "" where the container can't be told.

    An instance stands in brackets behind its card's identity. Raises ``RecordError`` where the record
    can't be read at all.
    """
    key = form.keys.allocated
    try:
        segments = [list(segment) for segment in decode_record(pod.metadata.annotations[key])]
        _name_instances(pod, segments)
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


def _name_instances(pod: Pod, segments: list[list[Part]]) -> None:
    """Put HAMi's list of instances where Volcano has them: behind the card's identity."""
    text = pod.metadata.annotations.get(INSTANCES)
    if not text:
        return
    try:
        instances = decode_instances(text)
    except WireError as error:
        raise RecordError(f"{INSTANCES} is not a list of instances: {error}") from error
    for one in instances:
        place = f"{one.profile}@{one.placement.start}-{one.placement.size}"
        container, at = one.container_index, one.device_index
        if container < len(segments) and at < len(segments[container]):
            part = segments[container][at]
            segments[container][at] = replace(part, uuid=f"{part.card}[{place}]")


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


def _readings(pod: Pod, form: Family, counts: Mapping[str, int]) -> Iterator[list[str]]:
    """Container orders in which a record may be meant, the likeliest first."""
    orders = [_order(pod, form, with_init=True), _order(pod, form, with_init=False)]
    orders.append([container.name for container in pod.spec.containers])
    yield from orders
    for order in orders:
        yield [name for name in order if counts.get(name)]
