"""What the server writes into a CustomResourceDefinition's status: whether its names are free.

A definition is served once its names are accepted; until then its objects cannot be reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from volcano_py.simulator.apiserver.schema.kinds import Document, ServedKind

_CONFLICTS = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


def status_of(document: Document, kinds: Iterable[ServedKind], now: str) -> Document:
    """The status of a definition.

    Args:
        document: The CustomResourceDefinition as stored.
        kinds: What is served now.
        now: The time, RFC 3339, for conditions that change.
    """
    spec = document["spec"]
    before: Mapping[str, Any] = document.get("status") or {}
    bucket = f"{spec['names']['plural']}.{spec['group']}"
    others = [kind for kind in kinds if kind.group == spec["group"] and kind.bucket != bucket]
    conflict = _conflict(spec["names"], others)
    stored = list(before.get("storedVersions") or ())
    stored += [one["name"] for one in spec["versions"] if one["storage"] and one["name"] not in stored]
    return {
        "conditions": _conditions(before.get("conditions") or (), conflict, now),
        "acceptedNames": dict(before.get("acceptedNames") or {"plural": "", "kind": ""})
        if conflict
        else spec["names"],
        "storedVersions": stored,
    }


def is_established(status: Mapping[str, Any]) -> bool:
    """Whether a definition with this status is to be served."""
    return any(
        one["type"] == "Established" and one["status"] == "True" for one in status.get("conditions") or ()
    )


def _conflict(names: Mapping[str, Any], others: Iterable[ServedKind]) -> tuple[str, str] | None:
    """Reason and message where another kind of the group has one of the names."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        resources |= {other.plural, other.singular, *other.names.short}
        kinds |= {other.kind, other.list_kind}
    for field, reason in _CONFLICTS.items():
        value = names.get(field)
        taken = kinds if field in ("kind", "listKind") else resources
        for name in value if isinstance(value, list) else [value]:
            if name in taken:
                return reason, f'"{name}" is already in use'
    return None


def _conditions(
    before: Iterable[Mapping[str, Any]], conflict: tuple[str, str] | None, now: str
) -> list[dict[str, Any]]:
    held = {one["type"]: dict(one) for one in before}
    if conflict is not None:
        wanted = {"NamesAccepted": ("False", *conflict)}
        if held.get("Established", {}).get("status") != "True":
            wanted["Established"] = ("False", "NotAccepted", "not all names are accepted")
    else:
        wanted = {
            "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
            "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
        }
    for name, (status, reason, message) in wanted.items():
        old = held.get(name)
        since = old["lastTransitionTime"] if old and old["status"] == status else now
        held[name] = {
            "type": name,
            "status": status,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        }
    return list(held.values())
