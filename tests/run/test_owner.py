"""An engine made anew goes on as the old one would have; a fault stops nobody but whom it is about."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clusters import group, node, pod
from tests.run.lives import change_of, deletion_of, known_of, of_kind, pods_of, random_life, tell
from volcano_py.crds.schedulerconfig import (
    DEFAULT_CONFIG,
    SchedulerConfig,
    load_scheduler_config,
    parse_scheduler_config,
)
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.kube.objects import Pod
from volcano_py.scheduler.model.pods import PodIntake
from volcano_py.scheduler.run.memory import memory_of
from volcano_py.scheduler.run.owner import SIFTINGS, CycleFault, Owner, in_order

PLAIN = "actions: allocate, preempt, backfill\ntiers:\n- plugins: [{name: gang}, {name: priority}]\n"
STEPS = 12


def owner(config: str = PLAIN) -> Owner:
    return Owner(load_scheduler_config(config), ("volcano-py",))


def twin_of(first: Owner) -> Owner:
    """An owner that is told what a journal's segment begins with."""
    twin = Owner(first.engine.config, first.scheduler_names)
    twin.recall(list(in_order(first.known)), memory_of(first.engine.state))
    return twin


def compare(seed: str, share: str) -> tuple[int, int]:
    """Live for a while, each cycle beside an owner made from known objects and memory.

    Returns:
        Cycles compared, and decisions made.
    """
    life = random_life(seed, share)
    compared = decided = 0
    for step in range(STEPS):
        life.live(life.dice.randint(1, 6))
        tell(life.owner, life)
        if life.dice.random() < 0.2:
            life.owner.renew(parse_scheduler_config(life.configuration))
        twin = twin_of(life.owner)
        result = life.owner.cycle(float(life.now))
        assert known_of(twin.cycle(float(life.now))) == known_of(result), (seed, step)
        life.decided(result)
        life.now += life.dice.choice((1, 7, 60))
        compared, decided = compared + 1, decided + len(result.decisions)
    return compared, decided


@pytest.mark.parametrize("share", ["proportion", "capacity"])
def test_objects_and_memory_make_an_engine_that_decides_the_same(share: str) -> None:
    totals = [compare(f"{share} {number}", share) for number in range(8)]
    assert sum(decided for _, decided in totals) > 12


@pytest.mark.long
@pytest.mark.parametrize("share", ["proportion", "capacity"])
@pytest.mark.parametrize("block", range(20))
def test_objects_and_memory_make_an_engine_that_decides_the_same_often(share: str, block: int) -> None:
    for number in range(25):
        compare(f"long {share} {block} {number}", share)


def test_a_broken_cycle_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    made = owner()
    made.take([change_of(each) for each in (node("n0"), group("g"), pod("p", "g", cpu="3"))])

    def broken(session: Session) -> None:
        raise RuntimeError("a policy of somebody else")

    backfill = made.engine.actions[-1]
    monkeypatch.setattr(backfill, "run", broken)
    with pytest.raises(CycleFault, match="backfill: RuntimeError: a policy of somebody else") as caught:
        made.cycle(1.0)
    assert caught.value.where == "backfill"
    assert "broken" in caught.value.culprit
    again = made.cycle(2.0)
    assert [(each.kind, each.pod) for each in again.decisions] == [("bind", "ml/p")]


HIGH: dict[str, Any] = {"priority": 9, "priorityClassName": "high"}


def crowded() -> Owner:
    """A full node, and a gang of higher priority that waits."""
    made = owner()
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    documents = [
        {**high, "value": 9},
        node("n0", "2"),
        group("low", phase="Running"),
        *(pod(f"low-{i}", "low", on="n0", priority=1) for i in range(2)),
        group("first", priorityClassName="high"),
        pod("first-0", "first", **HIGH),
    ]
    made.take([change_of(each) for each in documents])
    return made


def test_evictions_of_a_broken_cycle_do_not_count_and_earlier_ones_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = crowded()
    (evicted,) = pods_of(of_kind(made.cycle(1.0), "evict"))
    made.take([change_of(node("n1", "1")), deletion_of(("PodGroup", evicted))])  # a group of the pod's name
    made.take([change_of(each) for each in (group("more", phase="Running"), pod("more-0", "more", on="n1"))])
    made.take(
        [change_of(group("second", priorityClassName="high")), change_of(pod("second-0", "second", **HIGH))]
    )
    monkeypatch.setattr(made.engine.actions[-1], "run", lambda session: 1 / 0)
    with pytest.raises(CycleFault):
        made.cycle(2.0)
    leaving = {placed.key for placed in memory_of(made.engine.state).placed if placed.leaves}
    assert leaving == {evicted}
    assert pods_of(of_kind(made.cycle(3.0), "evict")) - {evicted}


def test_an_object_that_brings_out_a_fault_is_left_out_and_the_others_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = owner()
    sound = PodIntake.upsert

    def touchy(self: PodIntake, item: Pod) -> None:
        if item.name == "bad":
            raise IndexError("who would have thought")
        sound(self, item)

    monkeypatch.setattr(PodIntake, "upsert", touchy)
    names = ("good-0", "bad", "good-1")
    made.take([change_of(each) for each in (node("n0"), group("g"), *(pod(name, "g") for name in names))])
    result = made.cycle(1.0)
    assert {each.pod for each in result.decisions} == {"ml/good-0", "ml/good-1"}
    (problem,) = made.engine.state.problems["Pod ml/bad"]
    assert "IndexError: who would have thought" in problem.message
    assert made.known["Pod"]["ml/bad"].item is None


def engines_made(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows by one with each engine that an owner makes from now on."""
    made: list[None] = []
    sound = Owner._made

    def counted(self: Owner, config: SchedulerConfig) -> Engine:
        made.append(None)
        return sound(self, config)

    monkeypatch.setattr(Owner, "_made", counted)
    return made


def touchy_about(monkeypatch: pytest.MonkeyPatch, bad: str, *, spoils: bool) -> None:
    """The intake breaks on pods whose names begin with *bad*; *spoils*: and on any pod after one."""
    sound = PodIntake.upsert
    spoilt = set[int]()

    def touchy(self: PodIntake, item: Pod) -> None:
        if item.name.startswith(bad):
            spoilt.add(id(self))
            alive.append(self)  # so that nobody else gets its id
            raise IndexError("who would have thought")
        if spoils and id(self) in spoilt:
            raise KeyError("half changed")
        sound(self, item)

    alive: list[PodIntake] = []
    monkeypatch.setattr(PodIntake, "upsert", touchy)


@pytest.mark.parametrize(("bad", "spoils"), [(100, False), (3, False), (3, True)])
def test_many_objects_that_bring_out_faults_cost_few_engines(
    monkeypatch: pytest.MonkeyPatch, bad: int, *, spoils: bool
) -> None:
    made = owner()
    made.take([change_of(each) for each in (node("n0", "200", amounts={"pods": "250"}), group("g"))])
    engines = engines_made(monkeypatch)
    touchy_about(monkeypatch, "bad", spoils=spoils)
    names = [f"{kind}-{number}" for number in range(bad) for kind in ("bad", "good")]
    made.take([change_of(pod(name, "g")) for name in names])
    assert len(engines) <= SIFTINGS + 1
    assert set(made.engine.state.problems) == {f"Pod ml/bad-{number}" for number in range(bad)}
    result = made.cycle(1.0)
    assert {each.pod for each in result.decisions} == {f"ml/good-{number}" for number in range(bad)}


def test_a_pod_that_only_a_wrong_card_configuration_made_unreadable_waits_again() -> None:
    """Nothing on the pod itself changes when the configuration is put right."""
    made = owner(DEFAULT_CONFIG)
    asks = {"cpu": "1", "nvidia.com/gpu": "1", "example.com/other": "700"}
    made.take([change_of(each) for each in (node("n0"), group("g"), pod("p", "g", requests=asks))])
    place = {"name": "volcano-vgpu-device-config", "namespace": "kube-system"}
    told = []
    for text in ("nvidia: {resourceCoreName: example.com/other}", "nvidia: {}"):
        configured = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": place}
        made.take([change_of({**configured, "data": {"device-config.yaml": text}})])
        told.append(("ml/p" in made.engine.state.tasks.index, set(made.engine.state.problems)))
    assert told == [(False, {"Pod ml/p"}), (True, set())]


def test_what_was_decided_holds_while_the_engine_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The echo of a bound pod comes together with an object that breaks the intake."""
    made = owner()
    made.take([change_of(each) for each in (node("n0"), group("g"), pod("p", "g"))])
    assert len(made.cycle(1.0).decisions) == 1
    touchy_about(monkeypatch, "bad", spoils=False)
    made.take([change_of(each) for each in (pod("p", "g", labels={"new": "label"}), pod("bad", "g"))])
    assert made.cycle(2.0).decisions == []


def test_groups_that_name_no_queue_go_into_the_one_that_was_named() -> None:
    made = Owner(load_scheduler_config(PLAIN), ("volcano-py",), "batch")
    documents = (node("n0"), group("g", queue=""), pod("p", "g"))
    made.take([change_of(document) for document in documents])
    made.renew(made.engine.config)
    result = made.cycle(1.0)
    assert [decision.pod for decision in result.decisions] == ["ml/p"]
    assert [queue.name for queue in made.engine.state.queues.live()] == ["batch"]
