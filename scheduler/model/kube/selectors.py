"""Selectors, tolerations and taints in checked, canonical, hashable form.

Equal questions are equal values whatever order a manifest lists them in, so they can be interned in a task
class and asked once for each distinct set of labels. Source of the rules: the API documentation of
``metav1.LabelSelector``, ``v1.NodeSelector`` and ``v1.Toleration``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set

import msgspec

from volcano_py.scheduler.model.kube.cluster import Node
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem, child
from volcano_py.scheduler.model.kube.meta import (
    RawLabelSelector,
    RawNodeSelector,
    RawNodeSelectorTerm,
    RawRequirement,
)
from volcano_py.scheduler.model.kube.pod import RawToleration

_INT64 = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_LABEL_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
_NODE_OPERATORS = _LABEL_OPERATORS | {"Gt", "Lt"}
_EFFECTS = frozenset({"NoSchedule", "PreferNoSchedule", "NoExecute"})
NODE_NAME_FIELD = "metadata.name"
UNSCHEDULABLE_TAINT_KEY = "node.kubernetes.io/unschedulable"


class Requirement(msgspec.Struct, frozen=True, cache_hash=True, order=True):
    """One test of one label; ``values`` are sorted and distinct."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether *labels* pass. An absent label passes ``NotIn``; ``Gt`` and ``Lt`` need whole numbers."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number = None if value is None else _int64(value)
        bound = int(self.values[0])
        return number is not None and (number > bound if self.operator == "Gt" else number < bound)


class LabelSelector(msgspec.Struct, frozen=True, cache_hash=True, order=True):
    """Requirements that hold together; none of them selects everything, unless ``nothing`` is set."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with *labels* is selected."""
        return not self.nothing and all(requirement.matches(labels) for requirement in self.requirements)

    def also(self, requirements: Iterable[Requirement]) -> LabelSelector:
        """This selector narrowed by more *requirements*; one that selects nothing stays so."""
        return self if self.nothing else LabelSelector(_canonical((*self.requirements, *requirements)))


EVERYTHING = LabelSelector()
NOTHING = LabelSelector(nothing=True)


class NodeSelectorTerm(msgspec.Struct, frozen=True, cache_hash=True, order=True):
    """Tests of a node's labels and of its name that hold together; an empty term selects no node."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it tests nothing, and so selects nothing."""
        return not self.expressions and not self.fields

    def matches(self, labels: Mapping[str, str], name: str = "") -> bool:
        """Whether the node called *name* with *labels* is selected."""
        if self.is_empty:
            return False
        by_name = {NODE_NAME_FIELD: name}
        return all(test.matches(labels) for test in self.expressions) and all(
            test.matches(by_name) for test in self.fields
        )


class NodeSelector(msgspec.Struct, frozen=True, cache_hash=True, order=True):
    """Terms of which one must hold; without terms no node is selected."""

    terms: tuple[NodeSelectorTerm, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str = "") -> bool:
        """Whether the node called *name* with *labels* is selected."""
        return any(term.matches(labels, name) for term in self.terms)


class Taint(msgspec.Struct, frozen=True, cache_hash=True, order=True):
    """A taint of a node."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


UNSCHEDULABLE_TAINT = Taint(UNSCHEDULABLE_TAINT_KEY)


class Toleration(msgspec.Struct, frozen=True, cache_hash=True, order=True):
    """A taint, or a family of them, that a pod puts up with; empty key and effect mean all."""

    key: str
    operator: str
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether *taint* doesn't keep the pod away."""
        return (
            (not self.effect or self.effect == taint.effect)
            and (not self.key or self.key == taint.key)
            and (self.operator == "Exists" or self.value == taint.value)
        )


def untolerated(
    taints: Iterable[Taint], tolerations: Iterable[Toleration], effects: Set[str]
) -> Taint | None:
    """The first of *taints* with one of *effects* that no toleration covers; ``None`` if all are."""
    for taint in taints:
        if taint.effect in effects and not any(wish.tolerates(taint) for wish in tolerations):
            return taint
    return None


def label_selector(raw: RawLabelSelector | None, field: str) -> LabelSelector:
    """The selector at *field*: absent selects nothing, empty everything. Raises ``ObjectError``."""
    if raw is None:
        return NOTHING
    tests = [Requirement(key, "In", (value,)) for key, value in raw.match_labels.items()]
    tests += _requirements(raw.match_expressions, f"{field}.matchExpressions", _LABEL_OPERATORS)
    return LabelSelector(_canonical(tests))


def labels_selector(labels: Mapping[str, str]) -> LabelSelector:
    """The selector that asks for each of *labels*, such as a pod's ``nodeSelector``."""
    return LabelSelector(_canonical(Requirement(key, "In", (value,)) for key, value in labels.items()))


def node_selector(raw: RawNodeSelector, field: str) -> NodeSelector:
    """The node selector at *field*, its empty terms gone as they select nothing. Raises ``ObjectError``."""
    path = f"{field}.nodeSelectorTerms"
    terms = {node_selector_term(term, f"{path}[{at}]") for at, term in enumerate(raw.node_selector_terms)}
    return NodeSelector(tuple(sorted(term for term in terms if not term.is_empty)))


def node_selector_term(raw: RawNodeSelectorTerm, field: str) -> NodeSelectorTerm:
    """One term at *field*. Raises ``ObjectError`` for operators, values or fields that Kubernetes lacks."""
    expressions = _requirements(raw.match_expressions, f"{field}.matchExpressions", _NODE_OPERATORS)
    fields = _requirements(raw.match_fields, f"{field}.matchFields", _LABEL_OPERATORS)
    for at, test in enumerate(fields):
        if test.key != NODE_NAME_FIELD or test.operator not in {"In", "NotIn"}:
            problem = (
                f"only {NODE_NAME_FIELD} with In or NotIn can be selected, not {test.key!r} {test.operator}"
            )
            raise ObjectError(Problem(f"{field}.matchFields[{at}]", problem))
    return NodeSelectorTerm(_canonical(expressions), _canonical(fields))


def toleration(raw: RawToleration, field: str) -> Toleration:
    """The toleration at *field*. Raises ``ObjectError`` where Kubernetes would refuse it."""
    operator = raw.operator or "Equal"
    if operator not in {"Equal", "Exists"}:
        raise ObjectError(Problem(f"{field}.operator", f"unknown operator {operator!r} (Equal, Exists)"))
    if not raw.key and operator != "Exists":
        raise ObjectError(Problem(f"{field}.operator", "a toleration without key needs the operator Exists"))
    if raw.value and operator == "Exists":
        raise ObjectError(Problem(f"{field}.value", "must be empty with the operator Exists"))
    if raw.effect and raw.effect not in _EFFECTS:
        raise ObjectError(Problem(f"{field}.effect", _unknown_effect(raw.effect)))
    return Toleration(raw.key, operator, raw.value, raw.effect)


def node_taints(node: Node) -> tuple[Taint, ...]:
    """The node's taints, sorted, with the one that a cordon stands for. Raises ``ObjectError``."""
    taints = set()
    for at, raw in enumerate(node.spec.taints):
        if not raw.key:
            raise ObjectError(Problem(f"spec.taints[{at}].key", "must not be empty"))
        if raw.effect not in _EFFECTS:
            raise ObjectError(Problem(f"spec.taints[{at}].effect", _unknown_effect(raw.effect)))
        taints.add(Taint(raw.key, raw.value, raw.effect))
    if node.spec.unschedulable:
        taints.add(UNSCHEDULABLE_TAINT)
    return tuple(sorted(taints))


def _requirements(raws: Iterable[RawRequirement], path: str, operators: Set[str]) -> list[Requirement]:
    """The checked tests at *path*, in the order written."""
    tests = []
    for at, raw in enumerate(raws):
        problem = _requirement_problem(raw, operators)
        if problem is not None:
            raise ObjectError(Problem(child(f"{path}[{at}]", problem.field), problem.message))
        tests.append(Requirement(raw.key, raw.operator, tuple(sorted(set(raw.values)))))
    return tests


def _requirement_problem(raw: RawRequirement, operators: Set[str]) -> Problem | None:
    """What is wrong with *raw*, by the field inside it."""
    if not raw.key:
        return Problem("key", "must not be empty")
    if raw.operator not in operators:
        return Problem(
            "operator", f"unknown operator {raw.operator!r}; known: {', '.join(sorted(operators))}"
        )
    if raw.operator in {"In", "NotIn"} and not raw.values:
        return Problem("values", f"{raw.operator} needs at least one value")
    if raw.operator in {"Exists", "DoesNotExist"} and raw.values:
        return Problem("values", f"must be empty with {raw.operator}")
    if raw.operator in {"Gt", "Lt"} and (len(raw.values) != 1 or _int64(raw.values[0]) is None):
        return Problem("values", f"{raw.operator} needs exactly one whole number")
    return None


def _canonical(tests: Iterable[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(set(tests)))


def _int64(text: str) -> int | None:
    """The number *text* writes, or ``None`` if it isn't one that 64 bits hold."""
    if not _INT64.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _unknown_effect(effect: str) -> str:
    return f"unknown effect {effect!r}; known: {', '.join(sorted(_EFFECTS))}"
