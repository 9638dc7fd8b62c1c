"""Who is next, as keys change while others are served."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.clusters import engine, group, node, pod, queue
from volcano_py.scheduler.framework.agenda import Agenda, Line

NOW = 1767225600.0


def line(keys: dict[str, int]) -> Line[str]:
    """Items that sort by *keys*, which may change, then by name."""
    return Line(lambda item: (keys[item], item))


def drained(some: Line[str]) -> list[str]:
    found = []
    while (item := some.pop()) is not None:
        found.append(item)
    return found


def test_items_come_by_key() -> None:
    keys = {"a": 2, "b": 1, "c": 3}
    some = line(keys)
    some.extend("abc")
    assert len(some) == 3
    assert drained(some) == ["b", "a", "c"]
    assert some.pop() is None


def test_an_item_whose_key_has_grown_goes_back_to_its_place() -> None:
    keys = {"a": 1, "b": 2, "c": 3}
    some = line(keys)
    some.extend("abc")
    keys["a"] = 9
    assert drained(some) == ["b", "c", "a"]


def test_who_was_alone_is_compared_once_others_come() -> None:
    keys = {"a": 5, "b": 1}
    some = line(keys)
    some.push("a")
    some.push("b")
    assert drained(some) == ["b", "a"]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 5)), max_size=30))
def test_each_pop_gives_the_least_when_keys_only_grow(steps: list[tuple[str, int]]) -> None:
    """Growing keys, pushes and pops in any order, against a plain list."""
    keys = dict.fromkeys("abcdef", 0)
    some = line(keys)
    plain: list[str] = []
    for item, growth in steps:
        if item in plain:
            keys[item] += growth
            assert some.pop() == min(plain, key=lambda each: (keys[each], each))
            plain.remove(min(plain, key=lambda each: (keys[each], each)))
        else:
            some.push(item)
            plain.append(item)
    assert drained(some) == sorted(plain, key=lambda each: (keys[each], each))


def test_queues_take_turns_and_leave_when_empty() -> None:
    known = engine(
        node("n"),
        *(queue(name) for name in "ab"),
        *(group(name, queue=name[0]) for name in ("a1", "a2", "b1")),
        *(pod(f"{name}-0", name) for name in ("a1", "a2", "b1")),
    )
    session = known.open(NOW)
    jobs = [job for job in known.state.jobs.live() if job.group is not None]
    agenda = Agenda(session, jobs)
    seen = []
    while (turn := agenda.next_queue()) is not None:
        job = agenda.next_job(turn)
        assert job is not None
        seen.append((turn.name, job.name))
        agenda.push_queue(turn)
    assert seen == [("a", "a1"), ("a", "a2"), ("b", "b1")]
    assert list(agenda.left()) == []


def test_the_rest_of_a_queue_leaves_together() -> None:
    known = engine(node("n"), queue("a"), *(group(f"g{number}", queue="a") for number in range(3)))
    agenda = Agenda(known.open(NOW), known.state.jobs.live())
    turn = agenda.next_queue()
    assert turn is not None
    assert [job.name for job in agenda.rest(turn)] == ["g0", "g1", "g2"]
    agenda.push_queue(turn)
    assert agenda.next_queue() is None
