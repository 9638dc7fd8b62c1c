"""Reads what a pod asks of cards out of its containers and annotations.

Neighbours: ``asks`` for the value, ``catalogue`` for which names mean what.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from volcano_py.crds.cards.names import ResourceNames
from volcano_py.plugins.deviceshare import names
from volcano_py.plugins.deviceshare.asks import (
    LARGEST_CARD_MIB,
    WHOLE_PERCENT,
    CardRequest,
    ContainerAsk,
    Role,
    Selection,
    containers_of,
)
from volcano_py.plugins.deviceshare.backend import Backend, Wishes
from volcano_py.plugins.deviceshare.catalogue import STANDARD, Asking, Catalogue
from volcano_py.plugins.deviceshare.policies import read_policies
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem, child
from volcano_py.scheduler.model.kube.objects import Pod
from volcano_py.scheduler.model.kube.pod import Container
from volcano_py.scheduler.model.kube.request import MOST, amount

_MIB: Final = 2**20
_NOTES: Final = "metadata.annotations"
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False", ""})


def card_request(pod: Pod, catalogue: Catalogue = STANDARD) -> tuple[CardRequest | None, tuple[Problem, ...]]:
    """What *pod* asks of cards (None: nothing), and what of it is doubtful but usable.

    Raises ``ObjectError`` naming the container's field for amounts out of range. A pod that has a node
    already is read as well as possible instead, since refusing it would free the cards it sits on.
    """
    reader = _Reader(catalogue, placed=bool(pod.spec.node_name))
    asks = [ask for part in containers_of(pod) if (ask := reader.container(*part)) is not None]
    asking = reader.asking
    if not asks or asking is None:
        return None, ()
    notes = pod.metadata.annotations
    selection = _selection(notes, asking)
    policies = read_policies(notes, reader.problems)
    numa = reader.flag(notes, names.NUMA_BIND)
    reader.not_honoured(notes)
    free = selection == Selection(asking.vendors) and not policies.untouched and not numa
    request = CardRequest(
        asks=tuple(asks),
        selection=selection,
        card_order=policies.card_order,
        node_order=policies.node_order,
        untouched=policies.untouched,
        numa=numa,
        bare=asking.bare if reader.plain and free else "",
        soft=_is_soft(notes, asking),
        linked=policies.linked,
        together=policies.together,
        weights=policies.weights,
    )
    return request, tuple(reader.problems)


def _is_soft(notes: Mapping[str, str], asking: Asking) -> bool:
    """The pod asks for any amounts of cards that can be cut in hardware."""
    keys = {backend.soft_pod for backend in asking.backends} - {""}
    return any(notes.get(key) == names.SOFT for key in keys)


class _Reader:
    """Reads one pod, collecting what is doubtful.

    Attributes:
        asking: what its resource names ask for; a pod asks for one kind of cards.
        plain: it asks for whole cards and nothing else.
    """

    def __init__(self, catalogue: Catalogue, *, placed: bool) -> None:
        self.catalogue = catalogue
        self.placed = placed
        self.asking: Asking | None = None
        self.plain = True
        self.total_mib = 0
        self.problems: list[Problem] = []

    def container(self, role: Role, container: Container, field: str) -> ContainerAsk | None:
        """What one container asks, if anything."""
        asking = self._asking(container, field)
        if asking is None:
            return None
        backend, spelled = asking.backends[0], asking.names
        count, by = self._amount(container, spelled.count, field)
        memory, memory_field = self._memory(container, spelled, backend, field)
        percent, percent_field = self._amount(container, spelled.percent, field)
        cores, cores_field = self._amount(container, spelled.cores, field)
        size = 0
        if backend.sizes and count is not None:
            size, count = count, min(count, 1)
        if backend.most_cores and count is None and cores:
            count, memory, cores = self._by_cores(cores, backend.most_cores, cores_field)
        if count is None and (memory or percent or cores):
            count = 1
            said = f"no {' or '.join(spelled.count)} is asked for: a card is kept, the kubelet hands out none"
            self.problems.append(Problem(f"{field}.resources", said))
        if not count:
            return None
        self._one_name(container, spelled.count, field)
        if backend.sizes and not (size or memory):
            percent = 1  # whatever memory comes with the cores that are asked for
        memory, cores = _each(backend, count, memory, cores)
        percent = self._at_most(percent, WHOLE_PERCENT, percent_field)
        cores = self._at_most(cores, backend.whole_cores, cores_field) if cores is not None else None
        if memory and percent:
            self.problems.append(Problem(percent_field, f"ignored, since {memory_field} is given too"))
        bare = by.endswith(f"[{asking.bare}]") and not (memory or percent or cores or size)
        if cores is None or (bare and backend.whole_by_count):
            cores = backend.whole_cores if bare and backend.whole_by_count else backend.default_cores
        if not memory and not percent and backend.default_mib:
            memory, bare = backend.default_mib, False
        self.plain &= bare
        self._count_up(count * (memory or LARGEST_CARD_MIB), f"{field}.resources")
        share = 0 if memory else percent or WHOLE_PERCENT
        ask = ContainerAsk(container.name, role, count, memory or 0, share, cores, size)
        return self._rounded(ask, backend, by)

    def _asking(self, container: Container, field: str) -> Asking | None:
        """The kind of cards that *container* asks for; another kind than the pod's is an error."""
        amounts = container.resources
        for kind, given in (("limits", amounts.limits), ("requests", amounts.requests)):
            for name in given:
                asking = self.catalogue.askings.get(name)
                if asking is None:
                    continue
                if self.asking is None:
                    self.asking = asking
                elif asking is not self.asking and not self.placed:
                    other = self.asking.names.count[0]
                    message = f"a pod asks for one kind of cards, and this one asks for {other}"
                    raise ObjectError(Problem(child(f"{field}.resources.{kind}", name), message))
        return self.asking

    def _one_name(self, container: Container, counts: Iterable[str], field: str) -> None:
        """Refuse a container with several of the names *counts*: the kubelet hands out cards under each."""
        amounts = container.resources
        given = [name for name in counts if name in amounts.limits or name in amounts.requests]
        if len(given) > 1 and not self.placed:
            said = f"asks by {len(given)} names, {' and '.join(given)}, and would get cards by each: keep one"
            raise ObjectError(Problem(f"{field}.resources", said))

    def _memory(
        self, container: Container, spelled: ResourceNames, backend: Backend, field: str
    ) -> tuple[int | None, str]:
        """MiB, and where it stands."""
        memory, where = self._amount(container, spelled.memory, field)
        if memory is None:
            return None, where
        if backend.bytes_with_unit and _has_unit(container, spelled.memory):
            return -(-memory // _MIB), where
        if backend.mib_above and memory > backend.mib_above:
            return memory, where
        return memory * backend.unit_mib, where

    def _by_cores(self, cores: int, most: int, path: str) -> tuple[int, int, int]:
        """Cards, MiB and cores of each for an ask by *cores* alone, of which a card gives *most*."""
        if cores <= most:
            return 1, cores, cores
        if cores % most and not self.placed:
            raise ObjectError(Problem(path, f"must be 1 or a multiple of {most}, not {cores}"))
        return -(-cores // most), most, most

    def _rounded(self, ask: ContainerAsk, backend: Backend, by: str) -> ContainerAsk:
        """*ask* as far as the chip is known; a part of it is told in ``PodShape.problems``."""
        chip, asking = backend.chip, self.asking
        if chip is None or not chip.paired or asking is None or len(asking.backends) > 1:
            return ask
        if ask.count == 1:
            self.problems.append(Problem(by, "1 is read as 2: these cards are handed out in pairs"))
            return ContainerAsk(ask.container, ask.role, 2, ask.memory_mib, ask.percent, ask.cores)
        if ask.count % 2 and not self.placed:
            raise ObjectError(Problem(by, f"must be 1 or even, not {ask.count}: cards come in pairs"))
        return ask

    def _amount(self, container: Container, spellings: Iterable[str], field: str) -> tuple[int | None, str]:
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

    def flag(self, notes: Mapping[str, str], key: str) -> bool:
        """The flag under *key*."""
        text = notes.get(key, "")
        if text not in _TRUE and text not in _FALSE:
            self.problems.append(Problem(child(_NOTES, key), f"{text!r} is read as false"))
        return text in _TRUE

    def not_honoured(self, notes: Mapping[str, str]) -> None:
        """Name the annotations that mean something elsewhere."""
        for key in names.NOT_HONOURED:
            if notes.get(key):
                self.problems.append(Problem(child(_NOTES, key), "has no effect in this version"))


def _each(
    backend: Backend, count: int, memory: int | None, cores: int | None
) -> tuple[int | None, int | None]:
    """Memory and cores of one share."""
    if not backend.totals or count == 1:
        return memory, cores
    return (None if memory is None else memory // count), (None if cores is None else cores // count)


def _has_unit(container: Container, spellings: Iterable[str]) -> bool:
    given = {**container.resources.requests, **container.resources.limits}
    return any(str(given[name])[-1:].isalpha() for name in spellings if name in given)


def _selection(notes: Mapping[str, str], asking: Asking) -> Selection:
    if not notes:
        return Selection(asking.vendors)
    wishes = [backend.wishes for backend in asking.backends]
    return Selection(
        vendors=asking.vendors,
        types=tuple(word.lower() for word in _all_words(notes, wishes, "use_type")),
        not_types=tuple(word.lower() for word in _all_words(notes, wishes, "not_type")),
        uuids=_all_words(notes, wishes, "use_uuid"),
        not_uuids=_all_words(notes, wishes, "not_uuid"),
        mode_within=_first(notes, [wish.mode_within for wish in wishes]),
        mode_equal=names.SOFT
        if _is_soft(notes, asking)
        else _first(notes, [wish.mode_equal for wish in wishes]),
    )


def _first(notes: Mapping[str, str], keys: Iterable[str]) -> str:
    return next((notes[key] for key in keys if notes.get(key)), "")


def _all_words(notes: Mapping[str, str], wishes: Iterable[Wishes], what: str) -> tuple[str, ...]:
    keys = {key for wish in wishes for key in getattr(wish, what)}
    return tuple(sorted({word for key in keys for word in words_of(notes.get(key, ""))}))


def words_of(text: str) -> list[str]:
    """The words of a list with commas."""
    return [word.strip() for word in text.split(",") if word.strip()]
