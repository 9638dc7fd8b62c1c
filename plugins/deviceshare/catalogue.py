"""All backends by what is met in objects: resource names of pods, annotations of nodes, names in the books.

Neighbours: ``backends`` for the declarations, ``asks`` and ``register`` for who reads by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from volcano_py.crds.cards.names import ACCELERATOR, ResourceNames
from volcano_py.plugins.deviceshare import names
from volcano_py.plugins.deviceshare.backend import Backend, Register
from volcano_py.plugins.deviceshare.backends import BACKENDS
from volcano_py.plugins.deviceshare.mig import DEFAULTS, KnownGeometry

Books = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""Names under which shares, MiB and cores of a card are carried."""
MEASURES: Final = ("slots", "memory", "cores")


@dataclass(frozen=True, slots=True)
class Asking:
    """What a set of resource names asks for.

    Attributes:
        backends: whose cards; any of them.
        bare: the name whose whole cards a node without registered cards serves too; "" for none.
    """

    names: ResourceNames
    backends: tuple[Backend, ...]
    bare: str = ""

    @property
    def vendors(self) -> tuple[str, ...]:
        """Names of the backends."""
        return tuple(backend.vendor for backend in self.backends)


class Catalogue:
    """The backends that are configured.

    Attributes:
        backends: by vendor.
        registers: annotation of a node -> who reads it, in the order in which they are looked for.
        askings: resource name -> what it asks for.
        geometries: how cards of some models can be cut into instances.
        accelerators: slices of any vendor's cards, asked for by one name.
    """

    def __init__(self, backends: Iterable[Backend], geometries: tuple[KnownGeometry, ...] = DEFAULTS) -> None:
        self.geometries = geometries
        self.backends: dict[str, Backend] = {backend.vendor: backend for backend in backends}
        self.registers: dict[str, tuple[Backend, Register]] = {
            register.key: (backend, register)
            for backend in self.backends.values()
            for register in backend.registers
        }
        self.counted = tuple(backend for backend in self.backends.values() if backend.counted)
        self.askings: dict[str, Asking] = {}
        for backend in self.backends.values():
            asking = Asking(backend.names, (backend,), backend.names.count[0])
            self.askings.update(dict.fromkeys(backend.names, asking))
        for group in sorted({group for backend in self.backends.values() for group in backend.groups}):
            asking = Asking(group_names(group), tuple(self._members(group)), group)
            self.askings.update(dict.fromkeys(asking.names, asking))
        alike = tuple(backend for backend in self.backends.values() if backend.is_sliced)
        self.accelerators = Asking(group_names(ACCELERATOR), alike)
        if alike:
            self.askings.update(dict.fromkeys(self.accelerators.names, self.accelerators))

    @cached_property
    def resources(self) -> frozenset[str]:
        """Every name that asks for cards."""
        return frozenset(self.askings)

    @cached_property
    def counts(self) -> frozenset[str]:
        """Names of shares that a node's columns carry: those of one vendor."""
        return frozenset(
            name for backend in self.backends.values() for name in (*backend.names.count, *backend.groups)
        )

    @cached_property
    def not_offered(self) -> frozenset[str]:
        """Names that ask for cards, but are no amount that a node could have."""
        names = {
            name
            for asking in self.askings.values()
            for name in (*asking.names.percent, *asking.names.priority)
        }
        return frozenset(names | set(self.accelerators.names))

    @cached_property
    def wishes(self) -> frozenset[str]:
        """Annotations of a pod that say something of its cards."""
        keys = {names.CARD_POLICY, names.NODE_POLICY, names.WEIGHTS, names.NUMA_BIND, *names.NOT_HONOURED}
        for backend in self.backends.values():
            wish = backend.wishes
            keys |= {*wish.use_type, *wish.not_type, *wish.use_uuid, *wish.not_uuid}
            keys |= {wish.mode_within, wish.mode_equal, backend.soft_pod}
        return frozenset(keys - {""})

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Further spellings of names in the books."""
        aliases: dict[str, str] = {}
        for backend in self.backends.values():
            aliases |= backend.names.aliases
        return aliases

    def books(self, vendor: str) -> Books:
        """Names under which the cards of *vendor* are carried: its own, and those of its groups."""
        return self._books[vendor]

    def shared_books(self, vendors: Iterable[str]) -> Books:
        """Names of the group that *vendors* are; none if they are no group."""
        wanted = set(vendors)
        if wanted == set(self.accelerators.vendors):
            return self.accelerators.names.books
        for group in sorted({group for vendor in wanted for group in self.backends[vendor].groups}):
            if {backend.vendor for backend in self._members(group)} == wanted:
                return group_names(group).books
        return (), (), ()

    def measures(self, vendors: Iterable[str]) -> Mapping[str, str]:
        """Name in the books of *vendors* -> what of a card it measures."""
        return {
            name: measure
            for vendor in vendors
            for spellings, measure in zip(self.books(vendor), MEASURES, strict=True)
            for name in spellings
        }

    @cached_property
    def _books(self) -> dict[str, Books]:
        books = {}
        for vendor, backend in self.backends.items():
            of_all = (backend.names.books, *(group_names(group).books for group in backend.groups))
            slots, memory, cores = zip(*of_all, strict=True)
            books[vendor] = (sum(slots, ()), sum(memory, ()), sum(cores, ()))
        return books

    def _members(self, group: str) -> Iterable[Backend]:
        return (backend for backend in self.backends.values() if group in backend.groups)


def group_names(group: str) -> ResourceNames:
    """Resource names of a *group* of vendors' cards."""
    return ResourceNames((group,), (f"{group}-memory",), cores=(f"{group}-core",))


STANDARD: Final = Catalogue(BACKENDS)
