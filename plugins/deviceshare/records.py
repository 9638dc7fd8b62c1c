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

from volcano_py.plugins.deviceshare import names
from volcano_py.plugins.deviceshare.asks import ContainerAsk, Role, containers_of, peak
from volcano_py.scheduler.model.cards import CardHold, CardSpec, Slice
from volcano_py.scheduler.model.kube.objects import Pod


@dataclass(frozen=True, slots=True)
class Family:
    """Annotation keys and form of one family."""

    name: str
    node: str
    time: str
    allocated: str
    to_allocate: str
    phase: str
    bind_time: str
    init_first: bool
    terminated: bool


FAMILIES: Final = {
    names.HAMI: Family(
        name=names.HAMI,
        node="hami.io/vgpu-node",
        time="hami.io/vgpu-time",
        allocated="hami.io/vgpu-devices-allocated",
        to_allocate="hami.io/vgpu-devices-to-allocate",
        phase="hami.io/bind-phase",
        bind_time="hami.io/bind-time",
        init_first=True,
        terminated=True,
    ),
    names.VOLCANO: Family(
        name=names.VOLCANO,
        node="volcano.sh/vgpu-node",
        time="volcano.sh/vgpu-time",
        allocated="volcano.sh/vgpu-ids-new",
        to_allocate="volcano.sh/devices-to-allocate",
        phase="volcano.sh/bind-phase",
        bind_time="volcano.sh/bind-time",
        init_first=False,
        terminated=False,
    ),
}


class RecordError(ValueError):
    """A record that says nothing that can be booked; the message is for the pod's condition."""


@dataclass(frozen=True, slots=True)
class Device:
    """One share as recorded (MiB, percent)."""

    uuid: str
    memory_mib: int
    cores: int


def annotations_for(pod: Pod, slices: Sequence[Slice], node: str, family: str, now: float) -> dict[str, str]:
    """What is written on *pod* when it is bound to *node* with *slices*, for the agent and for a restart.

    *now* in epoch seconds. The list to allocate is the agent's to consume, the other one stays.
    """
    keys = FAMILIES[family]
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
    keys = FAMILIES[family]
    segments = [
        "".join(
            f"{part.uuid},{names.CARD_WORD},{part.memory_mib},{part.cores}:"
            for part in by_container.get(container, ())
        )
        for container in _order(pod, keys, with_init=_some_init_asks(pod, by_container))
    ]
    return "".join(f"{segment};" for segment in segments) if keys.terminated else ";".join(segments)


def written_family(annotations: Mapping[str, str], preferred: str) -> Family | None:
    """The family in which the pod has a record; *preferred* if it has both, None if it has none."""
    found = [name for name, keys in FAMILIES.items() if annotations.get(keys.allocated)]
    if not found:
        return None
    return FAMILIES[preferred if preferred in found else found[0]]


def decode(pod: Pod, keys: Family, asks: Sequence[ContainerAsk]) -> list[tuple[str, Device]]:
    """The (container, share) pairs of *pod*'s record, "" where the container can't be told.

    Raises ``RecordError`` where it can't be read at all.
    """
    text = pod.metadata.annotations[keys.allocated]
    segments = [_segment(segment) for segment in text.strip().split(";")]
    if keys.terminated and len(segments) > 1 and not segments[-1]:
        segments.pop()
    if not any(segments):
        raise RecordError(f"{keys.allocated} names no card")
    counts = {ask.container: ask.count for ask in asks}
    for order in _readings(pod, keys, counts):
        if [len(segment) for segment in segments] == [counts.get(name, 0) for name in order]:
            return [(n, device) for n, segment in zip(order, segments, strict=True) for device in segment]
    return [("", device) for segment in segments for device in segment]


NO_CARD: Final = -1
"""Position of a recorded card that the node does not report."""


def slices_of(
    pairs: Iterable[tuple[str, Device]], cards: Sequence[CardSpec]
) -> tuple[list[Slice], list[Slice]]:
    """Recorded shares as slices of the node's *cards*, and those of cards that are not among them."""
    position = {spec.uuid: at for at, spec in enumerate(cards)}
    slices: list[Slice] = []
    lost: list[Slice] = []
    for container, device in pairs:
        at = position.get(device.uuid)
        if at is None:
            lost.append(Slice(container, NO_CARD, device.uuid, device.memory_mib, device.cores))
            continue
        memory = device.memory_mib or cards[at].memory_mib  # 0 lets the container take all of it
        slices.append(Slice(container, at, device.uuid, memory, device.cores))
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


def _order(pod: Pod, keys: Family, *, with_init: bool) -> list[str]:
    """Container names in the order of the family's segments."""
    by_role: dict[Role, list[str]] = {role: [] for role in Role}
    started = []
    for role, container, _ in containers_of(pod):
        by_role[role].append(container.name)
        started.append(container.name)
    if keys.init_first:
        return started
    return by_role[Role.APP] + by_role[Role.SIDECAR] + (by_role[Role.INIT] if with_init else [])


def _some_init_asks(pod: Pod, by_container: Mapping[str, object]) -> bool:
    return any(role == Role.INIT and c.name in by_container for role, c, _ in containers_of(pod))


def _readings(pod: Pod, keys: Family, counts: Mapping[str, int]) -> list[list[str]]:
    """Container orders in which a record may be meant, the likeliest first."""
    orders = [_order(pod, keys, with_init=True), _order(pod, keys, with_init=False)]
    apps = [container.name for container in pod.spec.containers]
    orders.append(apps)
    orders += [[name for name in order if counts.get(name)] for order in tuple(orders)]
    return orders


def _segment(text: str) -> list[Device]:
    devices = []
    for row in text.split(":"):
        if not row.strip():
            continue
        parts = [part.strip() for part in row.split(",")]
        if len(parts) != 4 or not parts[0] or not _is_amount(parts[2]) or not _is_amount(parts[3]):
            raise RecordError(f"{row!r} is not uuid,type,memory,cores")
        # A MIG instance is written as uuid[group-position].
        devices.append(Device(parts[0].partition("[")[0], int(parts[2]), int(parts[3])))
    return devices


def _is_amount(text: str) -> bool:
    return text.isdecimal() and len(text) <= 12
