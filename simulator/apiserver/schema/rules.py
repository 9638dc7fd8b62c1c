"""CEL rules of a CustomResourceDefinition (``x-kubernetes-validations``), evaluated by cel-python.

A rule that cannot be compiled, or that calls a function which is not known here, is a fault of the
definition: it is refused with that name, never skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import celpy
from celpy import celtypes
from celpy.adapter import json_to_cel
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError, base_functions

from volcano_py.simulator.apiserver.schema.kinds import Cause
from volcano_py.simulator.apiserver.schema.rule_functions import FUNCTIONS
from volcano_py.simulator.apiserver.schema.values import (
    MISSING,
    NOWHERE,
    Schema,
    counterparts,
    quoted,
    same,
    type_name,
)

RULES = "x-kubernetes-validations"
_MACROS = frozenset({"has", "all", "exists", "exists_one", "map", "filter", "dyn"})
# CEL keeps these words for itself, so fields of that name are reached as ``__namespace__``.
_RESERVED = frozenset(
    {
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
    }
    | {"namespace", "null", "package", "return", "true", "var", "void", "while"}
)
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled expression.

    Attributes:
        text: As written, without space around it.
        runner: Evaluates it.
        compares: Whether it looks at ``oldSelf``, so that it only means something on update.
    """

    text: str
    runner: celpy.Runner
    compares: bool

    def evaluate(self, value: Any, old: Any) -> Any:
        """The expression's value.

        Raises:
            CELEvalError: It has none, such as for a field that is not there.
        """
        context = {"self": value} if old is MISSING else {"self": value, "oldSelf": old}
        return self.runner.evaluate(context)


class RuleError(ValueError):
    """An expression that cannot be compiled here; the message says why."""


@lru_cache(maxsize=1024)
def compiled(text: str) -> Program:
    """Compile an expression, once.

    Raises:
        RuleError: Its syntax is wrong, or it calls what nobody knows.
    """
    environment = celpy.Environment()
    try:
        tree = environment.compile(text)
    except CELParseError as fault:
        raise RuleError(
            f"compilation failed: ERROR: <input>: Syntax error: {str(fault).splitlines()[0]}"
        ) from fault
    called = {str(node.children[0]) for node in tree.find_data("ident_arg")}
    called |= {str(node.children[1]) for node in tree.find_data("member_dot_arg")}
    if unknown := sorted(called - _MACROS - set(base_functions) - set(FUNCTIONS)):
        raise RuleError(f"compilation failed: ERROR: <input>: undeclared reference to '{unknown[0]}'")
    names = {str(node.children[0]) for node in tree.find_data("ident")}
    return Program(text.strip(), environment.program(tree, functions=FUNCTIONS), "oldSelf" in names)


def parts_of(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """The schemas inside a schema, with their place as the server writes it: ``properties[spec]``."""
    for name, field in (schema.get("properties") or {}).items():
        yield f"properties[{name}]", field
    for keyword in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(keyword), Mapping):
            yield keyword, inner


def definition_faults(schema: Schema, place: str) -> Iterator[Cause]:
    """Rules of a definition that cannot be used.

    Args:
        schema: The ``openAPIV3Schema``, or a part of it.
        place: Where it stands, such as ``spec.validation.openAPIV3Schema``.
    """
    for position, rule in enumerate(schema.get(RULES) or ()):
        for keyword in ("rule", "messageExpression"):
            if keyword not in rule:
                continue
            try:
                compiled(rule[keyword])
            except RuleError as fault:
                message = f"Invalid value: {quoted(rule[keyword])}: {fault}"
                yield Cause("FieldValueInvalid", message, f"{place}.{RULES}[{position}].{keyword}")
    for where, inner in parts_of(schema):
        yield from definition_faults(inner, f"{place}.{where}")


@dataclass(frozen=True, slots=True)
class RuleTree:
    """The parts of a schema in which rules stand: what has none is not walked through.

    Attributes:
        schema: Whose rules these are.
        declared: Names of all fields that the schema declares.
        fields: Those fields in which rules stand.
        rest: Of the values of a free map.
        items: Of the items of a list.
    """

    schema: Schema
    declared: frozenset[str]
    fields: Mapping[str, RuleTree]
    rest: RuleTree | None
    items: RuleTree | None


def rule_tree(schema: Schema) -> RuleTree | None:
    """The rules of a schema; None where it has none."""
    known: Mapping[str, Schema] = schema.get("properties") or {}
    fields = {name: tree for name, field in known.items() if (tree := rule_tree(field)) is not None}
    rest, items = (
        rule_tree(inner) if isinstance(inner := schema.get(keyword), Mapping) else None
        for keyword in ("additionalProperties", "items")
    )
    if not (schema.get(RULES) or fields or rest or items):
        return None
    return RuleTree(schema, frozenset(known), fields, rest, items)


def rule_faults(tree: RuleTree, value: Any, old: Any = MISSING, path: str = "") -> Iterator[Cause]:
    """Rules that *value* breaks: those of the whole before those of its parts.

    Args:
        tree: Rules of its schema.
        value: Free of faults of type.
        old: What is stored at the same place; MISSING on create and where a list does not say.
        path: Such as ``spec.items[0]``.
    """
    if value is None:
        return
    if rules := tree.schema.get(RULES):
        unchanged = old is not MISSING and same(old, value)
        yield from _broken(rules, tree.schema, value, old, path, unchanged)
    if isinstance(value, list) and tree.items is not None:
        for position, (item, before) in enumerate(
            zip(value, counterparts(tree.schema, value, old), strict=True)
        ):
            yield from rule_faults(tree.items, item, before, f"{path}[{position}]")
    elif isinstance(value, dict):
        for name, inner in _ruled_fields(tree, value):
            before = old.get(name, MISSING) if isinstance(old, dict) else MISSING
            yield from rule_faults(inner, value[name], before, f"{path}.{name}" if path else name)


def _ruled_fields(tree: RuleTree, value: dict[str, Any]) -> Iterator[tuple[str, RuleTree]]:
    for name, inner in tree.fields.items():
        if name in value:
            yield name, inner
    if tree.rest is not None:
        for name in value:
            if name not in tree.declared:
                yield name, tree.rest


def _broken(
    rules: list[dict[str, Any]], schema: Schema, value: Any, old: Any, path: str, unchanged: bool
) -> Iterator[Cause]:
    is_object = not path or bool(schema.get("x-kubernetes-embedded-resource"))
    subject = _cel(schema, value, is_object)
    before = MISSING if old is MISSING or old is None else _cel(schema, old, is_object)
    for rule in rules:
        program = compiled(rule["rule"])
        # What was stored under older rules may stay as long as nobody touches it.
        if (before is MISSING) if program.compares else unchanged:
            continue
        try:
            holds = bool(program.evaluate(subject, before if program.compares else MISSING))
        except CELEvalError as fault:
            yield _failed(rule, value, path, f"{_why(fault)} evaluating rule: {_message(rule)}")
            continue
        if not holds:
            yield _cause(rule, value, path, _said(rule, subject, before))


def _cause(rule: Mapping[str, Any], value: Any, path: str, message: str) -> Cause:
    reason = rule.get("reason") or "FieldValueInvalid"
    field = (path + rule.get("fieldPath", "")).lstrip(".") or NOWHERE
    if reason == "FieldValueForbidden":
        return Cause(reason, f"Forbidden: {message}", field)
    if reason == "FieldValueRequired":
        return Cause(reason, f"Required value: {message}", field)
    shown = "" if isinstance(value, dict | list) else f"{quoted(value)}: "
    word = "Duplicate value" if reason == "FieldValueDuplicate" else "Invalid value"
    return Cause(reason, f"{word}: {shown}{message}", field)


def _failed(rule: Mapping[str, Any], value: Any, path: str, message: str) -> Cause:
    return Cause("FieldValueInvalid", f'Invalid value: "{type_name(value)}": {message}', path or NOWHERE)


def _message(rule: Mapping[str, Any]) -> str:
    return str(rule.get("message") or f"failed rule: {rule['rule'].strip()}").strip()


def _said(rule: Mapping[str, Any], subject: Any, before: Any) -> str:
    if "messageExpression" not in rule:
        return _message(rule)
    program = compiled(rule["messageExpression"])
    try:
        text = str(program.evaluate(subject, before if program.compares else MISSING))
    except CELEvalError:
        return _message(rule)
    return text.strip() or _message(rule)


def _why(fault: CELEvalError) -> str:
    text = str(fault.args[0]) if fault.args else str(fault)
    return text.replace("no such member in mapping: '", "no such key: ").rstrip("'")


def _cel(schema: Schema, value: Any, is_object: bool = False) -> Any:
    """A JSON value as CEL sees it, typed by its schema: a ``number`` of 1 is a double."""
    if isinstance(value, list):
        items = schema.get("items")
        return celtypes.ListType([_cel(items if isinstance(items, Mapping) else {}, item) for item in value])
    if isinstance(value, dict):
        return _cel_map(schema, value, is_object)
    if type(value) in (int, float) and schema.get("type") == "number":
        return celtypes.DoubleType(value)
    if isinstance(value, float) and value.is_integer() and schema.get("type") == "integer":
        return celtypes.IntType(int(value))
    if isinstance(value, str) and (typed := _FORMATS.get(schema.get("format", ""))):
        return typed(value)
    return json_to_cel(value)


_FORMATS: dict[str, Any] = {
    "date-time": celtypes.TimestampType,
    "duration": celtypes.DurationType,
}


def _cel_map(schema: Schema, value: dict[str, Any], is_object: bool) -> celtypes.MapType:
    known: Mapping[str, Schema] = schema.get("properties") or {}
    rest = schema.get("additionalProperties")
    entries: dict[Any, Any] = {}
    for name, item in value.items():
        if is_object and name == "metadata" and isinstance(item, dict):
            # Rules see of metadata only what names the object.
            item = {key: item[key] for key in ("name", "generateName") if key in item}
            entries[celtypes.StringType(name)] = json_to_cel(item)
        elif name in known:
            entries[celtypes.StringType(_escaped(name))] = _cel(known[name], item)
        else:
            inner = rest if isinstance(rest, Mapping) else {}
            entries[celtypes.StringType(name)] = _cel(inner, item)
    return celtypes.MapType(entries)


def _escaped(name: str) -> str:
    if name in _RESERVED:
        return f"__{name}__"
    for plain, escaped in _ESCAPES:
        name = name.replace(plain, escaped)
    return name
