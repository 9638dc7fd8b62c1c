"""The objects that a set of documents holds, found by kind and name.

Documents are looked at as they were written: one that makes no sense is simply not found here, and is
complained of by whoever takes it in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Document = dict[str, Any]
CLUSTER_KINDS = frozenset({"Namespace", "PriorityClass"})


class Present:
    """Documents by (kind, namespace, name)."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._found = {identity(document): document for document in documents}

    def has(self, kind: str, namespace: str, name: str) -> bool:
        """Whether there is such an object."""
        return (kind, namespace, name) in self._found

    def get(self, kind: str, namespace: str, name: str) -> Document:
        """The object; an empty one where there is none."""
        return self._found.get((kind, namespace, name), {})

    def priority(self, name: str) -> int:
        """The value of priority class *name*; 0 where nobody defines it."""
        value = self.get("PriorityClass", "", name).get("value", 0)
        return value if isinstance(value, int) else 0


def identity(document: Document) -> tuple[str, str, str]:
    """Kind, namespace and name, as far as *document* says."""
    kind, meta = str(document.get("kind", "")), part(document, "metadata")
    namespace = "" if kind in CLUSTER_KINDS else str(meta.get("namespace") or "default")
    return kind, namespace, str(meta.get("name", ""))


def part(document: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """The mapping at *path*; an empty one where there is none."""
    here: Any = document
    for step in path:
        here = here.get(step) if isinstance(here, Mapping) else None
    return here if isinstance(here, Mapping) else {}
