"""What a controller may want done. Values only; ``reconciler.py`` carries them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from volcano_py.controllers.records import GroupRecord, Identity, Owner

__all__ = [
    "Act",
    "Create",
    "Delete",
    "Look",
    "LookUpOwner",
    "LookUpPod",
    "Patch",
    "Plan",
    "RemoveIdleGroup",
    "Say",
]


@dataclass(frozen=True, slots=True)
class Create:
    """Make an object. That it exists already is as good; then it is read.

    Attributes:
        for_whom: the object to tell when the server refuses.
    """

    kind: str
    namespace: str
    document: Mapping[str, Any]
    for_whom: Identity | None = None


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge patch of exactly this object, not of a later one of its name.

    Attributes:
        sub: a subresource.
        exact: only if the object is still as it was seen; else it is read again. On the status endpoint of
            a custom object nothing else keeps a later object of the name from being written.
    """

    target: Identity
    change: Mapping[str, Any]
    sub: str = ""
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete exactly this object."""

    target: Identity


@dataclass(frozen=True, slots=True)
class Look:
    """Read one object: it should be there and was not seen."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class LookUpPod:
    """Read again what a PodGroup is made from, which isn't kept of pods that have one."""

    target: Identity


@dataclass(frozen=True, slots=True)
class LookUpOwner:
    """Read the annotations of a pod's owner."""

    namespace: str
    owner: Owner


@dataclass(frozen=True, slots=True)
class RemoveIdleGroup:
    """Delete the PodGroup if, asked again, its owner wants no pods and has none."""

    group: GroupRecord
    owner: Owner


@dataclass(frozen=True, slots=True)
class Say:
    """An event on an object."""

    target: Identity
    reason: str
    message: str
    warning: bool = False


Act = Create | Patch | Delete | Look | LookUpPod | LookUpOwner | RemoveIdleGroup | Say


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done about one key.

    Attributes:
        acts: carried out one after the other, until one finds its object otherwise than supposed.
        then: carried out after those, together, since none depends on another.
        again_s: ask again after these seconds although nothing changes; None: only when something does.
    """

    acts: tuple[Act, ...] = ()
    then: tuple[Act, ...] = ()
    again_s: float | None = None
