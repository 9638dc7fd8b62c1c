"""Kinds that a CustomResourceDefinition declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from volcano_py.simulator.apiserver.schema.kinds import (
    Cause,
    Document,
    Invalid,
    Names,
    Path,
    ScalePaths,
    ServedKind,
    Shape,
)
from volcano_py.simulator.apiserver.schema.rules import RuleTree, rule_faults, rule_tree
from volcano_py.simulator.apiserver.schema.structural import document_shape, fill_defaults, prune
from volcano_py.simulator.apiserver.schema.values import MISSING, NOWHERE, faults

# After one of these a rule might look at a value that is not of its type.
_BLOCKING = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
_UNCHECKED = Cause(
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
    NOWHERE,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class CustomKind(ServedKind):
    """One version of a custom kind.

    Attributes:
        schema: The version's ``openAPIV3Schema``.
        columns: Its ``additionalPrinterColumns``.
        stored_as: The version that objects are kept in; versions differ in ``apiVersion`` only.
    """

    schema: Mapping[str, Any]
    columns: tuple[Mapping[str, Any], ...] = ()
    stored_as: str = ""
    custom: bool = field(default=True, init=False)

    @cached_property
    def shape(self) -> Shape:
        """How a whole document merges."""
        return document_shape(self.schema)

    @cached_property
    def _rules(self) -> RuleTree | None:
        return rule_tree(self.schema)

    @property
    def converts(self) -> bool:
        """Whether this is not the version that is stored."""
        return self.version != self.stored_as

    def read(self, document: Document, *, strict: bool) -> list[str]:
        """Prune what the schema does not know."""
        return prune(self.schema, document)

    def default(self, document: Document) -> None:
        """Fill in the schema's defaults."""
        fill_defaults(self.schema, document)

    def check(self, new: Document, old: Document | None, subresource: str) -> None:
        """Hold values and rules against the schema.

        Raises:
            Invalid: With every fault.
        """
        before = MISSING if old is None else old
        found = faults(self.schema, new, before)
        if self._rules is not None:
            if any(cause.reason in _BLOCKING for cause in found):
                found.append(_UNCHECKED)
            else:
                found += rule_faults(self._rules, new, before)
        if found:
            raise Invalid(*found)

    def inward(self, document: Document) -> Document:
        """The document with the stored version's name."""
        return {**document, "apiVersion": f"{self.group}/{self.stored_as}"}

    def outward(self, document: Document) -> Document:
        """The document with this version's name."""
        return {**document, "apiVersion": self.api_version}


def kinds_of(definition: Document) -> list[CustomKind]:
    """The served versions of a CustomResourceDefinition, as stored (with defaults)."""
    spec = definition["spec"]
    stored = next(version["name"] for version in spec["versions"] if version["storage"])
    return [_kind(spec, version, stored) for version in spec["versions"] if version["served"]]


def _kind(spec: Document, version: Document, stored: str) -> CustomKind:
    subresources: Mapping[str, Any] = version.get("subresources") or {}
    return CustomKind(
        group=spec["group"],
        version=version["name"],
        names=names_of(spec["names"]),
        namespaced=spec["scope"] == "Namespaced",
        bucket=f"{spec['names']['plural']}.{spec['group']}",
        subresources=frozenset(subresources) & {"status", "scale"},
        scale=_scale(subresources.get("scale")),
        selectable={
            _plain(one["jsonPath"]): path_of(one["jsonPath"]) for one in version.get("selectableFields") or ()
        },
        deprecation=_deprecation(spec, version),
        schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
        columns=tuple(version.get("additionalPrinterColumns") or ()),
        stored_as=stored,
    )


def names_of(names: Document) -> Names:
    """What a definition calls its kind; left out names follow from the kind."""
    kind = names["kind"]
    return Names(
        kind=kind,
        plural=names["plural"],
        singular=names.get("singular") or kind.lower(),
        list_kind=names.get("listKind") or f"{kind}List",
        short=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
    )


def _plain(json_path: str) -> str:
    return json_path.lstrip(".")


def path_of(json_path: str) -> Path:
    """A plain JSON path, such as ``.spec.replicas``, as its fields."""
    return tuple(_plain(json_path).split("."))


def _scale(declared: Document | None) -> ScalePaths | None:
    if declared is None:
        return None
    selector = declared.get("labelSelectorPath")
    return ScalePaths(
        path_of(declared["specReplicasPath"]),
        path_of(declared["statusReplicasPath"]),
        path_of(selector) if selector else None,
    )


def _deprecation(spec: Document, version: Document) -> str:
    if not version.get("deprecated"):
        return ""
    told = version.get("deprecationWarning")
    return told or f"{spec['group']}/{version['name']} {spec['names']['kind']} is deprecated"
