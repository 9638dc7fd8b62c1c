"""Extension points: what plugins may say, and how their answers become one.

Every point is declared once with its merge rule. Names and tier rules are Volcano's; signatures are
array-shaped where many nodes or victims are judged, and keys rather than comparators where things are
put in order (a key can be computed once and kept; a chain of comparators that takes the first
non-zero answer is the same as comparing tuples of keys).

Rules of ours (``docs/deviations.md``): abstaining is explicit; an answer that empties stays empty;
protection (``protects``, ``allocatable``, ``preemptive``) holds whatever the tiers say and has no
``enableXxx`` flag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np

from volcano_py.scheduler.model.resources import Ints, Mask, Rows32, Scores

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.claim import Claim
    from volcano_py.scheduler.framework.refusal import Refusal, Room
    from volcano_py.scheduler.framework.view import NodeView
    from volcano_py.scheduler.model.accounts import Batch
    from volcano_py.scheduler.model.cards import CardChoice
    from volcano_py.scheduler.model.classes import TaskClass
    from volcano_py.scheduler.model.jobs import Job
    from volcano_py.scheduler.model.queues import Queue

F = TypeVar("F")
T = TypeVar("T")

Admits = Callable[[str, str | None], int | None]
"""(plugin, flag) -> the plugin's tier, None where the configuration switches the flag off for it."""


class Abstain(Enum):
    """The answer "no opinion"."""

    ABSTAIN = "abstain"


ABSTAIN: Final = Abstain.ABSTAIN


class Vote(IntEnum):
    """A vote on a job."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Scope(IntEnum):
    """What an answer about a node depends on; the narrower, the longer it can be kept."""

    STATIC = 0
    """The class and the node's labels, taints, amounts; not on what runs there."""
    AMOUNTS = 1
    """Besides, the ``used`` amounts in the view (and nothing else of the node's state)."""
    NODE = 2
    """Besides, anything else on the node: cards, ports, volumes."""
    CLUSTER = 3
    """Other nodes too: spread, affinity, or scores relative to the best node."""


@dataclass(frozen=True, slots=True)
class Entry(Generic[F]):
    """One plugin's function at a point."""

    plugin: str
    tier: int
    call: F


@dataclass(slots=True)
class Point(Generic[F]):
    """An extension point: its functions in tier order, plugins in order inside a tier.

    Attributes:
        name: as in Volcano, snake case.
        admits: what the configuration says of a plugin that registers.
        flag: key of the plugin option that switches it off, None where nothing may.
    """

    name: str
    admits: Admits
    flag: str | None = None
    entries: list[Entry[F]] = field(default_factory=list)

    def add(self, plugin: str, call: F) -> None:
        """Register *call*, unless the configuration switches the point off for *plugin*."""
        tier = self.admits(plugin, self.flag)
        if tier is None:
            return
        self.entries.append(Entry(plugin, tier, call))
        self.entries.sort(key=lambda entry: entry.tier)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def __iter__(self) -> Iterator[Entry[F]]:
        return iter(self.entries)

    def tiers(self) -> Iterator[list[Entry[F]]]:
        """The entries of each tier that has any."""
        tier: list[Entry[F]] = []
        for entry in self.entries:
            if tier and tier[0].tier != entry.tier:
                yield tier
                tier = []
            tier.append(entry)
        if tier:
            yield tier


@dataclass(frozen=True, slots=True)
class Check:
    """One reason a node may be unfit.

    Attributes:
        name: the check, as kube-scheduler or Volcano calls it (``NodeAffinity``).
        scope: what the mask depends on.
        mask: (class, view) -> (n,) True where the node passes.
        applies: does the class care at all? Classes that do not are never asked.
        explain: one line for people, used in "0/N nodes are available: 3 <explain>"; may depend on
            class and view of the failed nodes (for "largest free slice 2048Mi, asked 4096Mi").
        resolvable: evicting pods can help.
        foresees: of a check of scope ``NODE``, the classes for which ``mask`` counts, besides what is
            booked, the pods that ``NodeView.ahead`` says are taken: such classes are known many pods ahead.
    """

    name: str
    scope: Scope
    mask: Callable[[TaskClass, NodeView], Mask]
    applies: Callable[[TaskClass], bool]
    explain: Callable[[TaskClass, NodeView], str]
    resolvable: bool = False
    foresees: Callable[[TaskClass], bool] | None = None


@dataclass(frozen=True, slots=True)
class Scorer:
    """One opinion on which node is better; scores of all scorers are added.

    Attributes:
        score: (class, view) -> (n,) float64, already weighted.
        applies: as for ``Check``.
    """

    name: str
    scope: Scope
    score: Callable[[TaskClass, NodeView], Scores]
    applies: Callable[[TaskClass], bool] = lambda klass: True


Key = Any
"""Anything that sorts among its kind; the smaller goes first."""
VictimVote = Mask | Abstain


class Declared(Generic[F]):
    """A declaration in ``Points``: the point of that name, made for a session when somebody first asks."""

    def __init__(self, flag: str | None = None) -> None:
        self.flag = flag

    def __set_name__(self, owner: type[Points], name: str) -> None:
        self.name = name

    def __get__(self, points: Points, owner: type[Points]) -> Point[F]:
        made: Point[F] = Point(self.name, points.admits, self.flag)
        points.__dict__[self.name] = made  # found there from now on, as fast as any attribute
        return made


class Points:
    """All extension points of a session.

    The last group is declared for later (``docs/architecture.md``): plugins may hang functions there, and
    no action of today asks them.
    """

    # Order: tuples of keys, first difference decides.
    job_order: Declared[Callable[[Job], Key]] = Declared("enableJobOrder")
    queue_order: Declared[Callable[[Queue], Key]] = Declared("enableQueueOrder")
    task_order: Declared[Callable[[int], Key]] = Declared("enableTaskOrder")
    victim_queue_order: Declared[Callable[[Claim, Queue], Key]] = Declared()
    # Jobs.
    job_valid: Declared[Callable[[Job], Refusal | None]] = Declared()
    job_ready: Declared[Callable[[Job], bool]] = Declared("enableJobReady")
    job_pipelined: Declared[Callable[[Job], Vote]] = Declared("enableJobPipelined")
    job_starving: Declared[Callable[[Job], bool]] = Declared("enableJobStarving")
    job_unready: Declared[Callable[[Job, Mapping[int, Refusal]], Refusal | None]] = Declared()
    job_enqueueable: Declared[Callable[[Job], Vote | Refusal]] = Declared("enableJobEnqueued")
    job_enqueued: Declared[Callable[[Job], None]] = Declared("enableJobEnqueued")
    # Limits (protection: no flag): (queue, class, firm, future), (queue, need (R,), firm).
    overused: Declared[Callable[[Queue], Refusal | None]] = Declared("enabledOverused")
    allocatable: Declared[Callable[[Queue, TaskClass, bool, bool], Room]] = Declared()
    preemptive: Declared[Callable[[Queue, Ints, bool], Refusal | None]] = Declared()
    # Victims: votes choose (True: give up), protection vetoes (True: protected, and why).
    preemptable: Declared[Callable[[Claim, Rows32], VictimVote]] = Declared("enablePreemptable")
    reclaimable: Declared[Callable[[Claim, Rows32], VictimVote]] = Declared("enableReclaimable")
    protects: Declared[Callable[[Claim, Rows32], tuple[Mask, str]]] = Declared()
    # Nodes.
    pre_predicate: Declared[Callable[[TaskClass, Job], Refusal | None]] = Declared("enablePredicate")
    predicate: Declared[Check] = Declared("enablePredicate")
    node_order: Declared[Scorer] = Declared("enableNodeOrder")
    best_node: Declared[Callable[[TaskClass, Rows32, Scores], int | None]] = Declared("enableBestNode")
    # Cards: what a pod of the class gets on a node (row, future); at most one plugin answers.
    choose_cards: Declared[Callable[[TaskClass, int, bool], CardChoice]] = Declared()
    # The same for pods that go to nodes (k,) one after another, of a class whose cards are foreseen.
    choose_cards_in_turn: Declared[Callable[[TaskClass, Rows32], list[CardChoice]]] = Declared()
    # Told, not asked.
    booked: Declared[Callable[[Batch, int], None]] = Declared()
    closing: Declared[Callable[[], None]] = Declared()
    # Declared for later: sub-jobs and hypernodes (network topology),
    sub_job_order: Declared[Callable[[Any], Key]] = Declared("enabledSubJobOrder")
    sub_job_ready: Declared[Callable[[Any], bool]] = Declared("enabledSubJobReady")
    sub_job_pipelined: Declared[Callable[[Any], Vote]] = Declared("enabledSubJobPipelined")
    hyper_node_order: Declared[Callable[..., Scores]] = Declared("enabledHyperNodeOrder")
    hyper_node_gradient: Declared[Callable[..., Any]] = Declared("enabledHyperNodeGradient")
    # victims of gang preemption, and victims without a claimant (rescheduling),
    unified_evictable: Declared[Callable[[Claim, Rows32], VictimVote]] = Declared()
    victim_tasks: Declared[Callable[[], Rows32]] = Declared("enabledVictim")
    # a large gang that nodes are kept free for, and the order of many clusters.
    target_job: Declared[Callable[[list[Job]], Job | None]] = Declared("enableTargetJob")
    reserved_nodes: Declared[Callable[[], None]] = Declared("enableReservedNodes")
    cluster_order: Declared[Callable[[Any], Key]] = Declared("enabledClusterOrder")

    def __init__(self, admits: Admits) -> None:
        self.admits = admits


def order_key(point: Point[Callable[[T], Key]], item: T, last: tuple[Key, ...]) -> tuple[Key, ...]:
    """The tuple *item* sorts by: every plugin's key, then *last*."""
    return (*[entry.call(item) for entry in point.entries], *last)


def all_true(point: Point[Callable[[T], bool]], item: T) -> bool:
    """AND; nobody registered means yes (JobReady)."""
    return all(entry.call(item) for entry in point)


def first_tier_all_true(point: Point[Callable[[T], bool]], item: T) -> bool:
    """AND inside the first tier with anybody in it; nobody means no (JobStarving)."""
    for tier in point.tiers():
        return all(entry.call(item) for entry in tier)
    return False


def first_refusal(point: Point[Callable[..., Refusal | None]], *args: object) -> Refusal | None:
    """The first refusal, or None (JobValid, JobUnready, PrePredicate, Overused, Preemptive)."""
    for entry in point:
        refusal = entry.call(*args)
        if refusal is not None:
            return refusal
    return None


def tiered_vote(point: Point[Callable[[T], Vote]], item: T) -> bool:
    """A rejection decides at once; after a tier with a permit lower tiers are not asked; else yes."""
    for tier in point.tiers():
        votes = []
        for entry in tier:
            vote = entry.call(item)
            if vote == Vote.REJECT:
                return False
            votes.append(vote)
        if Vote.PERMIT in votes:
            return True
    return True


def victims_by_tier(
    point: Point[Callable[[Claim, Rows32], VictimVote]], claim: Claim, victims: Rows32
) -> Mask:
    """Which of *victims* (V,) the plugins give up.

    In a tier the answers of those who do not abstain are intersected. The first tier in which
    anybody answered with at least one victim decides; a tier whose intersection is empty hands on to
    the next one, but is never filled again by a later plugin of the same tier. Nobody answered:
    nobody is given up.
    """
    for tier in point.tiers():
        answers = [
            answer for answer in (e.call(claim, victims) for e in tier) if not isinstance(answer, Abstain)
        ]
        if not answers:
            continue
        agreed: Mask = np.logical_and.reduce(answers)
        if agreed.any():
            return agreed
    return np.zeros(len(victims), np.bool_)
