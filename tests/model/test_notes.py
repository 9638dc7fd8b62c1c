"""Notes that can't be read are told on their objects, and no longer once they are mended."""

from __future__ import annotations

import pytest

from tests.clusters import engine, group, node, pod
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.model.tasks import Status

PREEMPTABLE, COOLDOWN = "volcano.sh/preemptable", "volcano.sh/cooldown-time"
HOLD, BOOST = "volcano-py.io/hold", "volcano-py.io/boost"
PLAIN = "actions: allocate\ntiers: []\n"


def doubts(made: Engine, name: str) -> list[str]:
    return [f"{one.field} {one.message}" for one in made.state.doubts.get(name, ())]


@pytest.mark.parametrize(
    ("key", "bad", "good"), [(PREEMPTABLE, "perhaps", "False"), (COOLDOWN, "soon", "10m")]
)
def test_a_note_on_a_pod(key: str, bad: str, good: str) -> None:
    made = engine(node("n0"), group("g"), pod("p", "g", annotations={key: bad}), config=PLAIN)
    (told,) = doubts(made, "Pod ml/p")
    assert told.startswith(f"metadata.annotations[{key}] is n")
    made.apply(pod("p", "g", annotations={key: good}))
    assert doubts(made, "Pod ml/p") == []


def test_a_note_that_is_a_label_is_told_as_one() -> None:
    made = engine(node("n0"), group("g"), pod("p", "g", labels={PREEMPTABLE: "perhaps"}), config=PLAIN)
    (told,) = doubts(made, "Pod ml/p")
    assert told.startswith(f"metadata.labels[{PREEMPTABLE}]")


@pytest.mark.parametrize(
    ("key", "bad", "good"),
    [(PREEMPTABLE, "perhaps", "true"), (COOLDOWN, "soon", "1h"), (HOLD, "now", "true"), (BOOST, "much", "2")],
)
def test_a_note_on_a_group(key: str, bad: str, good: str) -> None:
    made = engine(node("n0"), group("g", annotations={key: bad}), config=PLAIN)
    (told,) = doubts(made, "PodGroup ml/g")
    assert key in told
    made.apply(group("g", annotations={key: good}))
    assert doubts(made, "PodGroup ml/g") == []


def test_who_can_not_be_read_starts_all_the_same_and_others_pods_are_left_alone() -> None:
    notes = {PREEMPTABLE: "perhaps"}
    others = pod("other", "", on="n0", annotations=notes, schedulerName="default-scheduler")
    made = engine(node("n0"), group("g"), pod("p", "g", annotations=notes), others, config=PLAIN)
    made.cycle(1.0)
    assert made.state.tasks.status[made.state.tasks.index["ml/p"]] == Status.BINDING
    assert doubts(made, "Pod ml/other") == []
