"""The gate's books equal a recount, whatever happened since they were last asked."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.clusters import Document, engine, group, node, pod, queue
from volcano_py.plugins.overcommit import OvercommitPlugin
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.framework.gate import GateBooks

CONFIG = "actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}, {name: overcommit}]}]\n"
PHASES = ("Pending", "Inqueue", "Running", "Unknown", "Completed")


def refreshed(made: Engine, now: float) -> tuple[GateBooks, GateBooks]:
    """The books that the plugin keeps from cycle to cycle, and new ones, both brought up to date."""
    session = made.open(now)
    plugin = made.plugins[-1]
    assert isinstance(plugin, OvercommitPlugin)
    fresh = GateBooks()
    fresh.attach(session)
    for books in (plugin.books, fresh):
        books.refresh()
    made.close(session)
    return plugin.books, fresh


def amounts(books: GateBooks) -> list[list[int]]:
    return [
        books.coming.tolist(),
        books.coming_firm.tolist(),
        books.elastic.tolist(),
        [books.coming_total.tolist()],
    ]


def some_group(dice: Random, name: str) -> Document:
    asks = {"cpu": str(dice.randint(0, 5))} | (
        {f"example.com/r{dice.randint(0, 9)}": "1"} if dice.random() < 0.2 else {}
    )
    more = {"minResources": asks} if dice.random() < 0.8 else {}
    annotations = {"volcano.sh/preemptable": "false"} if dice.random() < 0.3 else {}
    where = dice.choice(["a", "b", "default", "nowhere"])
    return group(name, dice.randint(0, 3), where, dice.choice(PHASES), annotations=annotations, **more)


def step(dice: Random, made: Engine) -> None:
    """One random event."""
    name = f"g{dice.randint(0, 5)}"
    member = f"{name}-{dice.randint(0, 3)}"
    kind = dice.randint(0, 6)
    if kind <= 1:
        assert made.apply(some_group(dice, name)) == []
    elif kind <= 3:
        assert made.apply(pod(member, name, str(dice.randint(1, 3)), on=dice.choice(["", "n"]))) == []
    elif kind == 4:
        made.delete("Pod", f"ml/{member}")
    elif kind == 5:
        made.delete("PodGroup", f"ml/{name}")
    elif dice.random() < 0.5:
        assert made.apply(queue("a", parent=dice.choice(["p", ""]), interruptible=dice.random() < 0.5)) == []
    else:
        made.delete("Queue", "b")
        assert made.apply(queue("b")) == []


@pytest.mark.parametrize("seed", range(20))
def test_the_books_equal_a_recount(seed: int) -> None:
    dice = Random(seed)
    made = engine(node("n", "64"), queue("p"), queue("a", parent="p"), queue("b"), config=CONFIG)
    for turn in range(30):
        for _ in range(dice.randint(0, 6)):
            step(dice, made)
        if dice.random() < 0.3:
            made.cycle(float(turn))
        if dice.random() < 0.3:
            made.settle(float(turn))
        kept, fresh = refreshed(made, float(turn))
        assert amounts(kept) == amounts(fresh), f"seed {seed}, turn {turn}"


def test_a_group_whose_pods_were_deleted_asks_for_nothing_until_it_has_pods_again() -> None:
    """Admitted groups wait for pods that are still to be made; of one left behind nothing is to come."""
    made = engine(
        node("n", "2"), group("g", 2, minResources={"cpu": "4"}), group("new", phase="Pending"), config=CONFIG
    )
    books, _ = refreshed(made, 0.0)
    assert books.coming_total[0] == 4000, "its pods are not made yet"
    for name in ("g-0", "g-1"):
        made.apply(pod(name, "g", "2"))
    assert books.coming_total[0] == 4000
    for name in ("g-0", "g-1"):
        made.delete("Pod", f"ml/{name}")
    books, fresh = refreshed(made, 1.0)
    assert books.coming_total[0] == fresh.coming_total[0] == 0
    made.apply(pod("g-0", "g", "2"))
    assert refreshed(made, 2.0)[0].coming_total[0] == 4000


def test_who_is_admitted_anew_counts_though_its_pods_are_gone() -> None:
    made = engine(node("n", "4"), group("g", 2, minResources={"cpu": "4"}), config=CONFIG)
    made.apply(pod("g-0", "g", "2"))
    made.delete("Pod", "ml/g-0")
    made.apply(group("g", 2, phase="Pending", minResources={"cpu": "4"}))
    made.cycle(1.0)
    assert refreshed(made, 2.0)[0].coming_total[0] == 4000


def test_an_ancestor_counts_what_comes_below_it() -> None:
    made = engine(
        node("n"),
        queue("p"),
        queue("a", parent="p"),
        group("g", 2, "a", minResources={"cpu": "3"}),
        config=CONFIG,
    )
    books, _ = refreshed(made, 0.0)
    rows = [made.state.queues.index[name] for name in ("a", "p")]
    assert books.coming[rows, 0].tolist() == [3000, 3000]
    assert int(np.sum(books.coming_total)) == 3000


@pytest.mark.parametrize(("sum_of_all", "phase"), [("1280Ti", "Pending"), ("1Ti", "Inqueue")])
def test_a_gang_that_asks_for_more_than_one_object_may_hold_waits_for_room(
    sum_of_all: str, phase: str
) -> None:
    """5,000 pods of 256 GiB are no fault of the PodGroup."""
    roomy = node("n0")
    roomy["status"]["allocatable"]["memory"] = "2Ti"
    made = engine(
        roomy, group("g", 5000, phase="Pending", minResources={"memory": sum_of_all}), config=CONFIG
    )
    made.cycle(100.0)
    job = made.state.jobs.named("ml/g")
    assert job is not None
    assert job.phase == phase
