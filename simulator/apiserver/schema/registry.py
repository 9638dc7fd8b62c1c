"""Which kinds are served now: the built-in ones, and those of CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from volcano_py.simulator.apiserver.schema.answers import Answer, Answers
from volcano_py.simulator.apiserver.schema.builtin import builtin_kinds
from volcano_py.simulator.apiserver.schema.custom import kinds_of
from volcano_py.simulator.apiserver.schema.definitions import is_established, status_of
from volcano_py.simulator.apiserver.schema.kinds import Document, ServedKind
from volcano_py.simulator.apiserver.schema.tables.rendering import table
from volcano_py.simulator.apiserver.schema.versions import version_order

__all__ = ["Answer", "Registry"]


class Registry:
    """Finds kinds by path and by name; changes when definitions do."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str], ServedKind] = {}
        self._definitions: dict[str, Document] = {}
        self._answers: Answers | None = None
        for kind in builtin_kinds():
            self._add(kind)

    def _add(self, kind: ServedKind) -> None:
        self._kinds[(kind.group, kind.version, kind.plural)] = kind
        self._answers = None

    def resolve(self, group: str, version: str, plural: str) -> ServedKind | None:
        """The kind that a path names; *group* is "" for the core group."""
        return self._kinds.get((group, version, plural))

    def by_kind(self, group: str, kind: str) -> ServedKind | None:
        """The kind of that name, in the version that clients should prefer."""
        found = [one for one in self._kinds.values() if (one.group, one.kind) == (group, kind)]
        return min(found, key=lambda one: version_order(one.version), default=None)

    def kinds(self) -> Iterable[ServedKind]:
        """One kind for each place where objects are kept, in the version that is stored."""
        return [kind for kind in self._kinds.values() if not kind.converts]

    def served(self) -> Iterable[ServedKind]:
        """Every kind in every version."""
        return list(self._kinds.values())

    def set_crd(self, document: Document) -> None:
        """Serve what a definition says, from now on.

        Args:
            document: The CustomResourceDefinition as stored. While another kind has one of its names, it
                is not served.
        """
        name = document["metadata"]["name"]
        if name in self._definitions and self._definitions[name]["spec"] == document["spec"]:
            return
        self.drop_crd(name)
        if not is_established(self.crd_status(document)):
            return
        self._definitions[name] = document
        for kind in kinds_of(document):
            self._add(kind)

    def drop_crd(self, name: str) -> None:
        """Serve that definition's kinds no more."""
        if name not in self._definitions:
            return
        del self._definitions[name]
        self._kinds = {
            key: kind for key, kind in self._kinds.items() if not (kind.custom and kind.bucket == name)
        }
        self._answers = None

    def answer(self, path: str, accept: str, etag: str) -> Answer | None:
        """A discovery or OpenAPI document; None where *path* names none.

        Args:
            path: Such as ``/apis/batch/v1``, without the query.
            accept: The request's Accept header.
            etag: Its If-None-Match header, or "".
        """
        if self._answers is None:
            self._answers = Answers(list(self._kinds.values()))
        return self._answers.answer(path, accept, etag)

    def table(
        self,
        kind: ServedKind,
        documents: Sequence[Document],
        include: str,
        *,
        metadata: Mapping[str, Any],
        headers: bool = True,
        now: float,
    ) -> Document:
        """Objects as a Table (``meta.k8s.io/v1``).

        Args:
            kind: What they are.
            documents: The objects, as stored.
            include: ``Metadata``, ``Object`` or ``None``: what goes with each row.
            metadata: Of the list.
            headers: Whether columns are described: not in a watch after its first message.
            now: Seconds since 1970, for ages.
        """
        return table(kind, documents, include, metadata=metadata, headers=headers, now=now)

    def crd_status(self, document: Document) -> Document:
        """The status of a CustomResourceDefinition: which names it has, whether it is served."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return status_of(document, self._kinds.values(), now)
