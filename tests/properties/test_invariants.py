"""Invariants 1 to 4 over clusters that live: counted from the objects, never from the engine's books."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import pytest

from tests.framework.reference.cards import cards_on
from tests.framework.reference.clusters import GROUP, Mix
from tests.framework.reference.placer import asked, base
from tests.properties.worlds import Document, Key, World, random_world
from volcano_py.crds.schedulerconfig import parse_scheduler_config
from volcano_py.scheduler.engine import CycleResult, Engine
from volcano_py.scheduler.framework.decision import Decision

MIX = Mix(wishes=0.15, cards=0.25, volumes=0.05)
STEPS = 10
RECORD = "hami.io/vgpu-devices-allocated"


class Count:
    """What stands where, by the objects of *world* and what *result* adds to them."""

    def __init__(self, world: World, result: CycleResult) -> None:
        self.world, self.result = world, result
        self.objects = world.objects
        self.bound = {each.pod: each for each in result.decisions if each.kind == "bind"}
        self.evicted = {each.pod: each for each in result.decisions if each.kind == "evict"}

    def pods(self) -> Iterable[tuple[str, Document]]:
        return ((name, doc) for (kind, name), doc in self.objects.items() if kind == "Pod")

    def node_of(self, name: str, pod: Document) -> str:
        """Where *pod* holds room, terminating or just bound; "" if nowhere."""
        if name in self.bound:
            return self.bound[name].node
        return str(pod["spec"].get("nodeName", "")) if pod["status"]["phase"] == "Running" else ""

    def group_of(self, pod: Document) -> str:
        name = pod["metadata"].get("annotations", {}).get(GROUP, "")
        return f"{pod['metadata']['namespace']}/{name}" if name else ""

    def queue_of(self, pod: Document) -> str:
        group = self.objects.get(("PodGroup", self.group_of(pod)))
        return "" if group is None else group["spec"]["queue"]

    def members(self, group: str) -> dict[str, Document]:
        return {name: pod for name, pod in self.pods() if self.group_of(pod) == group}

    def standing(self, group: str) -> int:
        """Members that hold room and stay."""
        mine = self.members(group).items()
        return sum(bool(self.node_of(name, pod)) and name not in self.evicted for name, pod in mine)

    def succeeded(self, group: str) -> int:
        return sum(pod["status"]["phase"] == "Succeeded" for pod in self.members(group).values())

    def least(self, group: str) -> int:
        return int(self.objects["PodGroup", group]["spec"]["minMember"])

    def path(self, queue: str) -> list[Document]:
        """*queue* and those above it."""
        found = []
        while queue:
            found.append(self.objects["Queue", queue])
            queue = found[-1]["spec"].get("parent", "")
        return found

    def queue_holds(self, queue: str, resource: str) -> int:
        """With what stands below it."""
        return sum(
            asked(pod).get(resource, 0)
            for name, pod in self.pods()
            if self.node_of(name, pod)
            and self.queue_of(pod)
            and queue in [each["metadata"]["name"] for each in self.path(self.queue_of(pod))]
        )

    def shares(self, node: str) -> Counter[tuple[str, str]]:
        """(card, what) -> amount in use on *node*: MiB, percent, tenants."""
        found: Counter[tuple[str, str]] = Counter()
        for name, pod in self.pods():
            if self.node_of(name, pod) != node:
                continue
            if name in self.bound:
                slices = [(s.uuid, s.memory_mib, s.cores) for s in self.bound[name].slices]
            else:
                text = pod["metadata"].get("annotations", {}).get(RECORD, "")
                parts = [part.split(",") for part in text.replace(";", "").split(":") if part]
                slices = [(uuid, int(memory), int(cores)) for uuid, _, memory, cores in parts]
            for uuid, memory, cores in slices:
                found.update({(uuid, "devmem"): memory, (uuid, "devcore"): cores, (uuid, "count"): 1})
        return found


def nobody_holds_more_than_may_be(count: Count) -> None:
    """Invariant 1, for all that this cycle has bound."""
    for name, decision in count.bound.items():
        pod, node = count.objects["Pod", name], count.objects["Node", decision.node]
        for resource in asked(pod):
            used = sum(
                asked(other).get(resource, 0)
                for other_name, other in count.pods()
                if count.node_of(other_name, other) == decision.node
            )
            assert used <= base(resource, node["status"]["allocatable"].get(resource, "0")), (name, resource)
        shares = count.shares(decision.node)
        for card in cards_on(node):
            taken = {part.uuid for part in decision.slices}
            for what in ("devmem", "devcore", "count"):
                assert card["id"] not in taken or shares[card["id"], what] <= card[what], (name, card)
        for queue in count.path(count.queue_of(pod)):
            for resource, text in queue["spec"].get("max", {}).items():
                if asked(pod).get(resource):
                    held = count.queue_holds(queue["metadata"]["name"], resource)
                    assert held <= base(resource, text), (name, queue["metadata"]["name"])


def gangs_are_whole_or_nothing(count: Count) -> None:
    """Invariant 2, for all gangs that this cycle has touched."""
    for name in count.bound:
        group = count.group_of(count.objects["Pod", name])
        assert count.standing(group) + count.succeeded(group) >= count.least(group), group
    for name in count.evicted:
        group = count.group_of(count.objects["Pod", name])
        left = count.standing(group)
        assert left == 0 or left + count.succeeded(group) >= count.least(group), group


def nobody_goes_who_may_stay(count: Count) -> None:
    """Invariant 4, the victims: interruptible, and of a queue that gives."""
    for name, decision in count.evicted.items():
        pod = count.objects["Pod", name]
        group, queue = count.objects["PodGroup", count.group_of(pod)], count.path(count.queue_of(pod))[0]
        said = group["metadata"].get("annotations", {}).get("volcano.sh/preemptable")
        assert said != "false", name
        assert said == "true" or queue["spec"].get("interruptible", True), name
        if decision.action == "reclaim":
            assert queue["spec"].get("reclaimable", True), name
            claimant = count.objects["PodGroup", decision.for_whom]["spec"]["queue"]
            assert claimant != queue["metadata"]["name"], name


def claims_of(result: CycleResult) -> dict[str, list[str]]:
    """Claimant -> its victims."""
    found: dict[str, list[str]] = defaultdict(list)
    for each in result.decisions:
        if each.kind == "evict":
            found[each.for_whom].append(each.pod)
    return found


def claimants_start(world: World, result: CycleResult) -> int:
    """Invariant 4, the claimants: once their victims are gone, the next cycle starts them; how many."""
    claims = claims_of(result)
    if claims:
        promised = Counter(
            group_of(world.objects["Pod", each.pod]) for each in result.decisions if each.kind == "pipeline"
        )
        after: list[Count] = []
        world.cycle(lambda found: after.append(Count(world, found)))
        for group in claims:
            started = sum(group_of(world.objects["Pod", name]) == group for name in after[0].bound)
            assert started >= promised[group], group
            assert after[0].standing(group) + after[0].succeeded(group) >= after[0].least(group), group
    return len(claims)


def nobody_could_have_stayed(world: World, result: CycleResult, before: dict[Key, Document]) -> int:
    """Invariant 4, brute force: with any one victim (or gang) back, its claimant alone does not start.

    Args:
        world: for its configuration.
        result: a cycle.
        before: the objects as they stood before it.

    Returns:
        How many victims were looked at.
    """
    looked = 0
    for claimant in claims_of(result):
        decided = until_last(result, claimant, before)
        wanted = sum(
            each.kind != "evict" and group_of(before["Pod", each.pod]) == claimant for each in decided
        )
        victims = [each.pod for each in decided if each.kind == "evict" and each.for_whom == claimant]
        others = {each.pod for each in decided if each.kind == "evict" and each.for_whom != claimant}
        for unit in units(before, victims, others):
            looked += 1
            assert starts_beside(world, decided, claimant, unit, before) < wanted, (claimant, unit, victims)
    return looked


def until_last(result: CycleResult, claimant: str, before: dict[Key, Document]) -> list[Decision]:
    """What was decided up to the last claim of *claimant*; what came later could not be known."""
    last = max(
        at
        for at, each in enumerate(result.decisions)
        if each.for_whom == claimant
        or (each.kind == "pipeline" and group_of(before["Pod", each.pod]) == claimant)
    )
    return result.decisions[: last + 1]


def starts_beside(
    world: World, decided: list[Decision], claimant: str, back: set[str], before: dict[Key, Document]
) -> int:
    """How many pods of *claimant* start when all is as *decided*, but the pods *back* have stayed.

    Only those that were promised room are asked about: other members might have needed other room.
    """
    gone = {each.pod for each in decided if each.kind == "evict"} - back
    placed = {each.pod: each for each in decided if each.kind != "evict"}
    engine = Engine(parse_scheduler_config({**world.configuration, "actions": "allocate"}))
    for (kind, name), document in before.items():
        if kind != "Pod":
            engine.apply(document)
        elif name not in gone:
            mine, waits = group_of(document) == claimant, document["status"]["phase"] == "Pending"
            if name in placed and not mine:
                engine.apply(world.started(document, placed[name]))
            elif name in placed or not waits:
                engine.apply(document)
    return sum(each.kind == "bind" for each in engine.cycle(float(world.now)).decisions)


def units(before: dict[Key, Document], victims: list[str], others: set[str]) -> list[set[str]]:
    """*victims* as they come back: the rest of a gang that went whole, others one by one.

    Victims of *others* were gone already, or went later.
    """
    by_group: dict[str, set[str]] = defaultdict(set)
    for name in victims:
        by_group[group_of(before["Pod", name])].add(name)
    found: list[set[str]] = []
    for group, names in by_group.items():
        stood = {
            name
            for (kind, name), pod in before.items()
            if kind == "Pod" and group_of(pod) == group and pod["status"]["phase"] == "Running"
        } - others
        found += [names] if stood == names else [{name} for name in sorted(names)]
    return found


def group_of(pod: Document) -> str:
    name = pod["metadata"].get("annotations", {}).get(GROUP, "")
    return f"{pod['metadata']['namespace']}/{name}"


def a_minimum_comes_first(world: World, result: CycleResult, before: dict[Key, Document]) -> int:
    """Invariant 3: no gang waits below its queue's min for room that a queue above its deserved got.

    Returns:
        How many gangs below their queue's min were looked at.
    """
    looked = 0
    count, earlier = Count(world, result), Count(world, result)
    # What the cycle itself evicted stood in the queue when the queue's turn came.
    earlier.objects = before
    assert result.shares is not None
    rows = world.engine.state.queues.index
    for (kind, group), document in sorted(before.items()):
        if kind != "PodGroup" or world.objects[kind, group]["status"]["phase"] != "Inqueue":
            continue
        queue = document["spec"]["queue"]
        members = count.members(group)
        waits = {name: pod for name, pod in members.items() if not count.node_of(name, pod)}
        least = base("cpu", count.path(queue)[0]["spec"].get("min", {}).get("cpu", "0"))
        asks = sum(asked(pod).get("cpu", 0) for pod in waits.values())
        if len(waits) < len(members) or not asks or earlier.queue_holds(queue, "cpu") + asks > least:
            continue
        looked += 1
        over = {
            name
            for name in count.bound
            if (other := count.queue_of(before["Pod", name])) != queue
            and count.queue_holds(other, "cpu") > int(result.shares.deserved[rows[other], 0])
            and not count.path(other)[0]["spec"].get("min")
        }
        assert not over or not starts_without(world, group, over, count, before), (group, over)
    return looked


def starts_without(
    world: World, group: str, over: set[str], count: Count, before: dict[Key, Document]
) -> bool:
    """Whether *group* would start, had pods of *over* not been bound; all other binds stand."""
    engine = Engine(parse_scheduler_config({**world.configuration, "actions": "allocate"}))
    for (kind, name), document in before.items():
        if kind == "Pod" and name in count.bound and name not in over:
            engine.apply(world.started(document, count.bound[name]))
        elif kind != "Pod" or document["status"]["phase"] != "Pending" or group_of(document) == group:
            engine.apply(document)
    return any(each.kind == "bind" for each in engine.cycle(float(world.now)).decisions)


def live(seed: str, share: str) -> Counter[str]:
    """Run a world, checking everything after each cycle; how often what happened."""
    world = random_world(seed, share, mix=MIX)
    world.busy = world.dice.choice((0.2, 0.8, 0.9))
    seen: Counter[str] = Counter()
    for _ in range(STEPS):
        for _ in range(world.dice.randint(1, 4)):
            world.happen()
        before = dict(world.objects)
        promised = bool(world.engine.state.tasks.nominated)
        now = world.now

        def look(result: CycleResult) -> None:
            count = Count(world, result)
            nobody_holds_more_than_may_be(count)
            gangs_are_whole_or_nothing(count)
            nobody_goes_who_may_stay(count)

        result = world.cycle(look)
        seen.update(each.kind for each in result.decisions)
        world.now, after = now, world.now
        if not promised:
            seen["victims"] += nobody_could_have_stayed(world, result, before)
            seen["minimums"] += a_minimum_comes_first(world, result, before)
        world.now = after
        seen["claimants"] += claimants_start(world, result)
    return seen


@pytest.mark.parametrize("share", ["proportion", "capacity"])
@pytest.mark.parametrize("block", range(3))
def test_invariants_hold(block: int, share: str) -> None:
    seen: Counter[str] = Counter()
    for number in range(8):
        seen += live(f"{share} {block} {number}", share)
    assert seen["bind"] > 20


@pytest.mark.long
@pytest.mark.parametrize("share", ["proportion", "capacity"])
@pytest.mark.parametrize("block", range(20))
def test_invariants_hold_often(block: int, share: str) -> None:
    seen: Counter[str] = Counter()
    for number in range(25):
        seen += live(f"long {share} {block} {number}", share)
    assert min(seen[what] for what in ("evict", "victims", "claimants")) > 0
