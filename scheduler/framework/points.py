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
    from volcano_py.scheduler.model.classes import TaskClass
    from volcano_py.scheduler.model.jobs import Job
    from volcano_py.scheduler.model.queues import Queue

F = TypeVar("F")


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
        flag: key of the plugin option that switches it off, None where nothing may.
    """

    name: str
    flag: str | None
    entries: list[Entry[F]] = field(default_factory=list)
    admits: Callable[[str, str | None], int | None] = field(default=lambda plugin, flag: 0)

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
    """

    name: str
    scope: Scope
    mask: Callable[[TaskClass, NodeView], Mask]
    applies: Callable[[TaskClass], bool]
    explain: Callable[[TaskClass, NodeView], str]
    resolvable: bool = False


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


class Points:
    """All extension points of a session."""

    def __init__(self, admits: Callable[[str, str | None], int | None]) -> None:
        def point(name: str, flag: str | None) -> Point[Any]:
            return Point(name, flag, admits=admits)

        # Order: tuples of keys, first difference decides.
        self.job_order: Point[Callable[[Job], Key]] = point("job_order", "enableJobOrder")
        self.queue_order: Point[Callable[[Queue], Key]] = point("queue_order", "enableQueueOrder")
        self.task_order: Point[Callable[[int], Key]] = point("task_order", "enableTaskOrder")
        self.sub_job_order: Point[Callable[[Any], Key]] = point("sub_job_order", "enabledSubJobOrder")
        self.cluster_order: Point[Callable[[Any], Key]] = point("cluster_order", "enabledClusterOrder")
        self.victim_queue_order: Point[Callable[[Claim, Queue], Key]] = point("victim_queue_order", None)
        # Jobs.
        self.job_valid: Point[Callable[[Job], Refusal | None]] = point("job_valid", None)
        self.job_ready: Point[Callable[[Job], bool]] = point("job_ready", "enableJobReady")
        self.job_pipelined: Point[Callable[[Job], Vote]] = point("job_pipelined", "enableJobPipelined")
        self.job_starving: Point[Callable[[Job], bool]] = point("job_starving", "enableJobStarving")
        self.job_unready: Point[Callable[[Job, Mapping[int, Refusal]], Refusal | None]] = point(
            "job_unready", None
        )
        self.sub_job_ready: Point[Callable[[Any], bool]] = point("sub_job_ready", "enabledSubJobReady")
        self.sub_job_pipelined: Point[Callable[[Any], Vote]] = point(
            "sub_job_pipelined", "enabledSubJobPipelined"
        )
        self.job_enqueueable: Point[Callable[[Job], Vote | Refusal]] = point(
            "job_enqueueable", "enableJobEnqueued"
        )
        self.job_enqueued: Point[Callable[[Job], None]] = point("job_enqueued", "enableJobEnqueued")
        self.target_job: Point[Callable[[list[Job]], Job | None]] = point("target_job", "enableTargetJob")
        # Limits (protection: no flag).
        self.overused: Point[Callable[[Queue], Refusal | None]] = point("overused", "enabledOverused")
        self.allocatable: Point[Callable[[Queue, TaskClass, bool, bool], Room]] = point("allocatable", None)
        self.preemptive: Point[Callable[[Queue, Ints, bool], Refusal | None]] = point("preemptive", None)
        # Victims: votes choose (True: give up), protection vetoes (True: protected, and why).
        self.preemptable: Point[Callable[[Claim, Rows32], VictimVote]] = point(
            "preemptable", "enablePreemptable"
        )
        self.reclaimable: Point[Callable[[Claim, Rows32], VictimVote]] = point(
            "reclaimable", "enableReclaimable"
        )
        self.unified_evictable: Point[Callable[[Claim, Rows32], VictimVote]] = point(
            "unified_evictable", None
        )
        self.protects: Point[Callable[[Claim, Rows32], tuple[Mask, str]]] = point("protects", None)
        self.victim_tasks: Point[Callable[[], Rows32]] = point("victim_tasks", "enabledVictim")
        # Nodes.
        self.pre_predicate: Point[Callable[[TaskClass, Job], Refusal | None]] = point(
            "pre_predicate", "enablePredicate"
        )
        self.predicate: Point[Check] = point("predicate", "enablePredicate")
        self.node_order: Point[Scorer] = point("node_order", "enableNodeOrder")
        self.best_node: Point[Callable[[TaskClass, Rows32, Scores], int | None]] = point(
            "best_node", "enableBestNode"
        )
        self.reserved_nodes: Point[Callable[[], None]] = point("reserved_nodes", "enableReservedNodes")
        self.hyper_node_order: Point[Callable[..., Scores]] = point(
            "hyper_node_order", "enabledHyperNodeOrder"
        )
        self.hyper_node_gradient: Point[Callable[..., Any]] = point(
            "hyper_node_gradient", "enabledHyperNodeGradient"
        )
        # Cards: what a pod of the class gets on a node; at most one plugin answers.
        self.choose_cards: Point[Callable[[TaskClass, int, bool], Any]] = point("choose_cards", None)
        # Told, not asked.
        self.booked: Point[Callable[[Batch, int], None]] = point("booked", None)
        self.closing: Point[Callable[[], None]] = point("closing", None)


def order_key(point: Point[Callable[[Any], Key]], item: Any, last: tuple[Key, ...]) -> tuple[Key, ...]:
    """The tuple *item* sorts by: every plugin's key, then *last*."""
    return (*[entry.call(item) for entry in point.entries], *last)


def all_true(point: Point[Callable[[Any], bool]], item: object) -> bool:
    """AND; nobody registered means yes (JobReady)."""
    return all(entry.call(item) for entry in point)


def first_tier_all_true(point: Point[Callable[[Any], bool]], item: object) -> bool:
    """AND inside the first tier with anybody in it; nobody means no (JobStarving)."""
    for tier in point.tiers():
        return all(entry.call(item) for entry in tier)
    return False


def first_refusal(point: Point[Callable[..., Refusal | None]], *args: object) -> Refusal | None:
    """The first refusal, or None (JobValid, PrePredicate, Overused, Preemptive)."""
    for entry in point:
        refusal = entry.call(*args)
        if refusal is not None:
            return refusal
    return None


def tiered_vote(point: Point[Callable[[Any], Vote]], item: object) -> bool:
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
