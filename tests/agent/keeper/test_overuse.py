"""What is done about overuse and for those who go first: cases, and properties over random stories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano_py.shim.agent.overuse import (
    FROZEN,
    KILLED,
    OVERUSE,
    OVERUSE_ENDED,
    Act,
    Held,
    Kind,
    Memory,
    Seen,
    Standing,
    decide,
)
from volcano_py.shim.agent.policy import MIB, Answer, Freezing, Overuse, Policy, Sharing, Yielding
from volcano_py.shim.agent.tenants import Hold, Tenant

GPU, OTHER_GPU = "GPU-0", "GPU-1"
LIMIT = 1000 * MIB
EXACT = Overuse(tolerance_percent=0, tolerance_mib=0, over_s=10, again_s=100)


def tenant(name: str = "a", priority: int = 1, *, cards: Sequence[str] = (GPU,), group: str = "") -> Tenant:
    holds = {card: Hold(LIMIT, 50) for card in cards}
    return Tenant(f"uid-{name}", f"id-{name}", "ns", name, "main", holds, group=group, priority=priority)


def seen(
    whose: Tenant, memory_mib: int | None = 0, busy: int | None = 0, standing: Standing = Standing.RUNNING
) -> Seen:
    memory = None if memory_mib is None else memory_mib * MIB
    return Seen(whose, standing, {card: Held(memory, busy) for card in whose.holds})


class Story:
    """Rounds of ``decide``, each beginning with what the one before remembered; freezes come true at once."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.memories: Mapping[tuple[str, str], Memory] = {}

    def at(self, now: float, *everybody: Seen) -> list[Act]:
        self.memories, acts = decide(self.policy, everybody, self.memories, now)
        return acts

    def kinds(self, now: float, *everybody: Seen) -> list[tuple[str, str]]:
        return [(act.kind.name, act.tenant.pod) for act in self.at(now, *everybody)]


def test_over_its_slice_for_long_is_told_once() -> None:
    story = Story(Policy(EXACT))
    a = tenant()
    assert story.at(0, seen(a, 1200)) == []
    assert story.at(9, seen(a, 1200)) == []
    (told,) = story.at(10, seen(a, 1200))
    assert (told.kind, told.reason) == (Kind.TELL, OVERUSE)
    assert told.text == "main holds 1200 MiB of 1000 MiB on GPU-0"
    assert story.at(20, seen(a, 1300)) == []
    assert len(story.at(110, seen(a, 1300))) == 1


def test_back_below_in_between_begins_anew() -> None:
    story = Story(Policy(EXACT))
    a = tenant()
    for now, held in ((0, 1200), (6, 900), (8, 1200), (17, 1200)):
        assert story.at(now, seen(a, held)) == []
    assert len(story.at(18, seen(a, 1200))) == 1


def test_the_tolerance_is_let_pass() -> None:
    story = Story(Policy(Overuse(tolerance_percent=10, tolerance_mib=64, over_s=0)))
    a = tenant()
    assert story.at(0, seen(a, 1100)) == []
    assert len(story.at(1, seen(a, 1101))) == 1


def test_once_over_it_counts_until_it_is_within_without_the_tolerance() -> None:
    story = Story(Policy(Overuse(tolerance_percent=10, tolerance_mib=0, over_s=0, again_s=1000)))
    a = tenant()
    assert len(story.at(0, seen(a, 1200))) == 1
    assert story.at(1, seen(a, 1050)) == []
    assert story.at(2, seen(a, 1200)) == []
    (ended,) = story.at(3, seen(a, 1000))
    assert ended.reason == OVERUSE_ENDED
    assert len(story.at(4, seen(a, 1200))) == 1


def test_no_limit_is_never_over() -> None:
    a = replace(tenant(), holds={GPU: Hold(0, 50)})
    story = Story(Policy(replace(EXACT, over_s=0, answer=Answer.KILL)))
    assert story.at(0, seen(a, 10**6)) == []


def test_a_card_that_does_not_answer_makes_nobody_over() -> None:
    story = Story(Policy(replace(EXACT, answer=Answer.KILL)))
    a = tenant()
    for now, held in ((0, 1200), (5, None), (11, 1200), (20, 1200)):
        assert story.at(now, seen(a, held)) == []
    assert story.kinds(21, seen(a, 1200)) == [("TELL", "a"), ("KILL", "a")]


def test_a_card_that_does_not_answer_ends_no_overuse() -> None:
    story = Story(Policy(replace(EXACT, over_s=0)))
    a = tenant()
    assert len(story.at(0, seen(a, 1200))) == 1
    assert story.at(1, seen(a, None)) == []
    assert story.at(2, seen(a, 1200)) == []


def test_over_on_one_card_of_two() -> None:
    a = tenant(cards=(GPU, OTHER_GPU))
    one_over = Seen(a, Standing.RUNNING, {GPU: Held(None), OTHER_GPU: Held(1500 * MIB)})
    (told,) = Story(Policy(replace(EXACT, over_s=0))).at(0, one_over)
    assert told.text == "main holds 1500 MiB of 1000 MiB on GPU-1"


def test_a_card_that_does_not_answer_says_nothing_about_the_other() -> None:
    a = tenant(cards=(GPU, OTHER_GPU))
    story = Story(Policy(replace(EXACT, over_s=0)))
    assert len(story.at(0, Seen(a, Standing.RUNNING, {GPU: Held(1500 * MIB), OTHER_GPU: Held(0)}))) == 1
    assert story.at(1, Seen(a, Standing.RUNNING, {GPU: Held(None), OTHER_GPU: Held(0)})) == []


def test_who_is_killed_is_given_the_time_anew() -> None:
    story = Story(Policy(replace(EXACT, answer=Answer.KILL)))
    a = tenant()
    story.at(0, seen(a, 1200))
    acts = story.at(10, seen(a, 1200))
    assert [(act.kind, act.reason) for act in acts] == [(Kind.TELL, KILLED), (Kind.KILL, KILLED)]
    assert story.at(11, seen(a, 1200)) == []
    assert story.kinds(21, seen(a, 1200)) == [("TELL", "a"), ("KILL", "a")]


def test_nobody_is_killed_who_is_not_there() -> None:
    story = Story(Policy(replace(EXACT, answer=Answer.KILL, over_s=0)))
    assert story.kinds(0, seen(tenant(), 1200, standing=Standing.ABSENT)) == [("TELL", "a")]


def test_frozen_for_overuse_now_and_then() -> None:
    policy = Policy(replace(EXACT, over_s=0, answer=Answer.FREEZE), freezing=Freezing(most_s=10, rest_s=20))
    story, a = Story(policy), tenant()
    acts = story.at(0, seen(a, 1200))
    assert [(act.kind, act.reason) for act in acts] == [(Kind.TELL, FROZEN), (Kind.FREEZE, "Stopped")]
    frozen = seen(a, 1200, standing=Standing.FROZEN)
    assert story.at(5, frozen) == []
    assert story.kinds(10, frozen) == [("THAW", "a")]
    assert story.at(29, seen(a, 1200)) == []
    assert story.kinds(30, seen(a, 1200)) == [("FREEZE", "a")]
    assert story.kinds(31, seen(a, 1000, standing=Standing.FROZEN)) == [("TELL", "a"), ("THAW", "a")]


def test_a_short_stop_needs_a_short_rest() -> None:
    policy = Policy(replace(EXACT, over_s=0, answer=Answer.FREEZE), freezing=Freezing(most_s=10, rest_s=20))
    story, a = Story(policy), tenant()
    story.at(0, seen(a, 1200))
    assert ("THAW", "a") in story.kinds(1, seen(a, 900, standing=Standing.FROZEN))
    assert ("FREEZE", "a") not in story.kinds(2, seen(a, 1200))
    assert ("FREEZE", "a") in story.kinds(3, seen(a, 1200))


def test_who_is_paused_by_somebody_else_is_left_alone() -> None:
    story = Story(Policy(replace(EXACT, over_s=0, answer=Answer.FREEZE)))
    assert story.kinds(0, seen(tenant(), 1200, standing=Standing.PAUSED)) == [("TELL", "a")]


# -- who goes first -----------------------------------------------------------------------------

FREEZES = Policy(sharing=Sharing(Yielding.FREEZE, busy_percent=5, idle_s=5), freezing=Freezing(15, 15))
HIGH, LOW = tenant("high", 0), tenant("low", 1)


def test_the_lower_one_stops_while_the_higher_one_is_busy() -> None:
    story = Story(FREEZES)
    assert story.kinds(0, seen(HIGH, busy=0), seen(LOW, busy=90)) == []
    acts = story.at(1, seen(HIGH, busy=60), seen(LOW, busy=90))
    assert [(act.kind, act.tenant) for act in acts] == [(Kind.FREEZE, LOW)]
    assert acts[0].text == "ns/high/main goes before ns/low/main on GPU-0"
    stopped = seen(LOW, busy=0, standing=Standing.FROZEN)
    assert story.kinds(3, seen(HIGH, busy=0), stopped) == []
    assert story.kinds(6, seen(HIGH, busy=0), stopped) == []
    assert story.kinds(6.1, seen(HIGH, busy=0), stopped) == [("THAW", "low")]


def test_nobody_stays_stopped_longer_than_allowed() -> None:
    story = Story(FREEZES)
    story.at(0, seen(HIGH, busy=60), seen(LOW, busy=90))
    stopped = seen(LOW, busy=0, standing=Standing.FROZEN)
    assert story.kinds(14.9, seen(HIGH, busy=60), stopped) == []
    assert story.kinds(15, seen(HIGH, busy=60), stopped) == [("THAW", "low")]
    assert story.kinds(29.9, seen(HIGH, busy=60), seen(LOW, busy=90)) == []
    assert story.kinds(30, seen(HIGH, busy=60), seen(LOW, busy=90)) == [("FREEZE", "low")]


@pytest.mark.parametrize(
    ("high", "low"),
    [
        pytest.param(tenant("high", 0, cards=[OTHER_GPU]), LOW, id="on another card"),
        pytest.param(tenant("high", 1), LOW, id="of the same priority"),
        pytest.param(replace(HIGH, pod_uid=LOW.pod_uid), LOW, id="of the same pod"),
        pytest.param(replace(HIGH, group="g"), replace(LOW, group="g"), id="of the same gang"),
    ],
)
def test_nobody_waits_for_one(high: Tenant, low: Tenant) -> None:
    assert Story(FREEZES).kinds(0, seen(high, busy=60), seen(low, busy=90)) == []


def test_one_that_does_nothing_is_in_nobodys_way() -> None:
    assert Story(FREEZES).kinds(0, seen(HIGH, busy=60), seen(LOW, busy=0)) == []


def test_a_card_that_does_not_measure_stops_nobody() -> None:
    assert Story(FREEZES).kinds(0, seen(HIGH, busy=None), seen(LOW, busy=None)) == []


def test_blocking_is_asked_for_as_long_as_it_is_needed() -> None:
    story = Story(replace(FREEZES, sharing=replace(FREEZES.sharing, way=Yielding.BLOCK)))
    for now in (0, 100, 200):
        assert story.kinds(now, seen(HIGH, busy=60), seen(LOW, busy=0)) == [("BLOCK", "low")]
    assert story.kinds(206, seen(HIGH, busy=0), seen(LOW, busy=0)) == []


def test_what_was_chosen_is_checked() -> None:
    with pytest.raises(ValueError, match="over_s is -1: at least 0 is needed"):
        Overuse(over_s=-1)
    with pytest.raises(ValueError, match="most_s is nan"):
        Freezing(most_s=float("nan"))


# -- random stories -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Moment:
    """What happens to three tenants, and how long after the moment before."""

    after_s: float
    memory_mib: tuple[int | None, ...]
    busy: tuple[int | None, ...]
    paused: tuple[bool, ...]
    present: tuple[bool, ...]


TENANTS = (tenant("a", 0), tenant("b", 1, cards=(GPU, OTHER_GPU)), tenant("c", 2, cards=(OTHER_GPU,)))
MEMORY = st.sampled_from([None, 900, 1050, 1200, 1200, 1200, 1200, 1300])
BUSY = st.sampled_from([None, 0, 9, 10, 90, 90])


def three(each: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.tuples(each, each, each)


MOMENTS = st.builds(
    Moment,
    st.floats(0.1, 6),
    three(MEMORY),
    three(BUSY),
    three(st.sampled_from([False] * 7 + [True])),
    three(st.sampled_from([True] * 9 + [False])),
)
POLICIES = st.builds(
    Policy,
    st.builds(
        Overuse,
        st.sampled_from(Answer),
        st.just(0),
        st.sampled_from([0, 100]),
        st.sampled_from([0, 5, 20]),
        st.just(30),
    ),
    st.builds(Sharing, st.sampled_from(Yielding), st.just(10), st.sampled_from([0, 5])),
    st.builds(Freezing, st.sampled_from([3, 12]), st.sampled_from([0, 7])),
)


class World:
    """Carries acts out at once and checks each against what was seen, worked out apart from ``decide``."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.now = policy, 0.0
        self.story = Story(policy)
        self.before: Mapping[tuple[str, str], Memory] = {}
        self.frozen_at: dict[str, float] = {}
        self.over_from: dict[str, float] = {}
        self.thawed: dict[str, tuple[float, float]] = {}

    def pass_through(self, moment: Moment) -> None:
        self.now += moment.after_s
        everybody = [self.look(moment, place) for place in range(3) if moment.present[place]]
        self.frozen_at = {
            one.tenant.pod: self.frozen_at[one.tenant.pod] for one in everybody if self.is_frozen(one)
        }
        self.thawed = {one.tenant.pod: self.thawed.get(one.tenant.pod, (0.0, 0.0)) for one in everybody}
        self.note_overuse(everybody)
        acts = self.story.at(self.now, *everybody)
        # Whatever order everybody is told in, the answer is the same.
        assert acts == decide(self.policy, everybody[::-1], self.before, self.now)[1]
        by_pod = {one.tenant.pod: one for one in everybody}
        for act in acts:
            self.check(act, by_pod[act.tenant.pod])
        for pod, since in self.frozen_at.items():
            assert self.now - since < self.policy.freezing.most_s, f"{pod} is frozen too long"
        self.before = self.story.memories

    def look(self, moment: Moment, place: int) -> Seen:
        whose = TENANTS[place]
        standing = Standing.PAUSED if moment.paused[place] else Standing.RUNNING
        if whose.pod in self.frozen_at:
            standing = Standing.FROZEN
        return seen(whose, moment.memory_mib[place], moment.busy[place], standing)

    def is_frozen(self, one: Seen) -> bool:
        return one.standing is Standing.FROZEN

    def note_overuse(self, everybody: list[Seen]) -> None:
        """Since when each has been over at every single look."""
        still = {}
        for one in everybody:
            memory = next(iter(one.held.values())).memory_bytes
            if memory is not None and memory > self.policy.overuse.threshold_bytes(LIMIT):
                still[one.tenant.pod] = self.over_from.get(one.tenant.pod, self.now)
        self.over_from = still

    def check(self, act: Act, one: Seen) -> None:
        pod = one.tenant.pod
        match act.kind:
            case Kind.KILL:
                assert self.policy.overuse.answer is Answer.KILL
                assert self.now - self.over_from[pod] >= self.policy.overuse.over_s
                del self.over_from[pod]
            case Kind.FREEZE:
                assert one.standing is Standing.RUNNING
                self.check_freeze(one)
                self.frozen_at[pod] = self.now
            case Kind.THAW:
                assert one.standing is Standing.FROZEN
                self.thawed[pod] = (self.now, self.now - self.frozen_at.pop(pod))
            case Kind.BLOCK:
                assert self.policy.sharing.way is Yielding.BLOCK
                assert one.tenant.priority > 0

    def check_freeze(self, one: Seen) -> None:
        by_overuse = (
            self.policy.overuse.answer is Answer.FREEZE and self.story.memories[one.tenant.key].is_over
        )
        by_sharing = self.policy.sharing.way is Yielding.FREEZE and one.tenant.priority > 0
        assert by_overuse or by_sharing
        at, stopped = self.thawed.get(one.tenant.pod, (0.0, 0.0))
        freezing = self.policy.freezing
        rest = freezing.rest_s * min(stopped / freezing.most_s, 1.0)
        assert self.now - at >= rest - 1e-6


STORIES = st.lists(MOMENTS, min_size=8, max_size=30)


def go_through(policy: Policy, moments: list[Moment]) -> None:
    world = World(policy)
    for moment in moments:
        world.pass_through(moment)


@settings(max_examples=100)
@given(POLICIES, STORIES)
def test_stories(policy: Policy, moments: list[Moment]) -> None:
    go_through(policy, moments)


@pytest.mark.long
@settings(max_examples=3000)
@given(POLICIES, STORIES)
def test_many_stories(policy: Policy, moments: list[Moment]) -> None:
    go_through(policy, moments)
