"""Task classes: pods that ask the same and may run in the same places are placed as one.

A class is interned by signature over the whole cluster; 10,000 jobs with equal pods share one class,
so feasibility and scores are computed once. Labels are no part of the signature, unless another
pod's selector looks at them (``coupling``).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from volcano_py.scheduler.model.kube.podspec import PodConstraints
from volcano_py.scheduler.model.resources import Ints, Vocabulary, pad
from volcano_py.scheduler.model.rows import put_at


@dataclass(frozen=True, slots=True)
class Signature:
    """What makes two pods the same for placement.

    Attributes:
        request: what a node must have, as sorted (resource, base units).
        charge: what queue and job are charged with; differs from *request* where cards are cut.
        nonzero: milli-CPU and bytes for scores (defaults of kube-scheduler for pods that ask nothing).
        constraints: where the pod may run.
        cards: what the pod asks of cards, as the device plugin reads it; None without cards.
        terms: terms of other pods' selectors that match this pod's labels.
    """

    request: tuple[tuple[str, int], ...]
    charge: tuple[tuple[str, int], ...]
    nonzero: tuple[int, int]
    constraints: PodConstraints
    cards: Hashable = None
    terms: frozenset[int] = frozenset()


@dataclass(eq=False, slots=True)
class TaskClass:
    """One interned signature.

    Attributes:
        row: index in ``ClassTable.classes``.
        request, charge: (R,) int64 base units; see ``Signature``. Both include one pod.
        heaviest: the largest amount in *charge*, whatever its resource.
        best_effort: asks for no resource but being a pod.
        tasks: tasks of this class that exist (the class goes when none is left).
        memo: values plugins derive from the signature once, by plugin name.
    """

    row: int
    signature: Signature
    request: Ints
    charge: Ints
    heaviest: int
    best_effort: bool
    tasks: int = 0
    memo: dict[str, object] = field(default_factory=dict)

    @property
    def constraints(self) -> PodConstraints:
        """Where pods of the class may run."""
        return self.signature.constraints

    @property
    def cards(self) -> Hashable:
        """What the class asks of cards (None: nothing)."""
        return self.signature.cards


class ClassTable:
    """All task classes by signature.

    Attributes:
        charged: the heaviest amounts of all tasks together: no sum over some of them is more.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.classes: list[TaskClass | None] = []
        self.charged = 0
        self._by_signature: dict[Signature, TaskClass] = {}
        self._free: list[int] = []
        vocabulary.on_widen(self._widen)

    def __getitem__(self, row: int) -> TaskClass:
        found = self.classes[row]
        if found is None:
            raise KeyError(row)
        return found

    def intern(self, signature: Signature) -> TaskClass:
        """The class of *signature*, with one more task in it."""
        known = self._by_signature.get(signature)
        if known is None:
            known = self._add(signature)
        known.tasks += 1
        self.charged += known.heaviest
        return known

    def leave(self, klass: TaskClass) -> None:
        """One task of *klass* is gone; a class without tasks is forgotten."""
        klass.tasks -= 1
        self.charged -= klass.heaviest
        if klass.tasks == 0:
            del self._by_signature[klass.signature]
            self.classes[klass.row] = None
            self._free.append(klass.row)

    def _add(self, signature: Signature) -> TaskClass:
        request = self.vocabulary.vector(dict(signature.request))
        charge = self.vocabulary.vector(dict(signature.charge))
        request = pad(request, self.vocabulary.width)  # names of the charge may have widened it
        best_effort = not any(amount for name, amount in signature.request if name != "pods")
        row = self._free.pop() if self._free else len(self.classes)
        bare = best_effort and signature.cards is None
        klass = TaskClass(row, signature, request, charge, int(charge.max()), bare)
        put_at(self.classes, row, klass)
        self._by_signature[signature] = klass
        return klass

    def _widen(self, width: int) -> None:
        for klass in self._by_signature.values():
            klass.request = pad(klass.request, width)
            klass.charge = pad(klass.charge, width)
