"""What a scenario may expect, and how it is compared with what came out.

One function a key of ``expect``: it returns what differs, as a sentence, or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from volcano_py.crds.quantity import format_base, to_base
from volcano_py.scheduler.engine import CycleResult, Engine
from volcano_py.scheduler.framework.decision import Decision
from volcano_py.scheduler.model.tasks import HOLDS_NODE, NOWHERE, Status
from volcano_py.simulator.reasons import waiting_reason

RECORDED: Final = 1_767_225_600.0
"""When binds are recorded, for what annotations say of it."""


@dataclass(slots=True)
class Outcome:
    """What the cycles of a scenario or step decided.

    Attributes:
        decisions: of all cycles; *last* those of the last one.
    """

    engine: Engine
    decisions: list[Decision] = field(default_factory=list)
    last: CycleResult | None = None

    def add(self, result: CycleResult) -> None:
        """One more cycle."""
        self.decisions += result.decisions
        self.last = result

    def of(self, kind: str) -> list[Decision]:
        """Decisions of *kind* over all cycles."""
        return [decision for decision in self.decisions if decision.kind == kind]


def differences(outcome: Outcome, expect: Mapping[str, Any]) -> list[str]:
    """What differs, one sentence each."""
    return [text for key, wanted in expect.items() for text in CHECKS[key](outcome, wanted)]


def _binds(outcome: Outcome, wanted: Mapping[str, str | list[str]]) -> list[str]:
    got = {decision.pod: decision.node for decision in outcome.of("bind")}
    right = {pod: nodes if isinstance(nodes, list) else [nodes] for pod, nodes in wanted.items()}
    wrong = []
    for pod in sorted({*got, *right}):
        if pod not in right:
            wrong.append(f"binds: {pod} on {got[pod]} was not expected")
        elif got.get(pod) not in right[pod]:
            wrong.append(f"binds: expected {pod} on {' or '.join(right[pod])}, got {got.get(pod, 'no bind')}")
    return wrong


def _count(kind: str, name: str) -> Callable[[Outcome, Any], list[str]]:
    def check(outcome: Outcome, wanted: Any) -> list[str]:
        got = outcome.of(kind)
        if _within(len(got), wanted):
            return []
        pods = ", ".join(decision.pod for decision in got) or "none"
        return [f"{name}: expected {_range(wanted)}, got {len(got)}: {pods}"]

    return check


def _evicted(outcome: Outcome, wanted: list[str]) -> list[str]:
    return _one_of("evicted", outcome, [wanted])


def _evicted_one_of(outcome: Outcome, wanted: list[list[str]]) -> list[str]:
    return _one_of("evictedOneOf", outcome, wanted)


def _one_of(name: str, outcome: Outcome, wanted: list[list[str]]) -> list[str]:
    got = Counter(decision.pod for decision in outcome.of("evict"))
    if any(got == Counter(one) for one in wanted):
        return []
    sets = " or ".join(_names(sorted(one)) for one in wanted)
    return [f"{name}: expected {sets}, got {_names(sorted(got.elements()))}"]


def _pipelined(outcome: Outcome, wanted: Mapping[str, list[str]]) -> list[str]:
    state = outcome.engine.state
    got: dict[str, list[str]] = {}
    for decision in outcome.last.decisions if outcome.last else []:
        if decision.kind == "pipeline":
            job = state.jobs[int(state.tasks.job[state.tasks.index[decision.pod]])]
            got.setdefault(job.key, []).append(decision.node)
    return [
        f"pipelined: expected {group} on {_names(wanted.get(group, ()))}, got {_names(got.get(group, ()))}"
        for group in sorted({*got, *wanted})
        if sorted(got.get(group, ())) != sorted(wanted.get(group, ()))
    ]


def _bound(outcome: Outcome, wanted: Mapping[str, Any]) -> list[str]:
    state = outcome.engine.state
    wrong = []
    for group, count in wanted.items():
        job = state.jobs.named(group)
        held = [t for t in (job.tasks if job else ()) if HOLDS_NODE[state.tasks.status[t]]]
        got = len([t for t in held if state.tasks.status[t] != Status.RELEASING])
        if not _within(got, count):
            wrong.append(f"bound: expected {_range(count)} pods of {group} on nodes, got {got}")
    return wrong


def _allocated(outcome: Outcome, wanted: Mapping[str, Mapping[str, Any]]) -> list[str]:
    state = outcome.engine.state
    wrong = []
    for name, amounts in wanted.items():
        queue = state.queues.named(name)
        if queue is None:
            wrong.append(f"allocated: there is no queue {name}")
            continue
        held = state.queues.allocated[queue.row] - state.queues.releasing[queue.row]
        for resource, amount in amounts.items():
            column = state.vocabulary.columns.get(resource)
            got = 0 if column is None else int(held[column])
            if got != to_base(resource, amount):
                has = format_base(resource, got)
                wrong.append(f"allocated: expected queue {name} to hold {amount} {resource}, got {has}")
    return wrong


def _pod_groups(outcome: Outcome, wanted: Mapping[str, str]) -> list[str]:
    wrong = []
    for group, phase in wanted.items():
        job = outcome.engine.state.jobs.named(group)
        got = job.phase if job is not None else "(no such group)"
        right = got != phase[1:] if phase.startswith("!") else got == phase
        if not right:
            wrong.append(f"podGroups: expected {group} to be {phase}, got {got}")
    return wrong


def _pending(outcome: Outcome, wanted: Mapping[str, str]) -> list[str]:
    wrong = []
    for pod, text in wanted.items():
        reasons = _reasons(outcome, pod)
        if not reasons:
            wrong.append(f"pending: expected {pod} to wait, but it does not")
        elif not any(text.lower() in reason.lower() for reason in reasons):
            wrong.append(f"pending: expected the reason of {pod} to say {text!r}, got: {' / '.join(reasons)}")
    return wrong


def _reasons(outcome: Outcome, pod: str) -> list[str]:
    """Why *pod* waits, and why its group as a whole does; none where it does not wait."""
    own = waiting_reason(outcome.engine, outcome.last, pod)
    if own is None:
        return []
    state = outcome.engine.state
    row = int(state.tasks.job[state.tasks.index[pod]]) if pod in state.tasks.index else NOWHERE
    of_group = outcome.last.job_refusals.get(state.jobs[row].key) if outcome.last and row != NOWHERE else None
    return list(dict.fromkeys([own.message, *([of_group.message] if of_group else [])]))


def _slices(outcome: Outcome, wanted: Mapping[str, list[Mapping[str, Any]]]) -> list[str]:
    return [
        f"slices: expected {pod} to hold {expected}, got {got}"
        for pod, expected in wanted.items()
        if not _same_slices(got := _held(outcome, pod), expected)
    ]


def _records(outcome: Outcome, wanted: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Annotations that go onto pods with their binds."""
    state, wrong = outcome.engine.state, []
    for pod, expected in wanted.items():
        written: Mapping[str, str] = {}
        for decision in outcome.of("bind"):
            bound = state.tasks.pods[state.tasks.index[decision.pod]] if decision.pod == pod else None
            if bound is not None:
                cards = state.cards.specs.get(state.nodes.index[decision.node], ())
                written = state.card_source.record(bound, decision.slices, decision.node, cards, RECORDED)
        for key, text in expected.items():
            if written.get(key) != text:
                wrong.append(f"records: expected {key} of {pod} to be {text!r}, got {written.get(key)!r}")
    return wrong


def _doubts(outcome: Outcome, wanted: Mapping[str, str]) -> list[str]:
    """What is said of objects ("Pod ns/name") that are used all the same, or that can't be."""
    state, wrong = outcome.engine.state, []
    for key, text in wanted.items():
        problems = [*state.doubts.get(key, ()), *state.problems.get(key, ())]
        got = "; ".join(problem.message for problem in problems)
        if text not in got:
            wrong.append(f"doubts: expected {text!r} of {key}, got {got or 'nothing'!r}")
    return wrong


def _held(outcome: Outcome, pod: str) -> list[dict[str, Any]]:
    state = outcome.engine.state
    task = state.tasks.index.get(pod, NOWHERE)
    choice = state.tasks.slices.get(task)
    node = state.nodes.names[state.tasks.node[task]] if choice is not None else ""
    return [
        {
            "container": part.container,
            "node": node,
            "card": part.card,
            "uuid": part.uuid,
            "memory": part.memory_mib,
            "cores": part.cores,
            "instance": part.instance,
        }
        for part in (choice.slices if choice else ())
    ]


def _same_slices(got: list[dict[str, Any]], wanted: list[Mapping[str, Any]]) -> bool:
    """Each wanted slice is one of those held, and none is left; in whatever order."""
    left = list(got)
    for expected in wanted:
        found = next((part for part in left if _matches(part, expected)), None)
        if found is None:
            return False
        left.remove(found)
    return not left


def _matches(slice_: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """``card`` may be the position or the UUID; keys left out are not checked."""
    card = wanted.get("card", slice_["card"])
    rest = {key: value for key, value in wanted.items() if key != "card"}
    return card in (slice_["card"], slice_["uuid"]) and all(slice_.get(k) == v for k, v in rest.items())


def _within(value: int, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return int(wanted.get("min", 0)) <= value <= int(wanted.get("max", 2**31))
    return value == int(wanted)


def _names(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _range(wanted: Any) -> str:
    if isinstance(wanted, dict):
        return f"{wanted.get('min', 0)} to {wanted.get('max', 'any')}"
    return str(wanted)


CHECKS: Final[Mapping[str, Callable[[Outcome, Any], list[str]]]] = {
    "binds": _binds,
    "bindCount": _count("bind", "bindCount"),
    "evictCount": _count("evict", "evictCount"),
    "pipelined": _pipelined,
    "evicted": _evicted,
    "evictedOneOf": _evicted_one_of,
    "bound": _bound,
    "allocated": _allocated,
    "podGroups": _pod_groups,
    "pending": _pending,
    "slices": _slices,
    "records": _records,
    "doubts": _doubts,
}
