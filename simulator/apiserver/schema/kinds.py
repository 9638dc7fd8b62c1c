"""What the server knows of a kind: its names, how its documents merge, and what it asks of them.

The types here are what the other modules of the server see. ``builtin.py`` and ``custom.py`` fill
them in; ``registry.py`` finds them by path.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Document = dict[str, Any]
Path = tuple[str, ...]

EVERY_VERB = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})


class Cause(NamedTuple):
    """One reason why an object is refused (``Status.details.causes``).

    Attributes:
        reason: A word for programs, such as ``FieldValueRequired``.
        message: What is wrong, without the field's name: ``Required value: name is required``.
        field: Where, such as ``spec.containers[0].name``.
    """

    reason: str
    message: str
    field: str


class Invalid(Exception):  # noqa: N818 - the word of the API: 'Queue "q" is invalid'
    """The object is well formed, but says what it may not say: answered with 422."""

    def __init__(self, *causes: Cause) -> None:
        super().__init__("; ".join(f"{cause.field}: {cause.message}" for cause in causes))
        self.causes = causes


class Malformed(Exception):  # noqa: N818 - the request is, not the server
    """The document cannot be read as its kind at all: answered with 400."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class Shape:
    """How a value merges, in patches and in server-side apply.

    Attributes:
        list_type: ``atomic``, ``set`` or ``map``; "" where the value is no list or nothing is declared.
        keys: Fields that name an item of a ``map`` list.
        key_defaults: What a key field means when it is left out (``protocol``: TCP).
        atomic: A map or struct that has one owner and is replaced whole.
        patch_key: The key field of a strategic merge patch; "" where such a patch replaces the list.
        patch_strategy: Of ``merge``, ``replace``, ``retainKeys``.
        fields: Shapes of declared fields.
        each: Shape of list items, or of the values of a free map; None where nothing is known.
    """

    list_type: str = ""
    keys: tuple[str, ...] = ()
    key_defaults: Mapping[str, Any] = field(default_factory=dict)
    atomic: bool = False
    patch_key: str = ""
    patch_strategy: frozenset[str] = frozenset()
    fields: Mapping[str, Shape] = field(default_factory=dict)
    each: Shape | None = None


ANY = Shape()


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where the scale subresource reads and writes."""

    replicas: Path
    status_replicas: Path
    selector: Path | None


@dataclass(frozen=True, slots=True)
class Names:
    """What a kind is called in paths and on the command line."""

    kind: str
    plural: str
    singular: str
    list_kind: str
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ServedKind(ABC):
    """One kind in one version, as it is served.

    Attributes:
        group: "" for the core group.
        bucket: Where objects are kept. Versions of one kind, and the two kinds of Event, share one.
        subresources: Such as ``status``, ``binding``, ``scale``.
        selectable: Field selectors that a custom kind declares, with the path of their value.
        deprecation: What a client of this version is warned with; "" for none.
        custom: From a CustomResourceDefinition: no strategic merge patch.
    """

    group: str
    version: str
    names: Names
    namespaced: bool
    bucket: str
    verbs: frozenset[str] = EVERY_VERB
    subresources: frozenset[str] = frozenset()
    scale: ScalePaths | None = None
    selectable: Mapping[str, Path] = field(default_factory=dict)
    deprecation: str = ""

    custom = False

    @property
    def api_version(self) -> str:
        """As documents say it: ``v1``, ``batch/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def kind(self) -> str:
        """Such as ``Pod``."""
        return self.names.kind

    @property
    def plural(self) -> str:
        """Such as ``pods``."""
        return self.names.plural

    @property
    def singular(self) -> str:
        """Such as ``pod``."""
        return self.names.singular

    @property
    def list_kind(self) -> str:
        """Such as ``PodList``."""
        return self.names.list_kind

    @property
    @abstractmethod
    def shape(self) -> Shape:
        """How a whole document merges, metadata included."""

    @property
    @abstractmethod
    def converts(self) -> bool:
        """Whether documents of this version differ from what is stored."""

    @abstractmethod
    def read(self, document: Document, *, strict: bool) -> list[str]:
        """Drop what the kind does not know, in place.

        Args:
            document: As sent by a client.
            strict: The caller refuses unknown fields; all of them are to be found.

        Returns:
            Paths of the dropped fields, such as ``spec.containers[0].foo``.

        Raises:
            Malformed: A field of a built-in kind has another JSON type.
        """

    @abstractmethod
    def default(self, document: Document) -> None:
        """Fill in the defaults that a custom kind's schema declares, in place."""

    @abstractmethod
    def check(self, new: Document, old: Document | None, subresource: str) -> None:
        """Refuse what the kind does not allow; metadata is not looked at.

        Args:
            new: With defaults filled in.
            old: What is stored now; None on create.
            subresource: "" for the object itself.

        Raises:
            Invalid: With one cause for each fault.
        """

    @abstractmethod
    def inward(self, document: Document) -> Document:
        """This version's document as it is stored."""

    @abstractmethod
    def outward(self, document: Document) -> Document:
        """A stored document in this version."""
