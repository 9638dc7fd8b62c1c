"""The scenario runner: what it runs, what it lets pass, and that every expectation can fail."""

from __future__ import annotations

import pytest

from volcano_py.simulator.expectations import CHECKS
from volcano_py.simulator.manifests import read_text
from volcano_py.simulator.scenario import ScenarioError, Verdict, run_scenario
from volcano_py.simulator.scenario_format import EXPECT

TWO_FIT = """\
name: two-fit
why: Room for two of three.
objects:
- apiVersion: v1
  kind: Node
  metadata: {name: n1}
  status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
- apiVersion: scheduling.volcano.sh/v1beta1
  kind: PodGroup
  metadata: {name: g1, namespace: ml}
  spec: {minMember: 2}
- copies: 1
  firstCopy: 2
  apiVersion: scheduling.volcano.sh/v1beta1
  kind: PodGroup
  metadata: {name: "g{i}", namespace: ml}
  spec: {minMember: 1}
- copies: 2
  apiVersion: v1
  kind: Pod
  metadata: {name: "g1-{i}", namespace: ml, annotations: {scheduling.k8s.io/group-name: g1}}
  spec: {containers: [{name: main, resources: {requests: {cpu: "2"}}}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: g2-0, namespace: ml, annotations: {scheduling.k8s.io/group-name: g2}}
  spec: {containers: [{name: main, resources: {requests: {cpu: "2"}}}]}
"""
RIGHT = {
    "binds": "{ml/g1-0: n1, ml/g1-1: [n1, n2]}",
    "bindCount": "{min: 1, max: 2}",
    "pipelined": "{}",
    "evicted": "[]",
    "evictedOneOf": "[[ml/g1-0], []]",
    "evictCount": "0",
    "bound": "{ml/g1: 2, ml/g2: {max: 0}}",
    "allocated": "{default: {cpu: 4, pods: 2}}",
    "podGroups": "{ml/g1: Running, ml/g2: '!Running'}",
    "pending": "{ml/g2-0: insufficient CPU}",
    "slices": "{ml/g1-0: []}",
    "records": "{ml/g1-0: {}}",
    "doubts": "{Pod ml/g1-0: ''}",
}
WRONG = {
    "binds": (
        "{ml/g1-0: n2, ml/g2-0: n1}",
        ["expected ml/g1-0 on n2, got n1", "ml/g1-1 on n1 was not", "expected ml/g2-0 on n1, got no bind"],
    ),
    "bindCount": ("3", ["expected 3, got 2: ml/g1-0, ml/g1-1"]),
    "pipelined": ("{ml/g2: [n1]}", ["expected ml/g2 on n1, got none"]),
    "evicted": ("[ml/g1-0]", ["expected ml/g1-0, got none"]),
    "evictedOneOf": ("[[ml/g1-0], [ml/g1-1]]", ["expected ml/g1-0 or ml/g1-1, got none"]),
    "evictCount": ("{min: 1}", ["expected 1 to any, got 0: none"]),
    "bound": (
        "{ml/g1: 1, ml/g3: 1}",
        ["expected 1 pods of ml/g1 on nodes, got 2", "of ml/g3 on nodes, got 0"],
    ),
    "allocated": ("{default: {cpu: 5}, q: {}}", ["hold 5 cpu, got 4", "there is no queue q"]),
    "podGroups": (
        "{ml/g1: '!Running', ml/g3: Pending}",
        ["expected ml/g1 to be !Running, got Running", "(no such group)"],
    ),
    "pending": (
        "{ml/g1-0: '', ml/g2-0: quota}",
        ["expected ml/g1-0 to wait, but it does not", "say 'quota', got: 0/1 nodes"],
    ),
    "slices": ("{ml/g1-0: [{card: 0}]}", ["expected ml/g1-0 to hold"]),
    "records": ("{ml/g1-0: {key: text}}", ["expected key of ml/g1-0 to be 'text', got None"]),
    "doubts": ("{Pod ml/g1-0: unreadable}", ["expected 'unreadable' of Pod ml/g1-0, got 'nothing'"]),
}


def run(text: str) -> Verdict:
    [manifest], faults = read_text(text, "s.yaml")
    assert faults == []
    return run_scenario(manifest)


@pytest.mark.parametrize(("key", "wanted"), RIGHT.items())
def test_what_holds_passes(key: str, wanted: str) -> None:
    verdict = run(f"{TWO_FIT}expect: {{{key}: {wanted}}}\n")
    assert (verdict.wrong, verdict.name, verdict.where) == ((), "two-fit", "s.yaml:1")
    assert verdict.why == "Room for two of three."


@pytest.mark.parametrize(("key", "wanted", "says"), [(key, *case) for key, case in WRONG.items()])
def test_every_expectation_can_be_missed(key: str, wanted: str, says: list[str]) -> None:
    wrong = run(f"{TWO_FIT}expect: {{{key}: {wanted}}}\n").wrong
    assert all(text.startswith(f"{key}: ") for text in wrong)
    for text in says:
        assert any(text in line for line in wrong), (text, wrong)


def test_every_key_of_the_format_is_tried_here() -> None:
    assert set(CHECKS) == set(EXPECT) == set(RIGHT) == set(WRONG)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("why: x\n", "the scenario: needs a name"),
        ("name: a\nexpects: {}\n", "unknown key 'expects' (did you mean \"expect\"?)"),
        (
            "name: a\nexpect: {bindcount: 1}\n",
            "expect: unknown key 'bindcount' (did you mean \"bindCount\"?)",
        ),
        ("name: a\nexpect: {bindCount: two}\n", "expect.bindCount: must be a number, or a range"),
        ("name: a\nexpect: {bindCount: {least: 1}}\n", "expect.bindCount: unknown key 'least'"),
        ("name: a\nexpect: {binds: [ml/a]}\n", "expect.binds: must be a mapping"),
        ("name: a\nexpect: {evicted: }\n", "expect.evicted: must be a list ([] for none), not null"),
        (
            "name: a\nexpect: {allocated: {q: {cpu: many}}}\n",
            'expect.allocated.q.cpu: "many" is not a quantity',
        ),
        (
            "name: a\nexpect: {slices: {ml/a: [{card: 1.5}]}}\n",
            "expect.slices[ml/a][0].card: must be the card",
        ),
        ("name: a\ncycles: -1\n", "cycles: must be a whole number of at least 0"),
        ("name: a\nsettle: 'yes'\n", "settle: must be true or false"),
        ("name: a\nnow: today\n", "now: must be a time"),
        ("name: a\nobjects: {}\n", "objects: must be a list"),
        ("name: a\nobjects: [{copies: many}]\n", "objects[0].copies: must be a whole number"),
        ("name: a\nobjects: [{firstCopy: 2}]\n", "objects[0].firstCopy: means nothing without copies"),
        ("name: a\nsteps: [{wait: 5}, {wait: soon}]\n", "steps[1].wait: must be a duration"),
        ("name: a\nsteps: [{delete: [{kind: Pod}]}]\n", "steps[0].delete[0]: needs a name"),
        ("name: a\nsteps: []\ncycles: 2\n", "cycles: stands in each of the steps"),
        ("name: a\nconfig: {actions: alocate}\n", 'unknown action "alocate"'),
    ],
)
def test_a_slip_is_an_error_and_no_miss(text: str, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        run(text)
    assert str(caught.value).startswith("s.yaml:1: scenario ")
    assert says in str(caught.value)


def test_keys_for_others_are_left_alone() -> None:
    assert run("name: a\nx-source: nowhere\nexpect: {bindCount: 0}\n").wrong == ()


def test_a_bad_object_is_part_of_the_case() -> None:
    bad = "- {apiVersion: v1, kind: Pod, metadata: {name: b, namespace: ml}, spec: {containers: 5}}\n"
    assert run(f"{TWO_FIT}{bad}expect: {{bindCount: 2, pending: {{ml/b: containers}}}}\n").wrong == ()


RECLAIM = """\
name: steps
config:
  actions: allocate, reclaim
  tiers:
  - plugins: [{name: gang}, {name: conformance}, {name: predicates}, {name: proportion}]
objects:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "4", pods: "10"}}}
- {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q}, spec: {weight: 1}}
- apiVersion: scheduling.volcano.sh/v1beta1
  kind: PodGroup
  metadata: {name: r, namespace: ml}
  spec: {minMember: 1}
  status: {phase: Running}
- copies: 4
  apiVersion: v1
  kind: Pod
  metadata: {name: "r-{i}", namespace: ml, annotations: {scheduling.k8s.io/group-name: r}}
  spec: {nodeName: n1, containers: [{name: main, resources: {requests: {cpu: "1"}}}]}
  status: {phase: Running}
- apiVersion: scheduling.volcano.sh/v1beta1
  kind: PodGroup
  metadata: {name: a, namespace: ml}
  spec: {minMember: 1, queue: q}
  status: {phase: Inqueue}
- apiVersion: v1
  kind: Pod
  metadata: {name: a-0, namespace: ml, annotations: {scheduling.k8s.io/group-name: a}}
  spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}
steps:
"""
EVICTS = (
    "{evictCount: 1, bindCount: 0, pipelined: {ml/a: [n1]}, bound: {ml/r: 3}, allocated: {default: {cpu: 3}}}"
)
STARTS = "{binds: {ml/a-0: n1}, evictCount: 0}"


@pytest.mark.parametrize(
    ("first", "second", "wrong"),
    [
        ("settle: true", "cycles: 1", ()),
        ("cycles: 1", "settle: true", ()),
        ("cycles: 1", "wait: 60s", ("step 2: binds: expected ml/a-0 on n1, got no bind",)),
    ],
)
def test_between_steps_the_cluster_settles_if_either_says_so(
    first: str, second: str, wrong: tuple[str, ...]
) -> None:
    steps = f"- {{{first}, expect: {EVICTS}}}\n- {{{second}, expect: {STARTS}}}\n"
    assert run(RECLAIM + steps).wrong == wrong


def test_within_a_step_counts_add_up() -> None:
    assert (
        run(f"{RECLAIM}- {{cycles: 3, settle: true, expect: {{evictCount: 1, bindCount: 1}}}}\n").wrong == ()
    )


def test_a_step_without_cycles_decides_nothing() -> None:
    assert run(f"{RECLAIM}- {{cycles: 0, expect: {{evictCount: 0}}}}\n- {{expect: {EVICTS}}}\n").wrong == ()


JOB = """\
name: job
steps:
- cycles: 0
  apply:
  - {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {pods: '5'}}}
  - apiVersion: batch.volcano.sh/v1alpha1
    kind: Job
    metadata: {name: j, namespace: ml, uid: u}
    spec:
      tasks:
      - {name: t, replicas: 2, template: {spec: {containers: [{name: main}]}}}
- delete: [{kind: Job, name: j, namespace: other}]
  expect: {bindCount: 2, bound: {ml/j-u: 2}}
- delete: [{kind: Job, name: j, namespace: ml}]
  expect: {bound: {ml/j-u: 0}, allocated: {default: {pods: 0}}}
"""


def test_deleting_a_job_deletes_its_pods() -> None:
    assert run(JOB).wrong == ()
