"""What a vendor's cards are called and how they are told of: one declaration a vendor, no code of its own.

A backend says which resources ask for its cards, which annotation of a node registers them, which of a pod
wish for certain ones, how asks are rounded, and under which keys a pod's record stands. Everything else is
the same for all. Neighbours: ``backends`` (the declarations), ``catalogue`` (all of them by name).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from volcano_py.crds.cards.names import ResourceNames
from volcano_py.crds.cards.records import HAMI as HAMI_KEYS
from volcano_py.crds.cards.records import Keys
from volcano_py.crds.cards.register import CardReport
from volcano_py.plugins.deviceshare.names import HAMI, WHOLE_CORES
from volcano_py.scheduler.model.cards import CardSpec, Slice
from volcano_py.scheduler.model.kube.objects import Pod

Held = Sequence[Sequence[tuple[Slice, CardSpec]]]
"""What a pod gets, a list for each container in the order of the record's segments."""
Extra = Callable[[Pod, Held, float], Mapping[str, str]]
"""Further annotations that a vendor's own plugin reads, of what was given at a time (epoch seconds)."""


@dataclass(frozen=True, slots=True)
class Register:
    """An annotation of a node that tells of its cards.

    Attributes:
        key: the annotation.
        family: in whose form records are written for these cards.
        read: its text into cards; raises ``WireError``.
        handshake: the annotation in which its plugin, or HAMi's scheduler, says that it went; "" for none.
        cut: its text into the parts that each of the cards can be cut into; None where it tells of none.
        named: where the text does not call cards by an identity they are called ``NODE-named-i``.
    """

    key: str
    family: str
    read: Callable[[str], Sequence[CardReport]]
    handshake: str = ""
    cut: Callable[[str], Chip] | None = None
    named: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    """Cards of a node that only states amounts, told apart by number.

    Attributes:
        resource: which amount tells how many there are.
        each: as much of it is one card.
        memory: the resource whose amount they share evenly, in the backend's units; "" for *memory_mib*.
        memory_mib: of each card.
        cores: the resource whose amount they share evenly, where cards are handed out by single cores;
            a card then has 1 "MiB" a core.
        name: cards are called ``NODE-name-i``.
        slots: shares of each.
        two_numa: the first half is on NUMA node 0, the others on 1.
        unwell: annotation of a node with the numbers of cards that take nothing new, by commas.
    """

    resource: str
    name: str
    each: int = 1
    memory: str = ""
    memory_mib: int = 0
    cores: str = ""
    slots: int = 100
    two_numa: bool = False
    unwell: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """How records of cards are written.

    Attributes:
        init_first: segments of init containers come before those of app containers.
        terminated: each segment ends with ``;`` instead of being joined by it.
        extra: what else is written.
    """

    name: str
    keys: Keys
    init_first: bool = True
    terminated: bool = True
    extra: Extra | None = None


@dataclass(frozen=True, slots=True)
class Wishes:
    """Annotations by which a pod accepts some cards only: words of models, identities, modes."""

    use_type: tuple[str, ...] = ()
    not_type: tuple[str, ...] = ()
    use_uuid: tuple[str, ...] = ()
    not_uuid: tuple[str, ...] = ()
    mode_within: str = ""
    mode_equal: str = ""


@dataclass(frozen=True, slots=True)
class Template:
    """A part that a card can be cut into.

    Attributes:
        size: by which number it is asked for, where that is done; 0 where it is not.
        ident: what the device plugin calls it besides.
    """

    name: str
    memory_mib: int
    cores: int
    size: int = 0
    ident: str = ""


@dataclass(frozen=True, slots=True)
class Chip:
    """How cards of a model are cut in hardware.

    Attributes:
        memory_mib, cores: what a whole card gives.
        capacity_mib: an ask up to this much gets a whole card.
        templates: from the smallest to the largest.
        paired: cards 2i and 2i+1 are handed out together.
    """

    memory_mib: int
    capacity_mib: int
    cores: int
    templates: tuple[Template, ...] = ()
    paired: bool = False

    def part(self, memory_mib: int, percent: int) -> Template | None:
        """The smallest part with *memory_mib* and *percent* of the cores; None: no card has as much.

        A memory of 0 asks for the whole card.
        """
        if memory_mib:
            for template in self.templates:
                roomy = template.cores * WHOLE_CORES >= percent * self.cores
                if template.memory_mib >= memory_mib and roomy:
                    return template
        return self.whole if memory_mib <= self.capacity_mib else None

    @property
    def whole(self) -> Template:
        """All of the card, which has no template's name."""
        return Template("", self.memory_mib, self.cores)

    def held(self, memory_mib: int) -> Template:
        """The part that a record of *memory_mib* means."""
        return self.part(memory_mib, 0) or self.whole


@dataclass(frozen=True, slots=True)
class Units:
    """A card whose cores are counted in *cores* units, of which a percentage is asked."""

    cores: int

    def of(self, percent: int) -> int:
        """Units of *percent*; at least one where any are asked."""
        return max(self.cores * percent // WHOLE_CORES, 1) if percent else 0


@dataclass(frozen=True, slots=True)
class Even:
    """A card that is cut into parts of one size, as its first tenant needs it, until it is empty again.

    Attributes:
        sizes: (MiB, percent of the cores) of a part, from the smallest to the whole card.
    """

    sizes: tuple[tuple[int, int], ...]

    def of(self, memory_mib: int, percent: int) -> tuple[int, int] | None:
        """The smallest part with *memory_mib* and *percent* of the cores; None: there is none.

        A memory of 0 asks for the whole card.
        """
        wanted = memory_mib or self.sizes[-1][0]
        return next((size for size in self.sizes if size[0] >= wanted and size[1] >= percent), None)


@dataclass(frozen=True, slots=True)
class PerSlot:
    """A card whose shares are equal, since nobody can ask for memory of it: *memory_mib* each."""

    memory_mib: int


@dataclass(frozen=True, slots=True)
class Backend:
    """One vendor's cards, or one chip of a vendor.

    Attributes:
        vendor: what we call it.
        word: what records call it.
        unit_mib: MiB of one in the memory resource.
        bytes_with_unit: amounts written with a unit (``4Gi``) are bytes.
        totals: memory and cores of an ask are those of all its shares together.
        sizes: a count is the size of one part of one card (``Template.size``).
        mib_above: in the memory resource an amount above this is in MiB, whatever *unit_mib*; 0: none is.
        most_cores: cores are asked for by number, this many of one card at most, more of several cards.
        in_rows: several cards of a container are neighbours, see ``Wiring.row``.
        whole_cores: cores of a card, as asks count them.
        default_cores, default_mib: of an ask that states none; a memory of 0 is all of a card.
        whole_by_count: a bare count under the first of its names asks for all cores.
        chip: how its cards are cut in hardware.
        even: into which parts its cards are cut, one size at a time.
        soft_pod, soft_node: annotations by which a pod asks for any amounts of such cards instead, and by
            which a node says that it has them.
        soft_nodes: nodes that say nothing have them.
        core_units: cards register how many units their cores are.
        tells_model: records call a card by its model, not by *word*.
        groups: further names by which it is asked for together with others.
    """

    vendor: str
    word: str
    names: ResourceNames
    families: Mapping[str, Family] = field(hash=False)
    registers: tuple[Register, ...] = ()
    counted: Counted | None = None
    wishes: Wishes = Wishes()
    unit_mib: int = 1
    bytes_with_unit: bool = False
    totals: bool = False
    sizes: bool = False
    mib_above: int = 0
    most_cores: int = 0
    in_rows: bool = False
    whole_cores: int = WHOLE_CORES
    default_cores: int = 0
    default_mib: int = 0
    whole_by_count: bool = False
    chip: Chip | None = None
    even: Even | None = None
    soft_pod: str = ""
    soft_node: str = ""
    soft_nodes: bool = False
    core_units: bool = False
    tells_model: bool = False
    groups: tuple[str, ...] = ()

    @property
    def is_sliced(self) -> bool:
        """Its cards are handed out in MiB and percent, as those of most others are."""
        whole_only = self.counted is not None and self.counted.slots == 1
        return bool(self.names.memory) and self.whole_cores == WHOLE_CORES and not whole_only


def in_nanoseconds(now: float) -> str:
    """The second *now* is in (epoch seconds) as vendors' plugins read times."""
    return str(int(now) * 1_000_000_000)


def hami_family(word: str, *, extra: Extra | None = None, consumed: bool = True) -> dict[str, Family]:
    """Records in HAMi's form under ``hami.io/<word>-devices-...``, by family.

    A vendor whose plugin consumes no list (*consumed* false) finds what it needs under *extra* keys.
    """
    allocated = f"hami.io/{word}-devices-allocated"
    keys = Keys(
        node=HAMI_KEYS.node,
        time=HAMI_KEYS.time,
        allocated=allocated,
        to_allocate=f"hami.io/{word}-devices-to-allocate" if consumed else allocated,
        phase=HAMI_KEYS.phase,
        bind_time=HAMI_KEYS.bind_time,
    )
    return {HAMI: Family(HAMI, keys, extra=extra)}
