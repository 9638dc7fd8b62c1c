"""Evictions on random clusters: nobody goes for nothing, gangs stay whole, what is held stays held."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.clusters import Document, engine, group, node, pod, queue
from volcano_py.scheduler.engine import CycleResult, Engine
from volcano_py.scheduler.model.tasks import Status

NOW = 1767225600.0
CONFIG = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf, enablePreemptable: false}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
PRIORITIES = {"low": 10, "mid": 50, "high": 100}

running = st.lists(
    st.fixed_dictionaries(
        {
            "queue": st.sampled_from(["a", "b", "c"]),
            "priority": st.sampled_from(sorted(PRIORITIES)),
            "least": st.integers(1, 3),
            "on": st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=5),
            "firm": st.integers(0, 4).map(lambda number: number == 0),
        }
    ),
    max_size=6,
)
claims = st.lists(
    st.fixed_dictionaries(
        {
            "queue": st.sampled_from(["a", "b", "c"]),
            "priority": st.sampled_from(sorted(PRIORITIES)),
            "pods": st.integers(1, 4),
            "cpu": st.lists(st.integers(1, 4), min_size=1, max_size=2),
        }
    ),
    min_size=1,
    max_size=3,
)
minimum = st.fixed_dictionaries({name: st.integers(0, 5) for name in "abc"})


Jobs = list[dict[str, Any]]


def documents(jobs: Jobs, asks: Jobs, least: dict[str, int]) -> list[Document]:
    """A cluster of four nodes of 8 CPU; running pods that would not fit are left out."""
    made = [node(f"n{i}", cpu="8") for i in range(4)]
    made += [queue(name, min={"cpu": str(amount)}) for name, amount in least.items()]
    made += [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": n}, "value": v}
        for n, v in PRIORITIES.items()
    ]
    used: Counter[int] = Counter()
    for number, job in enumerate(jobs):
        name = f"r{number}"
        marks = {"volcano.sh/preemptable": "false"} if job["firm"] else {}
        pods = []
        for index, (where, cpu) in enumerate(job["on"]):
            if used[where] + cpu <= 8:
                used[where] += cpu
                pods.append(pod(f"{name}-{index}", name, str(cpu), on=f"n{where}", annotations=marks))
        least_members = min(job["least"], len(pods))
        made.append(group(name, least_members, job["queue"], "Running", priorityClassName=job["priority"]))
        made += pods
    for number, ask in enumerate(asks):
        name = f"w{number}"
        needed = ask["pods"] - ask.get("spare", 0)
        made.append(group(name, needed, ask["queue"], priorityClassName=ask["priority"]))
        for index in range(ask["pods"]):
            cpu = ask["cpu"][index % len(ask["cpu"])]
            made.append(pod(f"{name}-{index}", name, str(cpu)))
    return made


def evictions(result: CycleResult) -> dict[str, list[str]]:
    """Claimant -> its victims."""
    found: dict[str, list[str]] = defaultdict(list)
    for decision in result.decisions:
        if decision.kind == "evict":
            found[decision.for_whom].append(decision.pod)
    return found


def cycle(made: list[Document]) -> tuple[Engine, CycleResult]:
    known = engine(*made, config=CONFIG)
    return known, known.cycle(NOW)


def held(known: Engine, name: str) -> int:
    """Milli-CPU that queue *name* will hold once terminating pods are gone."""
    row = known.state.queues.index[name]
    queues = known.state.queues
    return int(queues.allocated[row, 0] - queues.releasing[row, 0])


@settings(max_examples=120, deadline=None)
@given(running, claims, minimum)
@example(
    [{"queue": "a", "priority": "low", "least": 2, "on": [(0, 4), (0, 4), (1, 4)], "firm": False}],
    [{"queue": "a", "priority": "high", "pods": 4, "cpu": [4]}],
    {"a": 0, "b": 0, "c": 0},
)
def test_every_claimant_starts_once_its_victims_are_gone(
    jobs: Jobs, asks: Jobs, least: dict[str, int]
) -> None:
    known, result = cycle(documents(jobs, asks, least))
    known.settle(NOW + 1)
    known.cycle(NOW + 1)
    for claimant in evictions(result):
        job = known.state.jobs.named(claimant)
        assert job is not None
        assert job.count(Status.BINDING) + job.count(Status.RUNNING) >= job.min_member, claimant


@settings(max_examples=120, deadline=None)
@given(running, claims, minimum)
def test_gangs_go_whole_or_stay_whole(jobs: Jobs, asks: Jobs, least: dict[str, int]) -> None:
    known, result = cycle(documents(jobs, asks, least))
    victims = {name.rsplit("-", 1)[0] for names in evictions(result).values() for name in names}
    for key in victims:
        job = known.state.jobs.named(key)
        assert job is not None
        assert job.count(Status.RUNNING) == 0 or job.count(Status.RUNNING) >= job.min_member, key


@settings(max_examples=120, deadline=None)
@given(running, claims, minimum)
def test_what_is_protected_stays(jobs: Jobs, asks: Jobs, least: dict[str, int]) -> None:
    """Reclaim takes no queue below its min, and nobody who may not be interrupted goes."""
    made = documents(jobs, asks, least)
    before = engine(*made, config=CONFIG)
    had = {name: held(before, name) for name in least}
    known, result = cycle(made)
    state = known.state
    lenders = set()
    for decision in result.decisions:
        task = state.tasks.index[decision.pod]
        name = state.jobs[int(state.tasks.job[task])].queue_name
        amount = int(state.accounts.charge_of_task(task)[0])
        had[name] += -amount if decision.kind == "evict" else amount
        if decision.kind == "evict":
            assert state.tasks.interruptible[task]
            lenders |= {name} if decision.action == "reclaim" else set()
    for name in lenders:
        assert had[name] >= least[name] * 1000, name


@settings(max_examples=100, deadline=None)
@given(running, claims, minimum)
def test_input_order_changes_nothing(jobs: Jobs, asks: Jobs, least: dict[str, int]) -> None:
    made = documents(jobs, asks, least)
    one = cycle(made)[1].decisions
    other = cycle(list(reversed(made)))[1].decisions
    assert one == other


@settings(max_examples=150, deadline=None)
@given(running, claims.map(lambda asks: asks[:1]), minimum)
@example(
    [
        {"queue": "c", "priority": "low", "least": 3, "on": [(1, 3), (0, 3)], "firm": False},
        {
            "queue": "c",
            "priority": "mid",
            "least": 1,
            "on": [(0, 1), (0, 2), (0, 3), (0, 2), (3, 4)],
            "firm": False,
        },
        {"queue": "a", "priority": "mid", "least": 1, "on": [(3, 2), (3, 2)], "firm": False},
        {"queue": "c", "priority": "low", "least": 3, "on": [(3, 2), (2, 4), (0, 2)], "firm": True},
    ],
    [{"queue": "c", "priority": "high", "pods": 4, "cpu": [4]}],
    {"a": 2, "b": 3, "c": 3},
)
def test_nobody_could_have_stayed(jobs: Jobs, asks: Jobs, least: dict[str, int]) -> None:
    """Of equal claimant pods: with any one unit back, the nodes hold fewer of them than are needed."""
    ask = {**asks[0], "cpu": asks[0]["cpu"][:1]}
    made = documents(jobs, [ask], least)
    known, result = cycle(made)
    for victims in evictions(result).values():
        for unit in units(known, victims):
            gone = set(victims) - unit
            assert places(made, gone, ask, least) < ask["pods"], (victims, unit)
        assert places(made, set(victims), ask, least) >= ask["pods"], victims


mixed = st.fixed_dictionaries(
    {
        "queue": st.sampled_from(["a", "b", "c"]),
        "priority": st.sampled_from(["mid", "high"]),
        "pods": st.integers(3, 5),
        "cpu": st.lists(st.integers(1, 4), min_size=2, max_size=3),
        "spare": st.integers(0, 2),
    }
)


@settings(max_examples=120, deadline=None)
@given(running, mixed, minimum)
@example(
    [
        {"queue": "a", "priority": "mid", "least": 1, "on": [(0, 4)], "firm": False},
        {"queue": "a", "priority": "mid", "least": 1, "on": [(3, 4), (1, 4), (2, 4), (1, 3)], "firm": False},
        {"queue": "c", "priority": "high", "least": 2, "on": [(3, 2), (2, 3)], "firm": False},
    ],
    {"queue": "c", "priority": "high", "pods": 5, "cpu": [2, 3], "spare": 1},
    {"a": 0, "b": 0, "c": 5},
)
def test_nobody_could_have_stayed_for_a_gang_of_several_kinds(
    jobs: Jobs, ask: dict[str, Any], least: dict[str, int]
) -> None:
    """With any one unit back, and the others leaving, allocate finds no room for enough of the members."""
    made = documents(jobs, [ask], least)
    known, result = cycle(made)
    for victims in evictions(result).values():
        for unit in units(known, victims):
            left = leaving(made, set(victims) - unit)
            alone = engine(*left, config=CONFIG.replace("preempt, reclaim, ", ""))
            assert not alone.cycle(NOW).decisions, (victims, unit)


def leaving(made: list[Document], gone: set[str]) -> list[Document]:
    """*made* with the pods in *gone* terminating."""
    return [
        {**each, "metadata": {**meta, "deletionTimestamp": "2026-01-01T00:00:00Z"}}
        if each["kind"] == "Pod" and f"ml/{meta['name']}" in gone
        else each
        for each in made
        for meta in (each["metadata"],)
    ]


def units(known: Engine, victims: list[str]) -> list[set[str]]:
    """*victims* as they come back: one by one, but all of a gang that went whole."""
    by_job: dict[str, set[str]] = defaultdict(set)
    for name in victims:
        by_job[name.rsplit("-", 1)[0]].add(name)
    found: list[set[str]] = []
    for key, names in by_job.items():
        job = known.state.jobs.named(key)
        assert job is not None
        whole = job.count(Status.RUNNING) == 0
        found += [names] if whole else [{name} for name in names]
    return found


def places(made: list[Document], gone: set[str], ask: dict[str, Any], least: dict[str, int]) -> int:
    """How many pods of *ask* fit without the pods in *gone*, counted one by one.

    On the four nodes, and under what the mins of other queues leave of them.
    """
    cpu: int = ask["cpu"][0]
    name: str = ask["queue"]
    of_queue = {d["metadata"]["name"]: d["spec"]["queue"] for d in made if d["kind"] == "PodGroup"}
    free = {f"n{i}": 8 for i in range(4)}
    left = 32 - sum(amount for other, amount in least.items() if other != name)
    for document in made:
        if document["kind"] == "Pod" and "nodeName" in document["spec"]:
            meta, spec = document["metadata"], document["spec"]
            if f"{meta['namespace']}/{meta['name']}" not in gone:
                amount = int(spec["containers"][0]["resources"]["requests"]["cpu"])
                free[spec["nodeName"]] -= amount
                if of_queue[meta["annotations"]["scheduling.k8s.io/group-name"]] == name:
                    left -= amount
    return min(sum(amount // cpu for amount in free.values()), left // cpu)
