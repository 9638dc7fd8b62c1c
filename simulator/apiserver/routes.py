"""Paths: ``/api/v1/namespaces/a/pods/b/binding`` into what it names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_OF_NAMESPACES: Final = frozenset(["status", "finalize"])


@dataclass(frozen=True, slots=True)
class Route:
    """The parts of a resource's path; "" for what it does not have."""

    group: str
    version: str
    namespace: str
    plural: str
    name: str
    subresource: str


def parse_path(path: str) -> Route | None:
    """What *path* names; None where it is the path of no resource."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in _OF_NAMESPACES):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3 and rest[2] != "proxy":
        return None
    plural, name, subresource = [*rest, "", ""][:3]
    return Route(group, version, namespace, plural, name, subresource)
