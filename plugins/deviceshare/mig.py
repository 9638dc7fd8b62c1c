"""Instances that a card can be cut into, and which of them to cut so that what remains is most useful.

A card has a fixed list of **options**: an instance of a profile at a place. Two options exclude each other if
their places overlap, or if they belong to different geometries. What is taken of a card is a set of options,
kept as bits; a card that nobody uses has none, so it may be cut anew in any way.

HAMi's plugin reports profiles with their placements; Volcano's knows a list of geometries for each model,
each a named list of instances. Both become the same options. ``room`` asks which option an ask gets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Final

from volcano_py.crds.cards.register import CardReport, MigProfile

_MOST: Final = 62
_MOST_CORES: Final = 10
NONE: Final = -1
"""No option."""


@dataclass(frozen=True, slots=True)
class Option:
    """One instance at one place.

    Attributes:
        label: how records name it: ``group-position``, or the place as ``start-size``.
        excludes: bits of the options that can't be beside it, itself among them.
    """

    profile: str
    memory_mib: int
    cores: int
    label: str
    excludes: int

    @property
    def key(self) -> str:
        """The instance in a slice: profile and place."""
        return f"{self.profile}@{self.label}"


@dataclass(frozen=True)
class Geometry:
    """All options of a card.

    Attributes:
        by_mask: records tell an option by the bits of the places that it takes, as the number of cores.
    """

    options: tuple[Option, ...]
    by_mask: bool = False

    @cached_property
    def by_key(self) -> Mapping[str, int]:
        """Position of an option by ``Option.key``."""
        return {option.key: at for at, option in enumerate(self.options)}

    @cached_property
    def by_label(self) -> Mapping[str, int]:
        """Position of an option by its label alone, for geometries whose labels differ."""
        return {option.label: at for at, option in enumerate(self.options)}

    def find(self, text: str) -> int | None:
        """The option that a record calls *text*: its key, or its label alone."""
        return (self.by_key if "@" in text else self.by_label).get(text)

    @property
    def everything(self) -> int:
        """Bits of all options: what an instance that can't be told is booked as."""
        return (1 << len(self.options)) - 1

    @property
    def largest_mib(self) -> int:
        """Memory of the largest instance."""
        return max((option.memory_mib for option in self.options), default=0)

    def free(self, taken: int) -> int:
        """Bits of the options that can be cut beside those *taken*."""
        blocked = 0
        for at, option in enumerate(self.options):
            if taken >> at & 1:
                blocked |= option.excludes
        return self.everything & ~blocked

    def pick(self, taken: int, memory_mib: int, cores: int) -> int:
        """The option for an ask beside those *taken*; ``NONE`` if there is none.

        The smallest profile that is enough; of its places the one that leaves most of the same, then most
        of all, then the first.
        """
        return _pick(self, taken, memory_mib, cores)


@cache
def _pick(geometry: Geometry, taken: int, memory_mib: int, cores: int) -> int:
    free = geometry.free(taken)
    fitting = [
        (option.memory_mib, option.cores, *_left(geometry, taken | 1 << at, option.profile), at)
        for at, option in enumerate(geometry.options)
        if free >> at & 1 and option.memory_mib >= memory_mib and option.cores >= cores
    ]
    return min(fitting)[-1] if fitting else NONE


def _left(geometry: Geometry, taken: int, profile: str) -> tuple[int, int]:
    """What sorts a choice: how many of *profile* could still be cut, and how useful the rest is."""
    counts = still_cut(geometry, taken)
    sizes = {option.profile: option.memory_mib for option in geometry.options}
    return -counts[profile], -sum(sizes[name] * count for name, count in counts.items())


@cache
def still_cut(geometry: Geometry, taken: int) -> Mapping[str, int]:
    """How many instances of each profile, and of no other, could be cut of what is free."""
    free = geometry.free(taken)
    places: dict[str, list[int]] = {option.profile: [] for option in geometry.options}
    for at, option in enumerate(geometry.options):
        if free >> at & 1:
            places[option.profile].append(at)
    return {profile: _most(geometry, tuple(found)) for profile, found in places.items()}


def _most(geometry: Geometry, places: tuple[int, ...]) -> int:
    """How many of *places* can be cut side by side."""
    if not places:
        return 0
    first, rest = places[0], places[1:]
    beside = tuple(at for at in rest if not geometry.options[first].excludes >> at & 1)
    if len(beside) == len(rest):
        return 1 + _most(geometry, rest)
    return max(1 + _most(geometry, beside), _most(geometry, rest))


@dataclass(frozen=True, slots=True)
class Instance:
    """Of a known geometry: *count* instances of a profile."""

    name: str
    memory_mib: int
    count: int


@dataclass(frozen=True, slots=True)
class KnownGeometry:
    """The geometries of some models, each a name and its instances in order."""

    models: tuple[str, ...]
    groups: tuple[tuple[str, tuple[Instance, ...]], ...]

    def fits(self, model: str) -> bool:
        """Whether *model* is meant: one of the names occurs in it."""
        return any(_plain(name) in _plain(model) for name in self.models)


def geometry_of(report: CardReport, known: Iterable[KnownGeometry]) -> Geometry | None:
    """The options of a card in MIG mode: as it reports, else as is *known* of its model; None without."""
    if report.mig:
        return placed_geometry(report.mig)
    for geometry in known:
        if geometry.fits(report.type):
            return grouped_geometry(geometry.groups)
    return None


@cache
def placed_geometry(profiles: tuple[MigProfile, ...]) -> Geometry:
    """Options of *profiles* at their placements, which exclude each other where they overlap."""
    places = [(profile, start, size) for profile in profiles for start, size in profile.placements][:_MOST]
    cells = [((1 << size) - 1) << start for _, start, size in places]
    return Geometry(
        tuple(
            Option(p.name, p.memory_mib, p.cores, f"{start}-{size}", _bits(c & cells[at] for c in cells))
            for at, (p, start, size) in enumerate(places)
        )
    )


@cache
def core_geometry(cores: int) -> Geometry:
    """Options of a card whose *cores* are handed out one by one: neighbours, each with 1 "MiB"."""
    counts = range(1, cores + 1) if cores <= _MOST_CORES else (1, cores)
    profiles = tuple(
        MigProfile(f"{n}c", n, n, n, tuple((start, n) for start in range(cores - n + 1))) for n in counts
    )
    return Geometry(placed_geometry(profiles).options, by_mask=True)


def mask_of(label: str) -> int:
    """Bits of the places of an option with *label* (``start-size``)."""
    start, _, size = label.partition("-")
    return ((1 << int(size)) - 1) << int(start)


def label_of(mask: int) -> str:
    """The label of an option whose places are the bits of *mask*; "" for none."""
    size = mask.bit_count()
    start = (mask & -mask).bit_length() - 1
    return f"{start}-{size}" if mask > 0 and mask >> start == (1 << size) - 1 else ""


@cache
def grouped_geometry(groups: tuple[tuple[str, tuple[Instance, ...]], ...]) -> Geometry:
    """Options of *groups*: an instance excludes itself and all of other groups."""
    places = list(_positions(groups))[:_MOST]
    whole = max((_computes(instance.name) for _, _, instance in places), default=1)
    options = []
    for at, (group, position, instance) in enumerate(places):
        excludes = _bits(other != group or i == at for i, (other, _, _) in enumerate(places))
        cores = -(-_computes(instance.name) * 100 // max(whole, 1))
        options.append(Option(instance.name, instance.memory_mib, cores, f"{group}-{position}", excludes))
    return Geometry(tuple(options))


def _positions(
    groups: tuple[tuple[str, tuple[Instance, ...]], ...],
) -> Iterator[tuple[str, int, Instance]]:
    for group, instances in groups:
        position = 0
        for instance in instances:
            for _ in range(instance.count):
                yield group, position, instance
                position += 1


def _bits(flags: Iterable[object]) -> int:
    return sum(1 << at for at, flag in enumerate(flags) if flag)


def _computes(profile: str) -> int:
    """Compute slices of ``3g.40gb``."""
    slices = profile.partition("g")[0]
    return int(slices) if slices.isdecimal() else 0


def _plain(model: str) -> str:
    return model.lower().replace(" ", "-")


def read_geometries(document: Any) -> tuple[KnownGeometry, ...]:
    """``knownMigGeometries`` of Volcano's device configuration; raises ``ValueError`` on what is wrong."""
    if not isinstance(document, Sequence) or isinstance(document, str):
        raise ValueError(f"must be a list, not {document!r}")
    return tuple(_known(entry) for entry in document)


def _known(entry: Any) -> KnownGeometry:
    try:
        groups = tuple(
            (
                str(group["group"]),
                tuple(
                    Instance(str(part["name"]), int(part["memory"]), int(part["count"]))
                    for part in group["geometries"]
                ),
            )
            for group in entry["allowedGeometries"]
        )
        return KnownGeometry(tuple(map(str, entry["models"])), groups)
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"{entry!r} has not models and allowedGeometries as they should be") from error


def in_units(known: Iterable[KnownGeometry], unit_mib: int) -> tuple[KnownGeometry, ...]:
    """*known* with memory in units of *unit_mib*, as Volcano's plugin reports cards and pods ask by them.

    Source: Volcano's scheduler, which compares an ask times the factor with an instance, and charges the
    instance's memory divided by it, rounded down.
    """
    return tuple(
        replace(
            each,
            groups=tuple(
                (group, tuple(replace(part, memory_mib=part.memory_mib // unit_mib) for part in parts))
                for group, parts in each.groups
            ),
        )
        for each in known
    )


def _default(models: Sequence[str], *groups: Sequence[tuple[str, int, int]]) -> KnownGeometry:
    return KnownGeometry(
        tuple(models),
        tuple(
            (f"group{number}", tuple(Instance(*part) for part in group))
            for number, group in enumerate(groups, 1)
        ),
    )


DEFAULTS: Final = (
    _default(["A30"], [("1g.6gb", 6144, 4)], [("2g.12gb", 12288, 2)], [("4g.24gb", 24576, 1)]),
    _default(
        ["A100-SXM4-40GB", "A100-40GB-PCIe", "A100-PCIE-40GB"],
        [("1g.5gb", 5120, 7)],
        [("2g.10gb", 10240, 3), ("1g.5gb", 5120, 1)],
        [("3g.20gb", 20480, 2)],
        [("7g.40gb", 40960, 1)],
    ),
    _default(
        ["A100-SXM4-80GB", "A100-80GB-PCIe", "A100-PCIE-80GB"],
        [("1g.10gb", 9728, 7)],
        [("2g.20gb", 19968, 3), ("1g.10gb", 9728, 1)],
        [("3g.40gb", 40192, 2)],
        [("7g.80gb", 80896, 1)],
    ),
)
"""What Volcano's plugin knows without a ConfigMap."""
