"""What a pod asks of cards, read from its containers and annotations into one hashable value.

Memory and cores are per share, never divided by the count. What is not stated is the whole of a card's
memory. Which card serves an ask is decided in ``choose``; what a pod did get is read in ``records``.
Source: ``spec/hami-semantics.md`` 1 and 2, decisions.md 25 to 31.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from volcano_py.plugins.deviceshare import names
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem, child
from volcano_py.scheduler.model.kube.objects import Pod
from volcano_py.scheduler.model.kube.pod import Container
from volcano_py.scheduler.model.kube.request import MOST, amount

WHOLE_PERCENT: Final = 100
LARGEST_CARD_MIB: Final = 2**24
"""What a node may report; a card with more is refused as garbage."""
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False", ""})


class Role(IntEnum):
    """When a container holds its slices: one after another at the start, or for the pod's life."""

    INIT = 0
    SIDECAR = 1
    APP = 2


@dataclass(frozen=True, slots=True)
class ContainerAsk:
    """The cards one container asks for.

    Attributes:
        count: shares, each on another card.
        memory_mib: per share; 0 where *percent* counts.
        percent: per share, of the memory of the card that is taken; 100 where nothing was stated.
        cores: per share, percent; 100 is exclusive use of a card.
    """

    container: str
    role: Role
    count: int
    memory_mib: int
    percent: int
    cores: int

    def memory_on(self, card_mib: int) -> int:
        """MiB of a share on a card with *card_mib*; never 0, which would mean no limit."""
        return self.memory_mib or max(card_mib * self.percent // WHOLE_PERCENT, 1)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which cards a pod accepts; empty accepts all.

    Attributes:
        types, not_types: parts of model names, lower case; any of them is enough.
        uuids, not_uuids: exact identities.
        mode_within: the card's mode must occur in this text.
        mode_equal: the card's mode must be this.
    """

    types: tuple[str, ...] = ()
    not_types: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    not_uuids: tuple[str, ...] = ()
    mode_within: str = ""
    mode_equal: str = ""

    def accepts_type(self, model: str) -> bool:
        """Whether a card of *model* may be taken."""
        name = model.lower()
        wanted = not self.types or any(part in name for part in self.types)
        return wanted and not any(part in name for part in self.not_types)

    def accepts_mode(self, mode: str) -> bool:
        """Whether a card cut in *mode* may be taken."""
        within = not self.mode_within or mode in self.mode_within
        return within and self.mode_equal in ("", mode)

    def accepts_uuid(self, uuid: str) -> bool:
        """Whether this very card may be taken."""
        return (not self.uuids or uuid in self.uuids) and uuid not in self.not_uuids


ANY_CARD: Final = Selection()


@dataclass(frozen=True, slots=True)
class CardRequest:
    """What a pod asks of cards; part of its class's signature.

    Attributes:
        asks: init containers and sidecars in their order, then app containers; only those that ask.
        card_order: ``binpack`` or ``spread`` where the pod wishes one, else "".
        node_order: the same for nodes.
        untouched: only cards that nobody uses.
        numa: the cards of a container on one NUMA node.
        plain: whole cards under ``nvidia.com/gpu`` and nothing else, which a node without registered
            cards serves as well.
    """

    asks: tuple[ContainerAsk, ...]
    selection: Selection = ANY_CARD
    card_order: str = ""
    node_order: str = ""
    untouched: bool = False
    numa: bool = False
    plain: bool = False


def peak(parts: Iterable[tuple[Role, int]]) -> int:
    """The most that containers hold together at one time, from (role, amount) in starting order."""
    top = running = beside = 0
    for role, held in parts:
        if role == Role.INIT:
            top = max(top, beside + held)
            continue
        running += held
        if role == Role.SIDECAR:
            beside += held
    return max(top, running)


def containers_of(pod: Pod) -> Iterator[tuple[Role, Container, str]]:
    """Role, container and field of all containers in starting order."""
    for at, container in enumerate(pod.spec.init_containers):
        role = Role.SIDECAR if container.is_sidecar else Role.INIT
        yield role, container, f"spec.initContainers[{at}]"
    for at, container in enumerate(pod.spec.containers):
        yield Role.APP, container, f"spec.containers[{at}]"


def card_request(pod: Pod) -> tuple[CardRequest | None, tuple[Problem, ...]]:
    """What *pod* asks of cards (None: nothing), and what of it is doubtful but usable.

    Raises ``ObjectError`` naming the container's field for amounts out of range. A pod that has a node
    already is read as well as possible instead, since refusing it would free the cards it sits on.
    """
    reader = _Reader(placed=bool(pod.spec.node_name))
    asks = [ask for part in containers_of(pod) if (ask := reader.container(*part)) is not None]
    if not asks:
        return None, ()
    notes = pod.metadata.annotations
    selection = _selection(notes)
    card_order, untouched = reader.policy(notes, names.CARD_POLICY)
    node_order, _ = reader.policy(notes, names.NODE_POLICY)
    numa = reader.flag(notes, names.NUMA_BIND)
    reader.not_honoured(notes)
    plain = reader.plain and selection == ANY_CARD and not untouched and not numa
    request = CardRequest(tuple(asks), selection, card_order, node_order, untouched, numa, plain)
    return request, tuple(reader.problems)


class _Reader:
    """Reads one pod, collecting what is doubtful."""

    def __init__(self, *, placed: bool) -> None:
        self.placed = placed
        self.plain = True
        self.total_mib = 0
        self.problems: list[Problem] = []

    def container(self, role: Role, container: Container, field: str) -> ContainerAsk | None:
        count, by = self._amount(container, names.COUNT, field)
        memory, memory_field = self._amount(container, names.MEMORY, field)
        percent, percent_field = self._amount(container, names.PERCENT, field)
        cores, cores_field = self._amount(container, names.CORES, field)
        if count is None and (memory or percent or cores):
            count = 1
        if not count:
            return None
        percent = self._at_most(percent, WHOLE_PERCENT, percent_field)
        cores = self._at_most(cores, names.WHOLE_CORES, cores_field)
        if memory and percent:
            self.problems.append(Problem(percent_field, f"ignored, since {memory_field} is given too"))
        if by.endswith(f"[{names.NVIDIA_COUNT}]") and not (memory or percent or cores):
            cores = names.WHOLE_CORES
        else:
            self.plain = False
        self._count_up(count * (memory or LARGEST_CARD_MIB), f"{field}.resources")
        share = 0 if memory else percent or WHOLE_PERCENT
        return ContainerAsk(container.name, role, count, memory or 0, share, cores or 0)

    def _amount(self, container: Container, spellings: tuple[str, ...], field: str) -> tuple[int | None, str]:
        """The whole number under any of *spellings*, limits before requests, and where it stands."""
        found: int | None = None
        where = ""
        for name in spellings:
            for kind, given in (
                ("limits", container.resources.limits),
                ("requests", container.resources.requests),
            ):
                if name not in given:
                    continue
                path = child(f"{field}.resources.{kind}", name)
                value = self._whole(name, given[name], f"{field}.resources.{kind}", path)
                if found is not None and value != found and not self.placed:
                    raise ObjectError(
                        Problem(path, f"is {value}, but {where} says {found} of the same thing")
                    )
                if found is None:
                    found, where = value, path
                break
        return found, where

    def _whole(self, name: str, written: object, field: str, path: str) -> int:
        base = amount(name, written, field)
        if base % names.MILLI and not self.placed:
            raise ObjectError(Problem(path, f"must be a whole number, not {written!r}"))
        return -(-base // names.MILLI)

    def _count_up(self, mib: int, path: str) -> None:
        """Refuse a sum that books could not hold."""
        self.total_mib += mib
        if self.total_mib * names.MILLI > MOST:
            raise ObjectError(Problem(path, "cards times memory is more than can be added up"))

    def _at_most(self, value: int | None, top: int, path: str) -> int:
        """*value* if it is in range; of placed pods the nearest that is."""
        if value is None or value <= top:
            return value or 0
        if not self.placed:
            raise ObjectError(Problem(path, f"must be from 0 to {top}, not {value}"))
        self.problems.append(Problem(path, f"{value} is read as {top}"))
        return top

    def policy(self, notes: Mapping[str, str], key: str) -> tuple[str, bool]:
        """The order that a policy annotation names ("" if none), and whether cards must be untouched."""
        order, untouched = "", False
        for word in _words(notes.get(key, "")):
            if word in ("binpack", "spread"):
                order = order or word
            elif word == "mutex":
                untouched = True
            else:
                self.problems.append(
                    Problem(
                        child("metadata.annotations", key),
                        f"{word!r} has no effect: use binpack, spread or mutex",
                    )
                )
        return order, untouched

    def flag(self, notes: Mapping[str, str], key: str) -> bool:
        text = notes.get(key, "")
        if text not in _TRUE and text not in _FALSE:
            self.problems.append(Problem(child("metadata.annotations", key), f"{text!r} is read as false"))
        return text in _TRUE

    def not_honoured(self, notes: Mapping[str, str]) -> None:
        for key in names.NOT_HONOURED:
            if notes.get(key):
                self.problems.append(
                    Problem(child("metadata.annotations", key), "has no effect in this version")
                )


def _selection(notes: Mapping[str, str]) -> Selection:
    return Selection(
        types=tuple(sorted(_words(notes.get(names.USE_TYPE, "").lower()))),
        not_types=tuple(sorted(_words(notes.get(names.NOT_TYPE, "").lower()))),
        uuids=_all_words(notes, names.USE_UUID),
        not_uuids=_all_words(notes, names.NOT_UUID),
        mode_within=notes.get(names.MODE_WITHIN, ""),
        mode_equal=notes.get(names.MODE_EQUAL, ""),
    )


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _all_words(notes: Mapping[str, str], keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({word for key in keys for word in _words(notes.get(key, ""))}))
