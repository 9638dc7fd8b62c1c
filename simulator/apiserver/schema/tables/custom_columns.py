"""Columns that a CustomResourceDefinition declares (``additionalPrinterColumns``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from volcano_py.simulator.apiserver.schema.tables.ages import age
from volcano_py.simulator.apiserver.schema.tables.columns import NAME, Cell, Column, Document
from volcano_py.simulator.apiserver.schema.tables.json_path import find

_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def columns(declared: tuple[Mapping[str, Any], ...]) -> list[Column]:
    """The name, and what the definition declares; where it declares nothing, the age."""
    return [NAME, *(_column(one) for one in declared or (_AGE,))]


def _column(declared: Mapping[str, Any]) -> Column:
    described = f"Custom resource definition column (in JSONPath format): {declared['jsonPath']}"
    return Column(
        declared["name"],
        _cell(declared["type"], declared["jsonPath"]),
        type=declared["type"],
        priority=declared.get("priority", 0),
        format=declared.get("format", ""),
        description=declared.get("description") or described,
    )


def _cell(kind: str, path: str) -> Cell:
    def cell(document: Document, now: float) -> Any:
        found = find(path, document)
        return _shown(kind, found[0], now) if found and found[0] is not None else None

    return cell


def _shown(kind: str, value: Any, now: float) -> Any:
    """The value as its column's type; None where it is of another."""
    if kind == "string":
        return (
            value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        )
    if kind == "date":
        return _shown_age(value, now)
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if kind == "integer" else value


def _shown_age(value: Any, now: float) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        return age(value, now)
    except ValueError:
        return "<invalid>"
