"""Counts of pods by selector and node are true after any sequence of events and moves."""

from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.plugins.asking import class_of, engine_of
from tests.plugins.random_clusters import namespaces, nodes, pod
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.tallies import Tally
from volcano_py.scheduler.model.tasks import Status
from volcano_py.scheduler.model.terms import Parts

_ANTI = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}


def podof(name: str, namespace: str = "a", *, on: str = "", app: str = "x", **spec: Any) -> dict[str, Any]:
    """A pod with label ``app``, running *on* a node or pending."""
    meta: dict[str, Any] = {"name": name, "namespace": namespace, "labels": {"app": app}}
    meta["annotations"] = {"scheduling.k8s.io/group-name": name}
    body: dict[str, Any] = {"schedulerName": "volcano-py", "containers": [{"name": "c"}], **spec}
    if on:
        body["nodeName"] = on
    status = {"phase": "Running" if on else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body, "status": status}


def away(*terms: dict[str, Any]) -> dict[str, Any]:
    """Required anti-affinity."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def plain_node(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {}}


def book(tally: Tally, state: ClusterState) -> dict[str, tuple[int, int, int]]:
    """Node name -> holding, leaving, promised, where any is not 0."""
    found = {}
    for row, name in enumerate(state.nodes.names):
        counts = (tally.holding.at(row), tally.leaving.at(row), tally.promised.at(row))
        if any(counts):
            found[name] = counts
    return found


Books = dict[tuple[Parts, str, str], dict[str, tuple[int, int, int]]]


def books(state: ClusterState) -> Books:
    """Every count of every term with a user, by what the term selects."""
    found: Books = {}
    for term in state.coupling.terms.values():
        if term.users:
            found[(term.parts, "matched", "")] = book(term.matched, state)
            for side in ("repelled", "drawn", "wished"):
                for key, tally in getattr(term, side).items():
                    found[(term.parts, side, key)] = book(tally, state)
            found[(term.parts, "users", "")] = {"": (term.users, term.repellers, term.wishers)}
    return {key: value for key, value in found.items() if value}


def recount(state: ClusterState) -> Books:
    """The same from the tasks, plainly: who selects whom, where both stand."""
    fresh: dict[tuple[Parts, str, str], dict[str, list[int]]] = {}
    tasks = state.tasks
    for task in tasks.index.values():
        klass = state.classes[int(tasks.klass[task])]
        speech = state.coupling.speech(klass)
        status, pod_ = Status(int(tasks.status[task])), tasks.pods[task]
        assert pod_ is not None
        entries = [(term.parts, "users", "", (1, 0, 0)) for term in speech.users]
        entries += [(placed.term.parts, "users", "", (0, 1, 0)) for placed in speech.anti_affinity]
        entries += [(term.parts, "users", "", (0, 0, 1)) for term in speech.wished_terms]
        for parts, side, key, amounts in entries:
            add(fresh, (parts, side, key), "", amounts)
        if tasks.node[task] < 0:
            continue
        where = state.nodes.names[int(tasks.node[task])]
        one = {Status.RELEASING: (1, 1, 0), Status.PIPELINED: (0, 0, 1)}.get(status, (1, 0, 0))
        meta = pod_.metadata
        space = state.coupling._labels_of(meta.namespace)
        for term in state.coupling.terms.values():
            if term.users and term.matches(meta.namespace, space, meta.labels):
                add(fresh, (term.parts, "matched", ""), where, one)
        for placed in speech.anti_affinity:
            add(fresh, (placed.term.parts, "repelled", placed.key), where, one)
        for placed in speech.affinity:
            add(fresh, (placed.term.parts, "drawn", placed.key), where, one)
        for wish in speech.wishes:
            add(fresh, (wish.term.parts, "wished", wish.key), where, [wish.weight * n for n in one])
    return {
        key: {where: (c[0], c[1], c[2]) for where, c in counts.items() if any(c)}
        for key, counts in fresh.items()
    }


def add(fresh: Any, key: tuple[Parts, str, str], where: str, amounts: Iterable[int]) -> None:
    counts = fresh.setdefault(key, {}).setdefault(where, [0, 0, 0])
    for place, amount in enumerate(amounts):
        counts[place] += amount


def move_some(dice: Random, engine: Engine) -> list[Any]:
    """Move waiting tasks and running ones about; returns what moves them back, last first."""
    state = engine.state
    undo = []
    for _ in range(12):
        task = dice.choice(sorted(state.tasks.index.values()))
        row = np.array([dice.randrange(state.nodes.size)], np.int32)
        status = Status(int(state.tasks.status[task]))
        if status == Status.PENDING:
            target, where = dice.choice((Status.ALLOCATED, Status.PIPELINED)), row
        elif status in (Status.RUNNING, Status.ALLOCATED):
            target, where = Status.RELEASING, state.tasks.node[task : task + 1].copy()
        else:
            continue
        before, held = state.accounts.move([task], target, where)
        undo.append((before, held))
    return undo[::-1]


@pytest.mark.parametrize("seed", range(60))
def test_books_are_true_and_undone(seed: int) -> None:
    dice = Random(seed)
    machines = nodes(dice)
    places = [machine["metadata"]["name"] for machine in machines]
    placed = [pod(dice, f"p{i}", dice.choice(places)) for i in range(8)]
    waiting = [pod(dice, f"w{i}") for i in range(6)]
    engine = engine_of(*namespaces(dice), *machines, *placed, *waiting)
    state = engine.state
    start = books(state)
    assert start == {key: value for key, value in recount(state).items() if value}
    undo = move_some(dice, engine)
    assert books(state) == {key: value for key, value in recount(state).items() if value}
    for before, held in undo:
        state.accounts.move(before.tasks, before.status, before.nodes if before.nodes[0] >= 0 else None, held)
    assert books(state) == start
    for gone in dice.sample([*placed, *waiting], 7):
        meta = gone["metadata"]
        state.delete("Pod", f"{meta['namespace']}/{meta['name']}")
    assert books(state) == {key: value for key, value in recount(state).items() if value}


def test_a_term_counts_pods_placed_before_it_was_heard_of() -> None:
    engine = engine_of(plain_node("n1", zone="z"), podof("old", on="n1"), podof("w", affinity=away(_ANTI)))
    coupling = engine.state.coupling
    (term,) = coupling.terms.values()
    assert coupling.domain_counts(term, "zone")[engine.state.nodes.index["n1"]] == 1


def test_pods_that_a_selector_tells_apart_are_different_classes() -> None:
    before = engine_of(podof("x"), podof("y", app="y"))
    assert class_of(before, "a/x") is class_of(before, "a/y")
    before.apply(podof("w", affinity=away(_ANTI)))
    assert class_of(before, "a/x") is not class_of(before, "a/y")


def test_terms_of_one_namespace_do_not_see_another() -> None:
    engine = engine_of(
        plain_node("n1", zone="z"), podof("other", "b", on="n1"), podof("w", affinity=away(_ANTI))
    )
    (term,) = engine.state.coupling.terms.values()
    assert not engine.state.coupling.counts(term).any()


def test_namespace_labels_may_change() -> None:
    term = {**_ANTI, "namespaceSelector": {"matchLabels": {"team": "red"}}}
    engine = engine_of(
        plain_node("n1", zone="z"), podof("other", "b", on="n1"), podof("w", affinity=away(term))
    )
    (interned,) = engine.state.coupling.terms.values()
    row = engine.state.nodes.index["n1"]
    for labels, expected in (({"team": "red"}, 1), ({"team": "blue"}, 0), ({"team": "red"}, 1)):
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b", "labels": labels}}
        engine.apply(space)
        assert engine.state.coupling.counts(interned)[row] == expected
    engine.delete("Namespace", "b")
    assert engine.state.coupling.counts(interned)[row] == 0


def test_a_namespace_selector_may_go_by_name() -> None:
    term = {**_ANTI, "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "b"}}}
    engine = engine_of(
        plain_node("n1", zone="z"), podof("other", "b", on="n1"), podof("w", affinity=away(term))
    )
    (interned,) = engine.state.coupling.terms.values()
    assert engine.state.coupling.counts(interned).sum() == 1


def test_nothing_is_kept_of_pods_that_look_at_nobody() -> None:
    engine = engine_of(*(podof(f"p{i}", app=str(i)) for i in range(20)))
    assert not engine.state.coupling.terms
    assert len({class_of(engine, f"a/p{i}").row for i in range(20)}) == 1


def test_terms_and_profiles_do_not_pile_up() -> None:
    """A cluster that sees ever new jobs, each away from its own, remembers about as many as live."""
    engine = engine_of(plain_node("n1", zone="z"))
    for number in range(3000):
        app = f"job-{number}"
        term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "zone"}
        engine.apply(podof(f"p{number}", app=app, on="n1", affinity=away(term)))
        if number >= 5:
            engine.delete("Pod", f"a/p{number - 5}")
    coupling = engine.state.coupling
    assert len(coupling.terms) < 2000
    assert len(coupling._profiles) < 2500
    assert sum(term.users for term in coupling.terms.values()) == 5
    last = class_of(engine, "a/p2999")
    assert [t.number for t in coupling.speech(last).selected_by] == sorted(last.signature.terms)


def test_a_forgotten_term_is_counted_right_when_it_returns() -> None:
    engine = engine_of(plain_node("n1", zone="z"), podof("x", on="n1"))
    engine.apply(podof("w", affinity=away(_ANTI)))
    engine.delete("Pod", "a/w")
    for number in range(1100):
        term = {"labelSelector": {"matchLabels": {"app": f"other-{number}"}}, "topologyKey": "zone"}
        engine.apply(podof("v", app="v", affinity=away(term)))
    wanted = (frozenset({"a"}), None)
    assert not any(t.parts[0][:2] == wanted and t.matched for t in engine.state.coupling.terms.values())
    engine.apply(podof("w", affinity=away(_ANTI)))
    engine.apply(podof("x2", on="n1"))
    again = next(t for t in engine.state.coupling.terms.values() if t.repellers and t.matched)
    assert engine.state.coupling.counts(again).sum() == 2


def test_a_term_without_a_user_that_is_wanted_again_is_not_swept() -> None:
    engine = engine_of(plain_node("n1", zone="z"), podof("x", on="n1"))
    terms = engine.state.coupling.terms
    engine.apply(podof("w", affinity=away(_ANTI)))
    engine.delete("Pod", "a/w")
    while len(terms) < 1024:
        term = {"labelSelector": {"matchLabels": {"app": f"other-{len(terms)}"}}, "topologyKey": "zone"}
        engine.apply(podof("v", app="v", affinity=away(term)))
    new = {"labelSelector": {"matchLabels": {"app": "new"}}, "topologyKey": "zone"}
    engine.apply(podof("w", affinity=away(_ANTI, new)))
    assert len(terms) == 3, "two of the newcomer, one of the last pod before it"
    assert sorted(term.matched.present(1).sum() for term in terms.values()) == [0, 0, 1]


@pytest.mark.parametrize("count", [1, 63, 64, 65, 200])
def test_tallies_are_the_same_few_or_many(count: int) -> None:
    rows = np.arange(count, dtype=np.int32) * 2
    one_by_one, at_once = Tally(), Tally()
    for row in rows:
        one_by_one.add(Status.RUNNING, np.array([row], np.int32), np.array([3], np.int64))
    at_once.add(Status.RUNNING, rows, np.full(count, 3, np.int64))
    expected = np.zeros(2 * count + 5, np.int64)
    expected[rows] = 3
    for tally in (one_by_one, at_once):
        assert (tally.present(len(expected)) == expected).all()
        assert tally.holding.rows() == rows.tolist()
        tally.add(Status.RUNNING, rows, np.full(count, -3, np.int64))
        assert not tally
        assert not tally.present(len(expected)).any()


def test_what_is_present_depends_on_the_time() -> None:
    tally, row, one = Tally(), np.array([1], np.int32), np.ones(1, np.int64)
    for status in (Status.RUNNING, Status.RUNNING, Status.RELEASING, Status.PIPELINED, Status.PENDING):
        tally.add(status, row, one)
    assert tally.present(2)[1] == 3
    assert tally.present(2, ignore_terminating=True)[1] == 2
    assert tally.present(2, future=True)[1] == 3
    assert tally.at(1) == 3
    assert tally.at(1, future=True) == 3
