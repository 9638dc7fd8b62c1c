"""A cycle that nothing announces decides nothing: skipping it changes no decision."""

from __future__ import annotations

import math

import pytest

from tests.clusters import group, node, pod, queue
from tests.run.lives import Life, change_of, deletion_of, of_kind, other_config, pods_of, random_life, tell
from volcano_py.crds.schedulerconfig import load_scheduler_config, parse_scheduler_config
from volcano_py.scheduler.engine import CycleResult
from volcano_py.scheduler.framework import registry
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.registry import PLUGIN_GROUP
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.run.owner import Owner
from volcano_py.scheduler.run.triggers import Pace, Triggers, comes_of_age

PLAIN = "actions: enqueue, allocate, preempt, backfill\ntiers:\n- plugins: [{name: gang}, {name: priority}]\n"
STEPS = 25


def says_nothing_new(result: CycleResult, before: CycleResult | None) -> bool:
    """*result* binds and evicts nobody, and promises nothing that was not promised before."""
    promised = set() if before is None else pods_of(of_kind(before, "pipeline"))
    return not of_kind(result, "bind", "evict") and pods_of(of_kind(result, "pipeline")) <= promised


def watch(life: Life) -> tuple[int, int]:
    """Live, and run a cycle whether one is due or not.

    Returns:
        Cycles that were due, and those that were not.
    """
    triggers, last = Triggers(1.0), None
    due_count = idle_count = 0
    for step in range(STEPS):
        life.live(life.dice.randint(1, 2))
        tell(life.owner, life)
        if life.dice.random() < 0.05:
            life.owner.renew(parse_scheduler_config(other_config(life.dice)))
        now = float(life.now)
        due = triggers.due(life.owner.engine, now)
        result = life.owner.cycle(now)
        if due.now or due.at <= now:
            due_count += 1
        else:
            idle_count += 1
            assert says_nothing_new(result, last), (step, due, result.decisions)
            assert due.why == "report" or not result.pod_groups, (step, due, result.pod_groups)
        triggers.cycled(life.owner.engine, result, now)
        life.decided(result)
        last = result
        life.now += life.dice.choice((0, 0, 0, 0, 1, 30))
    return due_count, idle_count


@pytest.mark.parametrize("share", ["proportion", "capacity"])
def test_a_cycle_that_is_not_due_decides_nothing(share: str) -> None:
    totals = [watch(random_life(f"triggers {share} {number}", share)) for number in range(7)]
    assert sum(due for due, _ in totals) > 35
    assert sum(idle for _, idle in totals) > 35


def test_room_that_was_kept_in_vain_is_claimed_again_at_once() -> None:
    """The cycle that gives a promise up, since its victim stays, does not look for another victim."""
    watch(random_life("long triggers proportion 13 6"))


@pytest.mark.long
@pytest.mark.parametrize("share", ["proportion", "capacity"])
@pytest.mark.parametrize("block", range(20))
def test_a_cycle_that_is_not_due_decides_nothing_often(share: str, block: int) -> None:
    for number in range(30):
        watch(random_life(f"long triggers {share} {block} {number}", share))


# -- single cases -------------------------------------------------------------------------------


def settled(*documents: dict[str, object], config: str = PLAIN) -> tuple[Owner, Triggers]:
    """An owner of *documents* after cycles that had nothing more to say."""
    owner, triggers = Owner(load_scheduler_config(config), ("volcano-py",)), Triggers(1.0)
    owner.take([change_of(document) for document in documents])
    for now in (100.0, 101.0, 102.0):
        triggers.cycled(owner.engine, owner.cycle(now), now)
    return owner, triggers


RUNNING = pod("r", "g", on="n0")
WAITING = pod("w", "big", cpu="9")
CROWD = (node("n0"), group("g", phase="Running"), RUNNING, group("big"), WAITING)


def test_nothing_is_due_where_nobody_waits_whatever_changes_on_nodes() -> None:
    owner, triggers = settled(node("n0"), group("g", phase="Running"), RUNNING)
    assert triggers.due(owner.engine, 102.0).at == math.inf
    owner.take([change_of(node("n0", "2")), change_of(node("n1"))])
    assert triggers.due(owner.engine, 102.0).at == math.inf


def test_a_new_pod_is_due_at_once() -> None:
    owner, triggers = settled(node("n0"), group("g", phase="Running"), RUNNING)
    owner.take([change_of(pod("s", "g"))])
    assert triggers.due(owner.engine, 102.0).now


def test_a_group_without_pods_is_due_at_once_since_its_pods_are_made_when_it_is_let_in() -> None:
    owner, triggers = settled(node("n0"))
    owner.take([change_of(group("late", phase="Pending", minResources={"cpu": "1"}))])
    assert triggers.due(owner.engine, 102.0).now


@pytest.mark.parametrize(
    "document",
    [node("n1", "16"), queue("default", 3), group("big", priorityClassName="high")],
    ids=["node", "queue", "group"],
)
def test_what_may_help_somebody_who_waits_is_due_at_once(document: dict[str, object]) -> None:
    owner, triggers = settled(*CROWD)
    assert not triggers.due(owner.engine, 102.5).now
    owner.take([change_of(document)])
    assert triggers.due(owner.engine, 102.5).now


def test_room_that_comes_free_is_due_at_once() -> None:
    owner, triggers = settled(*CROWD)
    owner.take([deletion_of(("Pod", "ml/r"))])
    assert triggers.due(owner.engine, 102.5).now


def test_a_promise_that_waits_for_a_victim_makes_no_cycle_due() -> None:
    leaving = pod("r", "g", "4", on="n0", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    owner, triggers = settled(
        node("n0", "4"), group("g", phase="Running"), leaving, group("h"), pod("w", "h")
    )
    assert owner.engine.state.tasks.nominated
    assert not triggers.decides_anew
    due = triggers.due(owner.engine, 102.0)
    assert (due.now, due.why) == (False, "retry")
    owner.take([deletion_of(("Pod", "ml/r"))])
    assert triggers.due(owner.engine, 102.0).now


def test_a_pod_that_gets_on_is_reported_with_the_next_period() -> None:
    bound = {**RUNNING, "status": {"phase": "Pending"}}
    owner, triggers = settled(node("n0"), group("g", phase="Running"), bound)
    owner.take([change_of(RUNNING)])
    due = triggers.due(owner.engine, 102.2)
    assert (due.now, due.why, due.at) == (False, "report", 103.0)


def test_work_that_comes_of_age_is_due_when_it_does() -> None:
    notes = {"volcano.sh/cooldown-time": "10m"}
    young = pod("r", "g", on="n0", annotations=notes)
    start = 1767182400.0  # of the pod: 2025-12-31T12:00:00Z
    owner, triggers = Owner(load_scheduler_config(PLAIN), ("volcano-py",)), Triggers(1.0)
    owner.take([change_of(each) for each in (*CROWD[:2], young, *CROWD[3:])])
    for now in (start + 10, start + 11, start + 12):
        triggers.cycled(owner.engine, owner.cycle(now), now)
    assert comes_of_age(owner.engine.state, start + 12) == start + 600
    due = triggers.due(owner.engine, start + 12)
    assert (due.now, due.at, due.why) == (False, start + 72, "retry")
    triggers.cycled(owner.engine, owner.cycle(start + 550), start + 550)
    due = triggers.due(owner.engine, start + 551)
    assert (due.now, due.at, due.why) == (False, start + 600, "age")


class TheirPlugin(Plugin):
    """A policy that came with another package."""

    name = "theirs"

    def open(self, session: Session) -> None:
        """It decides nothing here."""


THEIRS = PLAIN.replace("{name: priority}", "{name: theirs}")


def test_policies_of_others_are_asked_every_period(monkeypatch: pytest.MonkeyPatch) -> None:
    where = {PLUGIN_GROUP: {"theirs": f"{__name__}:TheirPlugin"}}
    monkeypatch.setattr(registry, "_installed", lambda group: where.get(group, {}))
    owner, triggers = settled(node("n0"), group("g", phase="Running"), RUNNING, config=THEIRS)
    assert owner.engine.has_foreign_policies
    assert triggers.due(owner.engine, 102.5).at == 103.0
    noted = pod("r", "g", on="n0", annotations={"theirs.com/x": "1"})
    triggers.cycled(owner.engine, owner.cycle(103.0), 103.0)
    owner.take([change_of(noted)])
    assert triggers.due(owner.engine, 103.5).now


def test_a_clock_that_is_set_back_delays_nothing() -> None:
    owner, triggers = settled(node("n0"), group("g", phase="Running"), RUNNING)
    owner.take([change_of({**RUNNING, "status": {"phase": "Succeeded"}})])
    assert triggers.due(owner.engine, 50.0).at == 51.0
    assert triggers.due(owner.engine, 60.0).at == 51.0
    owner, triggers = settled(*CROWD)
    assert triggers.due(owner.engine, 50.0).at == 110.0


def test_another_engine_is_asked_at_once() -> None:
    owner, triggers = settled(*CROWD)
    owner.renew(owner.engine.config)
    assert triggers.due(owner.engine, 102.0).now


# -- pace ---------------------------------------------------------------------------------------


def test_cycles_rest_in_proportion_to_what_they_cost_and_never_longer_than_a_period() -> None:
    pace = Pace(gather_s=0.004, longest_s=1.0)
    assert pace.rest_s(5.0) == 0.0
    pace.worked(0.01, ended=5.0)
    assert pace.rest_s(5.0) == pytest.approx(0.01 * Pace.REST)
    pace.worked(3.0, ended=9.0)
    assert pace.rest_s(9.0) == pytest.approx(1.0)


def test_the_feed_rests_longer_while_nothing_matters_and_not_at_all_when_something_does() -> None:
    pace = Pace(gather_s=0.004, longest_s=1.0)
    assert pace.feed_rest_s == 0.0
    rests = []
    for now in range(10):
        pace.took(1, now, mattered=False, waits=True, listens=True)
        rests.append(pace.feed_rest_s)
    assert rests == sorted(rests)
    assert rests[-1] == Pace.LONGEST_REST_S
    pace.took(1, 10.0, mattered=True, waits=True, listens=True)
    assert pace.feed_rest_s == 0.0


@pytest.mark.parametrize(
    ("changes", "waits", "listens", "longest_s"),
    [
        (1, False, True, Pace.CALM_REST_S),
        (1, False, False, Pace.LONGEST_REST_S),
        (1, True, True, Pace.LONGEST_REST_S),
        (Pace.MANY + 1, False, True, Pace.LONGEST_REST_S),
    ],
    ids=["calm", "new pods would not be heard of", "somebody waits", "much comes"],
)
def test_in_a_calm_the_feed_rests_for_long(
    changes: int, waits: bool, listens: bool, longest_s: float
) -> None:
    pace = Pace(gather_s=0.004, longest_s=1.0)
    pace.took(1, 0.0, mattered=True, waits=False, listens=listens)
    for tenth in range(1, 100):
        pace.took(changes, tenth / 10, mattered=False, waits=waits, listens=listens)
        if tenth / 10 < Pace.CALM_AFTER_S:
            assert (pace.is_calm, pace.feed_rest_s <= Pace.LONGEST_REST_S) == (False, True)
    assert pace.is_calm == (not waits)
    assert pace.feed_rest_s == longest_s
