"""Who looks at whom: label profiles, the terms of all pods, and counts of both by node.

Pods whose constraints look at other pods (inter-pod affinity, topology spread) name terms; a pod that a
term selects belongs to a class of its own (the term is in the class's signature), so that all pods of
a class count alike and a batch is booked at once. Nothing here costs anything while no pod looks at
another.

Labels enter only as profiles: a namespace and those labels that some selector mentions. Terms without a
user are forgotten when they outnumber the others; profiles likewise.

Neighbours: ``terms`` (what a term is), ``tallies`` (counts), ``pods`` (asks for profiles and re-interns
classes when a term is new).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from volcano_py.scheduler.model.accounts import Batch
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.kube.constraints import NO_INTER_POD, PodConstraints
from volcano_py.scheduler.model.nodes import NodeTable
from volcano_py.scheduler.model.resources import Ints, Rows32
from volcano_py.scheduler.model.tallies import Tally, by_node
from volcano_py.scheduler.model.tasks import HOLDS_NODE, Status, TaskTable
from volcano_py.scheduler.model.terms import (
    SILENT,
    Parts,
    Placed,
    Speech,
    Spread,
    Term,
    Wish,
    parts_of,
    selection_of,
    spread_selection,
    together_of,
)

NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""The label the API server puts on every namespace."""
_MEMO: Final = "coupling"
_SPARE: Final = 1024
"""Terms and profiles without a user that are kept before anything is swept."""

Profile = tuple[str, tuple[tuple[str, str], ...]]


class Coupling:
    """The terms in use, the profiles they select, and the pods behind both (an ``Observer``).

    Attributes:
        terms: number -> term.
    """

    def __init__(self, tasks: TaskTable, nodes: NodeTable) -> None:
        self.tasks, self.nodes = tasks, nodes
        self.terms: dict[int, Term] = {}
        self._by_parts: dict[Parts, Term] = {}
        self._anchored: dict[tuple[str, str], dict[int, Term]] = {}
        self._free: dict[int, Term] = {}
        self._keys: frozenset[str] = frozenset()
        self._next_term = 0
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._spaced: set[int] = set()
        self._profiles: dict[Profile, int] = {}
        self._with_label: dict[tuple[str, str], dict[Profile, int]] = {}
        self._matched: dict[int, frozenset[int]] = {}
        self._next_profile = 0
        self._swept = 0

    # -- profiles -------------------------------------------------------------------------------

    def profile(self, namespace: str, labels: Mapping[str, str]) -> int:
        """The profile of a pod: the same for pods that no selector in use can tell apart.

        Ask it after ``register`` of the pod's own constraints, which may bring new label keys.
        """
        keys = self._keys
        found = sorted((key, value) for key, value in labels.items() if key in keys) if keys else ()
        profile = (namespace, tuple(found))
        number = self._profiles.get(profile)
        if number is None:
            self._sweep_profiles()
            number = self._next_profile
            self._next_profile += 1
            self._profiles[profile] = number
            for pair in found:
                self._with_label.setdefault(pair, {})[profile] = number
            self._matched[number] = self._evaluate(profile)
        return number

    def matched_terms(self, profile: int) -> frozenset[int]:
        """Numbers of the terms that select pods of *profile*."""
        return self._matched[profile]

    def profiles_matching(self, number: int) -> list[int]:
        """Profiles that term *number* selects, ascending."""
        candidates = self._selectable(self.terms[number]).values()
        return sorted(profile for profile in candidates if number in self._matched[profile])

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> frozenset[int]:
        """*labels* of namespace *name* are these now (None: it is gone).

        Returns:
            Profiles that other terms select since; the classes of their tasks must be interned again.
        """
        if labels is None:
            self._namespaces.pop(name, None)
        else:
            self._namespaces[name] = {NAME_LABEL: name, **labels}
        changed = set()
        for profile, number in self._profiles.items() if self._spaced else ():
            if profile[0] == name:
                matched = self._evaluate(profile)
                if matched != self._matched[number]:
                    self._matched[number] = matched
                    changed.add(number)
        return frozenset(changed)

    # -- terms ----------------------------------------------------------------------------------

    def register(self, constraints: PodConstraints) -> frozenset[int]:
        """Make the terms of *constraints* known.

        Returns:
            Numbers of the terms that are new. Their counts come to be when the classes of the tasks
            they select (``profiles_matching``) are interned again.
        """
        if constraints.inter_pod == NO_INTER_POD and not constraints.spread:
            return frozenset()
        unknown = [parts for parts in dict.fromkeys(parts_of(constraints)) if parts not in self._by_parts]
        if not unknown:
            return frozenset()
        self._sweep_terms(constraints)
        added = [self._add(parts) for parts in unknown]
        self._mention(frozenset().union(*(term.label_keys for term in added)))
        for term in added:
            self._select(term)
        return frozenset(term.number for term in added)

    def speech(self, klass: TaskClass) -> Speech:
        """What *klass* says of other pods and which terms select it."""
        known = klass.memo.get(_MEMO)
        if isinstance(known, Speech):
            return known
        speech = self._speech(klass)
        klass.memo[_MEMO] = speech
        return speech

    # -- books ----------------------------------------------------------------------------------

    def booked(self, batch: Batch, sign: int) -> None:
        """*batch* entered (1) or left (-1) the accounts."""
        speech = self.speech(batch.klass)
        if speech is SILENT:
            return
        count = sign * len(batch.tasks)
        for term in speech.users:
            term.users += count
        for placed in speech.anti_affinity:
            placed.term.repellers += count
        for term in speech.wished_terms:
            term.wishers += count
        if HOLDS_NODE[batch.status] or batch.status == Status.PIPELINED:
            rows, times = by_node(batch.nodes)
            self._book(speech, batch.status, rows, times * sign)

    def counts(self, term: Term, *, future: bool = False, ignore_terminating: bool = False) -> Ints:
        """(capacity,) pods that *term* selects, by node row; see ``Tally.present``. Read only."""
        capacity = len(self.nodes.version)
        return term.matched.present(capacity, future=future, ignore_terminating=ignore_terminating)

    def domain_counts(
        self, term: Term, key: str, *, future: bool = False, ignore_terminating: bool = False
    ) -> Ints:
        """(capacity,) pods that *term* selects in the domain of *key* that each node row lies in.

        Rows without the label have none.
        """
        counts = self.counts(term, future=future, ignore_terminating=ignore_terminating)
        return self.over_domains(counts, key)

    def over_domains(self, counts: Ints, key: str) -> Ints:
        """(capacity,) *counts* (capacity,) summed over the domain of *key* that each row lies in."""
        codes, values = self.nodes.label_codes(key)
        return spread_sums(counts, codes, len(values))

    # -- inside ---------------------------------------------------------------------------------

    def _book(self, speech: Speech, status: Status, rows: Rows32, amounts: Ints) -> None:
        for term in speech.selected_by:
            term.matched.add(status, rows, amounts)
        for placed in speech.anti_affinity:
            _tally(placed.term.repelled, placed.key).add(status, rows, amounts)
        for placed in speech.affinity:
            _tally(placed.term.drawn, placed.key).add(status, rows, amounts)
        for wish in speech.wishes:
            _tally(wish.term.wished, wish.key).add(status, rows, amounts * wish.weight)

    def _speech(self, klass: TaskClass) -> Speech:
        said, terms = klass.constraints.inter_pod, self._by_parts
        selected_by = [self.terms[n] for n in sorted(klass.signature.terms) if n in self.terms]
        speech = Speech(
            tuple(Placed(terms[(selection_of(t),)], t.topology_key) for t in said.affinity),
            terms[together_of(klass.constraints)] if said.affinity else None,
            tuple(Placed(terms[(selection_of(t),)], t.topology_key) for t in said.anti_affinity),
            tuple(
                Wish(terms[(selection_of(w.term),)], w.term.topology_key, w.weight) for w in said.preferred
            ),
            tuple(Spread(rule, terms[(spread_selection(rule),)]) for rule in klass.constraints.spread),
            tuple(selected_by),
        )
        return SILENT if speech.is_silent else speech

    def _evaluate(self, profile: Profile) -> frozenset[int]:
        """Numbers of the terms that select *profile*."""
        if not self.terms:
            return frozenset()
        namespace, pairs = profile
        space, labels = self._labels_of(namespace), dict(pairs)
        candidates = [self._free, *(self._anchored.get(pair, {}) for pair in pairs)]
        return frozenset(
            number
            for terms in candidates
            for number, term in terms.items()
            if term.matches(namespace, space, labels)
        )

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        return self._namespaces.get(namespace) or {NAME_LABEL: namespace}

    def _add(self, parts: Parts) -> Term:
        term = Term(self._next_term, parts)
        self._next_term += 1
        self.terms[term.number] = self._by_parts[parts] = term
        anchors = term.anchors
        for anchor in anchors:
            self._anchored.setdefault(anchor, {})[term.number] = term
        if not anchors:
            self._free[term.number] = term
        if any(part.namespace_selector is not None for part in parts):
            self._spaced.add(term.number)
        return term

    def _selectable(self, term: Term) -> Mapping[Profile, int]:
        """The profiles that *term* might select."""
        anchors = term.anchors
        if not anchors:
            return self._profiles
        return dict(item for anchor in anchors for item in self._with_label.get(anchor, {}).items())

    def _select(self, term: Term) -> None:
        """Note the profiles that the new *term* selects."""
        for (namespace, pairs), number in self._selectable(term).items():
            if term.matches(namespace, self._labels_of(namespace), dict(pairs)):
                self._matched[number] |= {term.number}

    def _mention(self, keys: frozenset[str]) -> None:
        """Selectors mention *keys* now: pods with these labels get finer profiles."""
        new = keys - self._keys
        if not new:
            return
        self._keys |= new
        for task, pod in enumerate(self.tasks.pods):
            if pod is not None and not new.isdisjoint(pod.metadata.labels):
                self.tasks.profile[task] = self.profile(pod.metadata.namespace, pod.metadata.labels)

    def _sweep_terms(self, needed: PodConstraints) -> None:
        """Forget terms without a user, if many, except those of *needed*.

        Classes may still carry a forgotten number in their signature; it is never given to another term.
        """
        if len(self.terms) < 2 * self._swept + _SPARE:
            return
        keep = set(parts_of(needed))
        gone = {t.number for t in self.terms.values() if t.users == 0 and t.parts not in keep}
        for number in gone:
            term = self.terms.pop(number)
            del self._by_parts[term.parts]
            self._free.pop(number, None)
            self._spaced.discard(number)
            for anchor in term.anchors:
                self._drop_anchor(anchor, number)
        for profile, matched in self._matched.items():
            self._matched[profile] = matched - gone
        self._swept = len(self.terms)

    def _drop_anchor(self, anchor: tuple[str, str], number: int) -> None:
        at = self._anchored[anchor]
        del at[number]
        if not at:
            del self._anchored[anchor]

    def _sweep_profiles(self) -> None:
        """Forget the profiles that no task has, when they may be half of all."""
        tasks = self.tasks
        if len(self._profiles) < 2 * len(tasks.index) + _SPARE:
            return
        used = set(np.unique(tasks.profile[: tasks.size]).tolist())
        self._profiles = {profile: n for profile, n in self._profiles.items() if n in used}
        self._matched = {n: self._matched[n] for n in self._profiles.values()}
        self._with_label = {}
        for profile, number in self._profiles.items():
            for pair in profile[1]:
                self._with_label.setdefault(pair, {})[profile] = number


def spread_sums(counts: Ints, codes: Rows32, domains: int) -> Ints:
    """(capacity,) for each row the sum of *counts* over the rows of its code; 0 for code -1.

    Args:
        counts: (capacity,) int64, or more rows than *codes* has.
        codes: (n,) int32, -1 for rows in no domain.
        domains: number of codes.
    """
    labelled = codes >= 0
    if domains == int(np.count_nonzero(labelled)):  # one node a domain, as with host names
        out: Ints = counts[: len(codes)] * labelled
    else:
        at = codes + 1
        # bincount sums in float64, which is exact up to 2**53: far above any number of pods or weights.
        sums = np.bincount(at, counts[: len(at)], minlength=domains + 1).astype(np.int64)
        sums[0] = 0
        out = sums[at]
    if len(out) < len(counts):
        out = np.concatenate([out, np.zeros(len(counts) - len(out), np.int64)])
    return out


def _tally(tallies: dict[str, Tally], key: str) -> Tally:
    tally = tallies.get(key)
    if tally is None:
        tally = tallies[key] = Tally()
    return tally
