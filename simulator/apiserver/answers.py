"""Answers in the form that the client asked for: the objects, their metadata only, or a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from volcano_py.simulator.apiserver.objects import outward
from volcano_py.simulator.apiserver.schema.kinds import ServedKind
from volcano_py.simulator.apiserver.schema.registry import Registry
from volcano_py.simulator.apiserver.status import Document, Refused
from volcano_py.simulator.apiserver.store import Item, encode

PLAIN: Final = ""
TABLE: Final = "Table"
METADATA: Final = "PartialObjectMetadata"
METADATA_LIST: Final = "PartialObjectMetadataList"
_META_VERSION: Final = "meta.k8s.io/v1"
Parts = list[bytes | memoryview]
"""A body in pieces, to be joined as they are sent."""

_JSON_NAMES: Final = frozenset(["application/json", "*/*", "application/*", ""])


@dataclass(frozen=True, slots=True)
class Form:
    """What the client reads.

    Attributes:
        shape: PLAIN, TABLE or METADATA (of one object or of a list).
        include: ``includeObject``: what a row of a table carries.
    """

    shape: str
    include: str = "Metadata"


def wanted_form(accept: str, include: str) -> Form:
    """The first form in an Accept header that can be served.

    Raises:
        Refused: 406, where there is none.
    """
    if not accept or accept == "application/json":
        return Form(PLAIN)
    for entry in accept.split(","):
        media_type, *rest = (part.strip() for part in entry.split(";"))
        if media_type not in _JSON_NAMES:
            continue
        said = dict(part.partition("=")[::2] for part in rest)
        shape = said.get("as", PLAIN)
        if shape == PLAIN:
            return Form(PLAIN)
        if said.get("g") == "meta.k8s.io" and said.get("v") == "v1":
            return Form(METADATA if shape == METADATA_LIST else shape, include or "Metadata")
    message = (
        "only the following media types are accepted: application/json, "
        "application/json;as=Table;g=meta.k8s.io;v=v1, "
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    )
    raise Refused(406, "NotAcceptable", message)


class Answers:
    """Turns what is kept into bodies.

    Args:
        clock: seconds since the epoch, for ages in tables.
    """

    def __init__(self, registry: Registry, clock: Callable[[], float]) -> None:
        self._registry = registry
        self._clock = clock

    def item(self, kind: ServedKind, item: Item, form: Form) -> bytes:
        """One kept object."""
        if form.shape == PLAIN and not kind.converts:
            return item.body
        return self.document(kind, outward(kind, item), form)

    def document(self, kind: ServedKind, document: Document, form: Form) -> bytes:
        """One object that a write made; a Status and other kinds pass as they are."""
        if document.get("kind") != kind.kind or form.shape == PLAIN:
            return encode(document)
        if form.shape == METADATA:
            return encode(partial(document))
        metadata = {"resourceVersion": document["metadata"].get("resourceVersion", "")}
        return encode(self._table(kind, [document], form, metadata))

    def page(self, kind: ServedKind, items: Sequence[Item], metadata: Document, form: Form) -> Parts:
        """A list, in pieces."""
        if form.shape == PLAIN:
            return _list_parts(kind, items, metadata)
        documents = [outward(kind, item) for item in items]
        if form.shape == METADATA:
            rows = [partial(document) for document in documents]
            head = {"kind": METADATA_LIST, "apiVersion": _META_VERSION, "metadata": metadata}
            return [encode({**head, "items": rows})]
        return [encode(self._table(kind, documents, form, metadata))]

    def events(self, kind: ServedKind, form: Form) -> Callable[[Item], bytes]:
        """How a watch shows objects; only the first table has its headers."""
        if form.shape != TABLE:
            return lambda item: self.item(kind, item, form)
        told = False

        def row(item: Item) -> bytes:
            nonlocal told
            headers, told = not told, True
            metadata = {"resourceVersion": str(item.version)}
            return encode(self._table(kind, [outward(kind, item)], form, metadata, headers=headers))

        return row

    def _table(
        self,
        kind: ServedKind,
        documents: Sequence[Document],
        form: Form,
        metadata: Document,
        *,
        headers: bool = True,
    ) -> Document:
        return self._registry.table(
            kind, documents, form.include, metadata=metadata, headers=headers, now=self._clock()
        )


def partial(document: Document) -> Document:
    """Only the metadata of an object."""
    return {"kind": METADATA, "apiVersion": _META_VERSION, "metadata": document["metadata"]}


def _list_parts(kind: ServedKind, items: Sequence[Item], metadata: Document) -> Parts:
    """The kept bodies between their commas, not copied: a list can be as large as the store."""
    head = {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": metadata}
    if kind.converts:
        return [encode({**head, "items": [outward(kind, item) for item in items]})]
    # Items of built-in lists do not repeat what they are.
    said = b"" if kind.custom else encode({"kind": kind.kind, "apiVersion": kind.api_version})[:-1] + b","
    parts: Parts = [encode(head)[:-1] + b',"items":[']
    for item in items:
        if said and item.body.startswith(said):
            parts += (b"{", memoryview(item.body)[len(said) :], b",")
        else:
            parts += (item.body, b",")
    if items:
        parts.pop()
    parts.append(b"]}")
    return parts
