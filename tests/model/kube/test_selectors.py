"""Selectors and tolerations: a table of what each operator says, and equality of equal questions."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.kube.manifests import node
from volcano_py.scheduler.model.kube.meta import RawLabelSelector, RawNodeSelector
from volcano_py.scheduler.model.kube.objects import ObjectError
from volcano_py.scheduler.model.kube.pod import RawToleration
from volcano_py.scheduler.model.kube.selectors import (
    NOTHING,
    UNSCHEDULABLE_TAINT,
    LabelSelector,
    NodeSelector,
    Requirement,
    Taint,
    Toleration,
    label_selector,
    labels_selector,
    node_selector,
    node_taints,
    toleration,
    untolerated,
)

LABELS = {"zone": "a", "cores": "8", "word": "x1"}


def read(selector: Any) -> LabelSelector:
    raw = None if selector is None else msgspec.convert(selector, RawLabelSelector)
    return label_selector(raw, "sel")


def read_nodes(*terms: Any) -> NodeSelector:
    return node_selector(msgspec.convert({"nodeSelectorTerms": terms}, RawNodeSelector), "sel")


def wants(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": values}


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        (wants("zone", "In", "a", "b"), True),
        (wants("zone", "In", "b"), False),
        (wants("none", "In", "a"), False),
        (wants("zone", "NotIn", "a"), False),
        (wants("zone", "NotIn", "b"), True),
        (wants("none", "NotIn", "a"), True),
        (wants("zone", "Exists"), True),
        (wants("none", "Exists"), False),
        (wants("zone", "DoesNotExist"), False),
        (wants("none", "DoesNotExist"), True),
    ],
)
def test_operators(expression: Any, matches: bool) -> None:
    assert read({"matchExpressions": [expression]}).matches(LABELS) is matches
    assert read_nodes({"matchExpressions": [expression]}).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        (wants("cores", "Gt", "7"), True),
        (wants("cores", "Gt", "8"), False),
        (wants("cores", "Lt", "9"), True),
        (wants("cores", "Lt", "8"), False),
        (wants("cores", "Gt", "-1"), True),
        (wants("word", "Gt", "0"), False),
        (wants("word", "Lt", "9"), False),
        (wants("none", "Lt", "9"), False),
    ],
)
def test_number_operators_of_nodes(expression: Any, matches: bool) -> None:
    assert read_nodes({"matchExpressions": [expression]}).matches(LABELS) is matches


def test_absent_selects_nothing_and_empty_selects_everything() -> None:
    assert read(None) == NOTHING
    assert not read(None).matches({})
    assert read({}).matches({})
    assert read({}).matches(LABELS)


def test_labels_and_expressions_hold_together() -> None:
    both = read({"matchLabels": {"zone": "a"}, "matchExpressions": [wants("cores", "In", "4")]})
    assert not both.matches(LABELS)
    assert both.matches({"zone": "a", "cores": "4"})
    assert labels_selector({"zone": "a"}) == read({"matchLabels": {"zone": "a"}})


def test_narrowing() -> None:
    more = [Requirement("cores", "In", ("4",))]
    assert not read({}).also(more).matches(LABELS)
    assert read({"matchLabels": {"cores": "4"}}).also(more) == read({"matchLabels": {"cores": "4"}})
    assert NOTHING.also(more) == NOTHING


def test_node_terms_are_alternatives() -> None:
    either = read_nodes(
        {"matchExpressions": [wants("zone", "In", "b")]}, {"matchExpressions": [wants("cores", "Exists")]}
    )
    assert either.matches(LABELS)
    assert not either.matches({"zone": "c"})


def test_node_terms_that_select_nothing() -> None:
    assert not read_nodes().matches(LABELS, "n1")
    assert not read_nodes({}).matches(LABELS, "n1")
    assert read_nodes({}) == read_nodes()
    assert read_nodes({}, {"matchExpressions": [wants("zone", "Exists")]}).matches(LABELS)


def test_nodes_by_name() -> None:
    named = {"matchFields": [wants("metadata.name", "In", "n1", "n2")]}
    assert read_nodes(named).matches({}, "n1")
    assert not read_nodes(named).matches({"metadata.name": "n1"}, "n3")
    assert not read_nodes({**named, "matchExpressions": [wants("zone", "In", "b")]}).matches(LABELS, "n1")


@pytest.mark.parametrize(
    ("expression", "field"),
    [
        (wants("", "Exists"), "key"),
        (wants("a", "in", "x"), "operator"),
        (wants("a", ""), "operator"),
        (wants("a", "In"), "values"),
        (wants("a", "NotIn"), "values"),
        (wants("a", "Exists", "x"), "values"),
        (wants("a", "DoesNotExist", "x"), "values"),
    ],
)
def test_bad_expressions_name_their_field(expression: Any, field: str) -> None:
    good = wants("a", "Exists")
    with pytest.raises(ObjectError) as caught:
        read({"matchExpressions": [good, expression]})
    assert [problem.field for problem in caught.value.problems] == [f"sel.matchExpressions[1].{field}"]
    with pytest.raises(ObjectError) as caught:
        read_nodes({}, {"matchExpressions": [good, expression]})
    path = f"sel.nodeSelectorTerms[1].matchExpressions[1].{field}"
    assert [problem.field for problem in caught.value.problems] == [path]


@pytest.mark.parametrize(
    "values", [(), ("1", "2"), ("x",), ("1_000",), (" 1",), ("9223372036854775808",), ("١",)]
)
def test_number_operators_need_one_whole_number(values: tuple[str, ...]) -> None:
    with pytest.raises(ObjectError, match="exactly one whole number"):
        read_nodes({"matchExpressions": [wants("cores", "Gt", *values)]})


def test_number_operators_are_for_nodes_only() -> None:
    with pytest.raises(ObjectError, match="unknown operator 'Gt'"):
        read({"matchExpressions": [wants("cores", "Gt", "1")]})


@pytest.mark.parametrize("field", [wants("metadata.uid", "In", "x"), wants("metadata.name", "Exists")])
def test_only_the_name_is_a_field(field: Any) -> None:
    with pytest.raises(ObjectError, match=r"matchFields\[0\]"):
        read_nodes({"matchFields": [field]})


TAINT = Taint("gpu", "a", "NoSchedule")


@pytest.mark.parametrize(
    ("wish", "tolerated"),
    [
        ({"key": "gpu", "operator": "Equal", "value": "a", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "a"}, True),
        ({"key": "gpu", "value": "b"}, False),
        ({"key": "gpu"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "cpu", "operator": "Exists"}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_tolerations(wish: Any, tolerated: bool) -> None:
    read_wish = toleration(msgspec.convert(wish, RawToleration), "t")
    assert read_wish.tolerates(TAINT) is tolerated
    assert untolerated([TAINT], [read_wish], {"NoSchedule"}) == (None if tolerated else TAINT)


def test_only_the_effects_asked_for_count() -> None:
    soft = Taint("gpu", "", "PreferNoSchedule")
    assert untolerated([soft, TAINT], [], {"NoSchedule", "NoExecute"}) == TAINT
    assert untolerated([soft], [], {"NoSchedule", "NoExecute"}) is None


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"key": "a", "operator": "Like"}, "t.operator"),
        ({"value": "x"}, "t.operator"),
        ({"key": "a", "operator": "Exists", "value": "x"}, "t.value"),
        ({"key": "a", "effect": "Never"}, "t.effect"),
    ],
)
def test_bad_tolerations_name_their_field(wish: Any, field: str) -> None:
    with pytest.raises(ObjectError) as caught:
        toleration(msgspec.convert(wish, RawToleration), "t")
    assert [problem.field for problem in caught.value.problems] == [field]


def test_taints_of_a_node() -> None:
    taints = [{"key": "b", "effect": "NoExecute"}, {"key": "a", "value": "x", "effect": "NoSchedule"}]
    assert node_taints(node({"taints": taints})) == (Taint("a", "x"), Taint("b", "", "NoExecute"))
    assert node_taints(node({"unschedulable": True})) == (UNSCHEDULABLE_TAINT,)
    both = {"unschedulable": True, "taints": [{"key": UNSCHEDULABLE_TAINT.key, "effect": "NoSchedule"}]}
    assert node_taints(node(both)) == (UNSCHEDULABLE_TAINT,)
    assert node_taints(node()) == ()


@pytest.mark.parametrize(("taint", "field"), [({"effect": "NoSchedule"}, "key"), ({"key": "a"}, "effect")])
def test_bad_taints_name_their_field(taint: Any, field: str) -> None:
    with pytest.raises(ObjectError, match=rf"^spec\.taints\[0\]\.{field}: "):
        node_taints(node({"taints": [taint]}))


keys = st.sampled_from(["a", "b", "c"])
values = st.sampled_from(["1", "2", "3"])
tests = st.one_of(
    st.builds(
        lambda key, operator, some: wants(key, operator, *some),
        keys,
        st.sampled_from(["In", "NotIn"]),
        st.lists(values, min_size=1),
    ),
    st.builds(wants, keys, st.sampled_from(["Exists", "DoesNotExist"])),
)
label_sets = st.dictionaries(keys, values)


def obvious(expressions: list[dict[str, Any]], labels: dict[str, str]) -> bool:
    """The rules of the API documentation, word by word."""
    results = {
        "In": lambda key, some: key in labels and labels[key] in some,
        "NotIn": lambda key, some: key not in labels or labels[key] not in some,
        "Exists": lambda key, some: key in labels,
        "DoesNotExist": lambda key, some: key not in labels,
    }
    return all(results[it["operator"]](it["key"], it["values"]) for it in expressions)


@given(st.lists(tests, max_size=4), label_sets, label_sets, st.randoms(use_true_random=False))
def test_any_order_is_one_selector(
    expressions: list[dict[str, Any]], wanted: dict[str, str], labels: dict[str, str], random: Any
) -> None:
    selector = read({"matchLabels": wanted, "matchExpressions": expressions})
    shuffled = [
        {**it, "values": random.sample(it["values"], len(it["values"])) * 2} for it in expressions * 2
    ]
    random.shuffle(shuffled)
    other = read({"matchLabels": dict(reversed(wanted.items())), "matchExpressions": shuffled})
    assert selector == other
    assert hash(selector) == hash(other)
    as_tests = [wants(key, "In", value) for key, value in wanted.items()]
    assert selector.matches(labels) is obvious(expressions + as_tests, labels)
    nodes = read_nodes({"matchExpressions": expressions + as_tests})
    assert nodes.matches(labels) is (bool(expressions or wanted) and selector.matches(labels))


def test_tolerations_are_values() -> None:
    assert Toleration("a", "Exists") in {Toleration("a", "Exists", "", "")}
