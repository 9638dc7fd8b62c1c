"""What is done about containers that hold too much, or that others on their card go before.

A function of what was seen, what is remembered and the clock; nothing is carried out here (``hand.py`` does).
What can't be seen is no reason to act: a card that does not answer neither makes nor ends an overuse. Whom
somebody else stopped is neither frozen nor thawed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from volcano_py.shim.agent.attribution import ContainerKey
from volcano_py.shim.agent.policy import MIB, Answer, Freezing, Overuse, Policy, Yielding
from volcano_py.shim.agent.tenants import Tenant

OVERUSE, OVERUSE_ENDED = "CardMemoryOveruse", "CardMemoryOveruseEnded"
KILLED, FROZEN = "CardMemoryOveruseKilled", "CardMemoryOveruseFrozen"
"""Reasons of events."""


class Standing(enum.Enum):
    """Whether a container's processes run."""

    RUNNING = "running"
    FROZEN = "frozen"  # by us, or on the way there
    PAUSED = "paused"  # by somebody else
    ABSENT = "absent"  # not started, or ended


@dataclass(frozen=True, slots=True)
class Held:
    """What a container holds of a card of its own.

    Attributes:
        memory_bytes: None where the card did not tell.
        busy_percent: of the card's time; None where it is not known.
    """

    memory_bytes: int | None
    busy_percent: int | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """A container as it was seen now; ``held`` is by UUID, for every card of its slices."""

    tenant: Tenant
    standing: Standing
    held: Mapping[str, Held]


@dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered of a container; times are the clock's, None for never or not now.

    Attributes:
        over_since: seen over at every reading since then.
        is_over: long enough to count, and not yet back within its slice.
        told_at: of its last event.
        frozen_since: by us.
        runs_until: it must not be frozen before then.
        busy_at: when it was last seen busy, by card.
    """

    over_since: float | None = None
    is_over: bool = False
    told_at: float | None = None
    frozen_since: float | None = None
    runs_until: float = 0.0
    busy_at: Mapping[str, float] = field(default_factory=dict)


class Kind(enum.Enum):
    """What is to be done, in the order in which it is done."""

    TELL = 0
    THAW = 1
    KILL = 2
    FREEZE = 3
    BLOCK = 4


@dataclass(frozen=True, slots=True)
class Act:
    """One thing to do to a container.

    Attributes:
        reason, text: of an event; of the others why, for the log.
    """

    kind: Kind
    tenant: Tenant
    reason: str
    text: str


Memories = Mapping[ContainerKey, Memory]


def decide(
    policy: Policy, seen: Sequence[Seen], memories: Memories, now: float
) -> tuple[dict[ContainerKey, Memory], list[Act]]:
    """What to do about all of *seen*, and what to remember of them.

    Args:
        policy: the operator's.
        seen: every tenant once; who is missing is forgotten.
        memories: what the last call said.
        now: seconds of a clock that never goes back.
    """
    busy = {each.tenant.key: _busy(policy, each, _memory(memories, each), now) for each in seen}
    kept: dict[ContainerKey, Memory] = {}
    acts: list[Act] = []
    for each in seen:
        memory = replace(_memory(memories, each), busy_at=busy[each.tenant.key])
        memory, own = _judge(policy.overuse, each, memory, now)
        ahead = _goes_ahead(policy, each, seen, busy, now)
        if ahead and policy.sharing.way is Yielding.BLOCK and each.standing is not Standing.ABSENT:
            own.append(Act(Kind.BLOCK, each.tenant, "Sharing", ahead))
        memory, turn = _stand(policy, each, memory, ahead, now)
        kept[each.tenant.key] = memory
        acts += [*own, *(act for act in turn if act.kind is not Kind.FREEZE or not _ends(own))]
    return kept, sorted(acts, key=lambda act: (act.kind.value, act.tenant.key, act.reason))


def _ends(acts: Iterable[Act]) -> bool:
    return any(act.kind is Kind.KILL for act in acts)


def _memory(memories: Memories, seen: Seen) -> Memory:
    return memories.get(seen.tenant.key, Memory())


# -- overuse ------------------------------------------------------------------------------------


def _judge(policy: Overuse, seen: Seen, memory: Memory, now: float) -> tuple[Memory, list[Act]]:
    """Whether *seen* is over its slice by now, and what is said and ended for it."""
    worst = _excess(policy, seen)
    if worst is None:
        # Nothing is known now, so a time over that was seen at every reading is broken.
        return replace(memory, over_since=None), []
    if worst > 0:
        since = now if memory.over_since is None else memory.over_since
        memory = replace(memory, over_since=since, is_over=memory.is_over or now - since >= policy.over_s)
        return _answer(policy, seen, memory, now) if memory.is_over else (memory, [])
    memory = replace(memory, over_since=None)
    if memory.is_over and _is_within(seen):
        text = f"{seen.tenant.container} is within its slices again"
        return replace(memory, is_over=False, told_at=None), [_tell(seen, OVERUSE_ENDED, text)]
    return memory, []


def _excess(policy: Overuse, seen: Seen) -> int | None:
    """Bytes over what is let pass, on the worst card; None where a card did not tell and none is over."""
    told = {uuid: held.memory_bytes for uuid, held in seen.held.items() if held.memory_bytes is not None}
    limits = {uuid: hold.memory_bytes for uuid, hold in seen.tenant.holds.items() if hold.memory_bytes}
    over = [used - policy.threshold_bytes(limits[uuid]) for uuid, used in told.items() if uuid in limits]
    worst = max(over, default=None)
    if worst is not None and worst > 0:
        return worst
    return worst if all(uuid in told for uuid in limits) else None


def _is_within(seen: Seen) -> bool:
    """Whether *seen* is back within all its slices, without the tolerance."""
    limits = {uuid: hold.memory_bytes for uuid, hold in seen.tenant.holds.items() if hold.memory_bytes}
    return all((seen.held[uuid].memory_bytes or 0) <= limit for uuid, limit in limits.items())


def _answer(policy: Overuse, seen: Seen, memory: Memory, now: float) -> tuple[Memory, list[Act]]:
    if policy.answer is Answer.KILL and seen.standing is not Standing.ABSENT:
        text = f"{_said(seen)}; its processes are ended"
        return replace(memory, over_since=None, is_over=False, told_at=None), [
            Act(Kind.KILL, seen.tenant, KILLED, text),
            _tell(seen, KILLED, text),
        ]
    if memory.told_at is not None and now - memory.told_at < policy.again_s:
        return memory, []
    freezes = policy.answer is Answer.FREEZE
    text = f"{_said(seen)}; it is stopped from time to time" if freezes else _said(seen)
    return replace(memory, told_at=now), [_tell(seen, FROZEN if freezes else OVERUSE, text)]


def _said(seen: Seen) -> str:
    """``main holds 5000 MiB of 4096 MiB on GPU-…``, for every card that is over."""
    over = [
        f"{used // MIB} MiB of {hold.memory_bytes // MIB} MiB on {uuid}"
        for uuid, hold in sorted(seen.tenant.holds.items())
        if hold.memory_bytes and (used := seen.held[uuid].memory_bytes or 0) > hold.memory_bytes
    ]
    return f"{seen.tenant.container} holds {', '.join(over)}"


def _tell(seen: Seen, reason: str, text: str) -> Act:
    return Act(Kind.TELL, seen.tenant, reason, text)


# -- who goes first -----------------------------------------------------------------------------


def _busy(policy: Policy, seen: Seen, memory: Memory, now: float) -> dict[str, float]:
    """When *seen* was last busy, by card; what is too long ago is left out."""
    idle_s, share = policy.sharing.idle_s, policy.sharing.busy_percent
    recent = {uuid: at for uuid, at in memory.busy_at.items() if uuid in seen.held and now - at <= idle_s}
    active = {uuid: now for uuid, held in seen.held.items() if (held.busy_percent or 0) >= share}
    return recent | active


def _goes_ahead(
    policy: Policy,
    seen: Seen,
    everybody: Iterable[Seen],
    busy: Mapping[ContainerKey, Mapping[str, float]],
    now: float,
) -> str:
    """Who goes before *seen* on a card now, in words; "" for nobody.

    Members of one pod or one gang work together: none waits for another.
    """
    if policy.sharing.way is Yielding.OFF:
        return ""
    mine = seen.tenant
    for other in sorted(everybody, key=lambda one: one.tenant.key):
        its = other.tenant
        if its.priority >= mine.priority or _work_together(mine, its):
            continue
        shared = sorted(set(busy[its.key]) & set(mine.holds))
        if shared:
            return f"{its.name} goes before {mine.name} on {shared[0]}"
    return ""


def _work_together(one: Tenant, other: Tenant) -> bool:
    gang = one.group != "" and (one.namespace, one.group) == (other.namespace, other.group)
    return gang or one.pod_uid == other.pod_uid


# -- stopping -----------------------------------------------------------------------------------


def _stand(policy: Policy, seen: Seen, memory: Memory, ahead: str, now: float) -> tuple[Memory, list[Act]]:
    """Freeze or thaw *seen*, as far as the limits on freezing allow."""
    why = _why_frozen(policy, seen, memory, ahead)
    if seen.standing is Standing.FROZEN:
        since = now if memory.frozen_since is None else memory.frozen_since
        memory = replace(memory, frozen_since=since)
        if why and now - since < policy.freezing.most_s:
            return memory, []
        return _thawed(policy.freezing, memory, since, now), [
            Act(Kind.THAW, seen.tenant, "Over", why or "no need")
        ]
    memory = replace(memory, frozen_since=None)
    if not why or seen.standing is not Standing.RUNNING or now < memory.runs_until:
        return memory, []
    return replace(memory, frozen_since=now), [Act(Kind.FREEZE, seen.tenant, "Stopped", why)]


def _thawed(policy: Freezing, memory: Memory, since: float, now: float) -> Memory:
    """It runs at least as long, in proportion, as it was stopped."""
    stopped = min((now - since) / policy.most_s, 1.0) if policy.most_s > 0 else 1.0
    return replace(memory, frozen_since=None, runs_until=now + stopped * policy.rest_s)


def _why_frozen(policy: Policy, seen: Seen, memory: Memory, ahead: str) -> str:
    if (
        policy.overuse.answer is Answer.FREEZE
        and memory.is_over
        and _excess(policy.overuse, seen) is not None
    ):
        return f"{seen.tenant.name} holds more than its slices"
    # Who does nothing on the card is in nobody's way; who was stopped for it stays so.
    works = bool(memory.busy_at) or memory.frozen_since is not None
    return ahead if policy.sharing.way is Yielding.FREEZE and works else ""
