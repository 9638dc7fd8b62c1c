"""What all core objects share: the struct settings, metadata, selectors and amounts as they arrive.

Every struct here holds only what the engine reads. Amounts stay as the manifest wrote them; ``request.py``
turns them into base units. Nothing is checked beyond its JSON type: rules live in ``selectors.py``,
``podspec.py`` and ``request.py``, where their results are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import msgspec

NO_STRINGS: Mapping[str, str] = MappingProxyType({})
NO_AMOUNTS: Mapping[str, Any] = MappingProxyType({})

# Resource name to amount as written: text or number. Other types are refused where the amount is read,
# since only there the message can name the resource.
Amounts = Mapping[str, Any]

# Numbers as wide as the API has them, so that none outgrows a column later.
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class KubeStruct(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of all parts. Frozen trees of plain data can't form a cycle, so the collector skips them."""


class OwnerReference(KubeStruct, frozen=True):
    """Who made the object; only the controller among several owners decides."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(KubeStruct, frozen=True):
    """Identity of an object. Times are seconds since the epoch; 0 creation means that none was stated."""

    name: str
    namespace: str = ""
    uid: str = ""
    creation_timestamp: float = 0.0
    deletion_timestamp: float | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: Mapping[str, str] = NO_STRINGS
    annotations: Mapping[str, str] = NO_STRINGS
    owner_references: tuple[OwnerReference, ...] = ()


class KubeObject(KubeStruct, frozen=True):
    """A whole object. ``metadata.namespace`` is empty for kinds that live outside namespaces."""

    namespaced: ClassVar[bool] = True

    metadata: ObjectMeta

    @property
    def kind(self) -> str:
        """The API's name of the kind."""
        return type(self).__name__

    @property
    def name(self) -> str:
        """Unique among objects of the kind, in its namespace."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Empty outside namespaces."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """Identity; names may be used again."""
        return self.metadata.uid

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone outside namespaces."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class RawRequirement(KubeStruct, frozen=True):
    """One ``matchExpressions`` or ``matchFields`` entry, unchecked."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class RawLabelSelector(KubeStruct, frozen=True):
    """``metav1.LabelSelector``, unchecked."""

    match_labels: Mapping[str, str] = NO_STRINGS
    match_expressions: tuple[RawRequirement, ...] = ()


class RawNodeSelectorTerm(KubeStruct, frozen=True):
    """Requirements that hold together, over a node's labels and its name."""

    match_expressions: tuple[RawRequirement, ...] = ()
    match_fields: tuple[RawRequirement, ...] = ()


class RawNodeSelector(KubeStruct, frozen=True):
    """Terms of which one must hold, unchecked."""

    node_selector_terms: tuple[RawNodeSelectorTerm, ...] = ()


class Condition(KubeStruct, frozen=True):
    """A status condition of a pod or node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
