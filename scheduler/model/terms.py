"""Terms: the selectors over other pods that affinity, anti-affinity and spread constraints consist of.

A term is interned by what it selects; whoever uses it with whatever topology key shares its counts.
``coupling`` keeps the terms of the cluster and books pods on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from volcano_py.scheduler.model.kube.constraints import AffinityTerm, PodConstraints, TopologySpread
from volcano_py.scheduler.model.kube.selectors import LabelSelector
from volcano_py.scheduler.model.tallies import Tally


class Selection(NamedTuple):
    """Pods by namespace (named, or with matching labels) and labels."""

    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    selector: LabelSelector

    def matches(self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]) -> bool:
        """Whether a pod with *labels* in *namespace* is selected."""
        spaces = self.namespace_selector
        if namespace not in self.namespaces and (spaces is None or not spaces.matches(namespace_labels)):
            return False
        return self.selector.matches(labels)


Parts = tuple[Selection, ...]
"""Selections of which a pod must match every one."""


@dataclass(eq=False, slots=True)
class Term:
    """One interned selection, what it selects, and who says what of the pods it selects.

    Attributes:
        number: never used twice.
        parts: a pod is selected if all of them select it.
        matched: the selected pods by node.
        users: tasks whose constraints contain the term.
        repelled: topology key -> tasks that require to be away from the selected pods, by node.
        drawn: topology key -> tasks that require to be near them, by node.
        wished: topology key -> summed weights of tasks that prefer it (negative: prefer to be away).
        repellers, wishers: tasks behind ``repelled``, and behind ``drawn`` and ``wished``, wherever they
            stand; a pending one counts, so that these do not change within a cycle.
    """

    number: int
    parts: Parts
    matched: Tally = field(default_factory=Tally)
    users: int = 0
    repelled: dict[str, Tally] = field(default_factory=dict)
    drawn: dict[str, Tally] = field(default_factory=dict)
    wished: dict[str, Tally] = field(default_factory=dict)
    repellers: int = 0
    wishers: int = 0

    def matches(self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]) -> bool:
        """Whether a pod with *labels* in *namespace* is selected."""
        return all(part.matches(namespace, namespace_labels, labels) for part in self.parts)

    @property
    def anchors(self) -> list[tuple[str, str]]:
        """Labels of which a selected pod has at least one; empty where nothing can be said."""
        for part in self.parts:
            for test in part.selector.requirements:
                if test.operator == "In":
                    return [(test.key, value) for value in test.values]
        return []

    @property
    def label_keys(self) -> frozenset[str]:
        """Label keys that the answer depends on."""
        return frozenset(test.key for part in self.parts for test in part.selector.requirements)


class Placed(NamedTuple):
    """A term within the domains of a topology key."""

    term: Term
    key: str


class Wish(NamedTuple):
    """A preference; a negative weight wishes to be away."""

    term: Term
    key: str
    weight: int


class Spread(NamedTuple):
    """A spread constraint and the term of the pods it counts."""

    rule: TopologySpread
    term: Term


@dataclass(frozen=True, slots=True)
class Speech:
    """What a class says of other pods, and which terms select the class itself.

    Attributes:
        affinity: near all of these; counted are the pods that match every one of them (``together``).
        together: the term of pods that match all of ``affinity``; None without affinity.
        anti_affinity: away from each of these.
        wishes: preferences.
        spread: spread constraints, hard and soft.
        selected_by: terms that select the pods of the class.
    """

    affinity: tuple[Placed, ...] = ()
    together: Term | None = None
    anti_affinity: tuple[Placed, ...] = ()
    wishes: tuple[Wish, ...] = ()
    spread: tuple[Spread, ...] = ()
    selected_by: tuple[Term, ...] = ()

    @property
    def is_silent(self) -> bool:
        """Neither says nor hears anything: nothing to book."""
        return not (self.users or self.selected_by)

    @property
    def users(self) -> tuple[Term, ...]:
        """Every term the class uses, once for each use."""
        terms = [placed.term for placed in (*self.affinity, *self.anti_affinity)]
        terms += [wish.term for wish in self.wishes] + [spread.term for spread in self.spread]
        return (*terms, self.together) if self.together is not None else tuple(terms)

    @property
    def wished_terms(self) -> tuple[Term, ...]:
        """The terms of required affinity and of preferences: those that make nodes better or worse."""
        return (*(placed.term for placed in self.affinity), *(wish.term for wish in self.wishes))


SILENT = Speech()


def selection_of(term: AffinityTerm) -> Selection:
    """The pods that *term* means."""
    return Selection(term.namespaces, term.namespace_selector, term.selector)


def spread_selection(rule: TopologySpread) -> Selection:
    """The pods that *rule* counts: those selected in the pod's own namespace."""
    return Selection(frozenset({rule.namespace}), None, rule.selector)


def together_of(constraints: PodConstraints) -> Parts:
    """The selections of all required affinity terms together, in one order."""
    parts = {selection_of(term): None for term in constraints.inter_pod.affinity}
    return tuple(parts)


def parts_of(constraints: PodConstraints) -> Iterator[Parts]:
    """The parts of every term that *constraints* need."""
    said = constraints.inter_pod
    for term in (*said.affinity, *said.anti_affinity, *(wish.term for wish in said.preferred)):
        yield (selection_of(term),)
    for rule in constraints.spread:
        yield (spread_selection(rule),)
    if said.affinity:
        yield together_of(constraints)
