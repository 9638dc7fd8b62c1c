"""What a pod holds of cards, as text: a segment for each container, a part for each share.

Where a segment stands says whose it is. HAMi ends every segment with ``;`` and counts init containers
first, Volcano joins segments by ``;`` and begins with the app containers. Neighbours: ``register``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from volcano_py.crds.cards.errors import WireError

_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Part:
    """One share.

    Attributes:
        uuid: the card's identity; a MIG instance of Volcano's has ``[group-position]`` behind it.
        type: the vendor's word (``NVIDIA``).
        memory_mib: 0 is no limit.
        cores: percent, 0 is no limit.
    """

    uuid: str
    type: str
    memory_mib: int
    cores: int

    @property
    def card(self) -> str:
        """Identity of the card that an instance is cut from."""
        return self.uuid.partition("[")[0]


@dataclass(frozen=True, slots=True)
class Keys:
    """Annotations of a pod that tell of its cards.

    Attributes:
        node: where its cards are.
        time: when that was decided, epoch seconds.
        allocated: the record that stays.
        to_allocate: the record that the node's agent consumes, segment by segment.
        phase: ``allocating``, ``success`` or ``failed``.
        bind_time: when the pod was bound, epoch seconds.
    """

    node: str
    time: str
    allocated: str
    to_allocate: str
    phase: str
    bind_time: str


HAMI: Final = Keys(
    node="hami.io/vgpu-node",
    time="hami.io/vgpu-time",
    allocated="hami.io/vgpu-devices-allocated",
    to_allocate="hami.io/vgpu-devices-to-allocate",
    phase="hami.io/bind-phase",
    bind_time="hami.io/bind-time",
)
VOLCANO: Final = Keys(
    node="volcano.sh/vgpu-node",
    time="volcano.sh/vgpu-time",
    allocated="volcano.sh/vgpu-ids-new",
    to_allocate="volcano.sh/devices-to-allocate",
    phase="volcano.sh/bind-phase",
    bind_time="volcano.sh/bind-time",
)


def encode(segments: Sequence[Sequence[Part]], *, terminated: bool) -> str:
    """*segments* as HAMi (*terminated*) or Volcano (joined) writes them."""
    texts = [
        "".join(f"{part.uuid},{part.type},{part.memory_mib},{part.cores}:" for part in segment)
        for segment in segments
    ]
    return "".join(f"{text};" for text in texts) if terminated else ";".join(texts)


def decode(text: str) -> tuple[tuple[Part, ...], ...]:
    """The segments of *text* in either form; raises ``WireError``.

    An empty last segment is left out: in the one form it is the end, in the other it says nothing.
    """
    segments = [_segment(segment) for segment in text.strip().split(";")]
    if not segments[-1]:
        segments.pop()
    return tuple(segments)


def _segment(text: str) -> tuple[Part, ...]:
    return tuple(_part(row) for row in text.split(":") if row.strip())


def _part(row: str) -> Part:
    fields = [field.strip() for field in row.split(",")]
    if len(fields) != 4 or not fields[0] or not _is_amount(fields[2]) or not _is_amount(fields[3]):
        raise WireError(f"{row!r} is not uuid,type,memory,cores")
    return Part(fields[0], fields[1], int(fields[2]), int(fields[3]))


def _is_amount(text: str) -> bool:
    return text.isdecimal() and len(text) <= _DIGITS
