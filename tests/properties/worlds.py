"""A cluster that lives: objects come, change and go, cycles run, and what was decided happens.

The world keeps the objects as an API server would show them, so that at any time a fresh engine can be told
the same; the engine under test has seen every change instead.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

from tests.clusters import queue
from tests.framework.reference import clusters
from tests.framework.reference.clusters import Mix, Scene
from tests.plugins import random_clusters
from volcano_py.crds.schedulerconfig import parse_scheduler_config
from volcano_py.plugins.deviceshare.records import annotations_for
from volcano_py.scheduler.engine import CycleResult, Engine
from volcano_py.scheduler.framework.decision import Decision
from volcano_py.scheduler.model.kube.objects import Pod, decode

Document = dict[str, Any]
Key = tuple[str, str]
NOW = 1767225600
QUEUES = ("a", "b", "c", "default")


def config(share: str, *, volcano: bool = False, more: Document | None = None) -> Document:
    """The default configuration, or Volcano's, with *share* as share plugin."""
    first = [{"name": "priority"}, {"name": "gang"}, {"name": "conformance"}]
    second: list[Document] = [
        {"name": "overcommit"},
        {"name": "drf", "enablePreemptable": False},
        {"name": "predicates"},
        {"name": share, **(more or {})},
        {"name": "nodeorder"},
        {"name": "binpack"},
        {"name": "deviceshare"},
    ]
    actions = "enqueue, allocate, backfill" if volcano else "enqueue, allocate, preempt, reclaim, backfill"
    return {"actions": actions, "tiers": [{"plugins": first}, {"plugins": second}]}


def text_time(now: int) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class World:
    """See the module.

    Attributes:
        objects: (kind, "namespace/name" or name) -> the object as it is.
        engine: has seen all that happened.
        now: the clock.
        busy: how often what happens is that a gang comes.
    """

    busy = 0.2

    def __init__(self, dice: Random, configuration: Document, scene: Scene, mix: Mix) -> None:
        self.dice, self.configuration, self.mix = dice, configuration, mix
        self.engine = Engine(parse_scheduler_config(configuration))
        self.objects: dict[Key, Document] = {}
        self.now = NOW
        self.made = 0
        self.kinds = [clusters.kind(dice, mix) for _ in range(4)]
        for document in scene.documents():
            self.put(document)

    # -- what happens ---------------------------------------------------------------------------

    def put(self, document: Document) -> None:
        """An object comes or changes."""
        assert self.engine.apply(document) == [], document
        self.objects[key_of(document)] = document

    def drop(self, key: Key) -> None:
        """An object goes."""
        del self.objects[key]
        self.engine.delete(*key)

    def cycle(self, look: Callable[[CycleResult], None] | None = None) -> CycleResult:
        """One cycle, and all of it carried out once *look* has seen it."""
        result = self.engine.cycle(float(self.now))
        if look is not None:
            look(result)
        self.carry_out(result)
        self.engine.settle(float(self.now))
        changed = {("Pod", each.pod) for each in result.decisions} | self.nominate()
        for key in sorted(changed & self.objects.keys()):
            self.put(self.objects[key])
        self.now += self.dice.choice((1, 60, 3600))
        return result

    def carry_out(self, result: CycleResult) -> None:
        """Write what *result* says into the objects."""
        for each in result.decisions:
            key = ("Pod", each.pod)
            if each.kind == "bind":
                self.objects[key] = self.started(self.objects[key], each)
            elif each.kind == "evict":
                del self.objects[key]
        for name, status in result.pod_groups.items():
            group = copy.deepcopy(self.objects["PodGroup", name])
            group["status"] = {"phase": status.phase}
            self.objects["PodGroup", name] = group

    def nominate(self) -> set[Key]:
        """Write into waiting pods where room is kept for them; the pods that changed."""
        tasks, changed = self.engine.state.tasks, set()
        names = self.engine.state.nodes.names
        kept = {tasks.keys[task]: names[row] for task, row in tasks.nominated.items()}
        for key, pod in self.objects.items():
            status = pod["status"] if key[0] == "Pod" else {}
            if status.get("nominatedNodeName") != kept.get(key[1]) and key[0] == "Pod":
                told = {} if key[1] not in kept else {"nominatedNodeName": kept[key[1]]}
                rest = {name: value for name, value in status.items() if name != "nominatedNodeName"}
                self.objects[key] = {**pod, "status": {**rest, **told}}
                changed.add(key)
        return changed

    def started(self, pod: Document, decision: Decision) -> Document:
        """*pod* as it runs after *decision*."""
        run = copy.deepcopy(pod)
        run["spec"]["nodeName"] = decision.node
        run["status"] = {"phase": "Running", "startTime": text_time(self.now)}
        if decision.slices:
            decoded = decode(pod)
            assert isinstance(decoded, Pod)
            state = self.engine.state
            cards = state.cards.specs[state.nodes.index[decision.node]]
            run["metadata"]["annotations"] |= annotations_for(
                decoded, decision.slices, decision.node, cards, float(self.now)
            )
        return run

    # -- what people do -------------------------------------------------------------------------

    def happen(self) -> None:
        """Something changes."""
        if self.dice.random() < self.busy:
            self.submit()
            return
        events: tuple[Callable[[], None], ...] = (
            *(self.submit, self.finish, self.delete_pod, self.delete_gang, self.change_queue),
            *(self.change_node, self.change_node, self.delete_node, self.add_node),
        )
        self.dice.choice(events)()

    def submit(self) -> None:
        """A gang comes."""
        scene, size = Scene([], []), self.dice.choice((1, 1, 2, 3, 5))
        some = self.dice.sample(self.kinds, self.dice.randint(1, 2))
        clusters.add_gang(self.dice, scene, f"g{self.made}", size, some)
        self.made += 1
        group = scene.groups[0]
        group["spec"]["queue"] = self.dice.choice(QUEUES)
        group["status"]["phase"] = self.dice.choice(("Pending", "Inqueue"))
        group["metadata"]["creationTimestamp"] = text_time(self.now - self.dice.randint(0, 2))
        notes = {"volcano.sh/preemptable": self.dice.choice(("true", "false"))}
        if self.dice.random() < 0.3:
            group["metadata"]["annotations"] = notes
        if self.dice.random() < 0.3:
            group["spec"]["minResources"] = {"cpu": str(self.dice.randint(1, 4))}
        told = scene.documents()
        self.dice.shuffle(told)
        for document in told:
            self.put(document)

    def some(self, kind: str) -> Document | None:
        """Any object of *kind*."""
        found = sorted(key for key in self.objects if key[0] == kind)
        return self.objects[self.dice.choice(found)] if found else None

    def finish(self) -> None:
        """A running pod ends."""
        pod = self.some("Pod")
        if pod is not None and pod["status"]["phase"] == "Running":
            phase = self.dice.choice(("Succeeded", "Failed"))
            self.put({**pod, "status": {**pod["status"], "phase": phase}})

    def delete_pod(self) -> None:
        """A pod goes."""
        pod = self.some("Pod")
        if pod is not None:
            self.drop(key_of(pod))

    def delete_gang(self) -> None:
        """A gang goes with its pods, in any order."""
        group = self.some("PodGroup")
        if group is None:
            return
        name, space = group["metadata"]["name"], group["metadata"]["namespace"]
        mine = [
            key
            for key, pod in self.objects.items()
            if key[0] == "Pod"
            and pod["metadata"]["namespace"] == space
            and pod["metadata"].get("annotations", {}).get(clusters.GROUP) == name
        ]
        gone = [key_of(group), *mine]
        self.dice.shuffle(gone)
        for key in gone:
            self.drop(key)

    def change_node(self) -> None:
        """Labels, taints, cordon or amounts of a node change."""
        node = copy.deepcopy(self.some("Node"))
        if node is None:
            return
        what = self.dice.choice(("labels", "taints", "cordon", "amounts"))
        if what == "labels":
            node["metadata"]["labels"]["zone"] = self.dice.choice(("z1", "z2", "z3"))
        elif what == "taints":
            node["spec"]["taints"] = self.dice.choice(([], [random_clusters.taint(self.dice)]))
        elif what == "cordon":
            node["spec"]["unschedulable"] = not node["spec"].get("unschedulable", False)
        else:
            node["status"]["allocatable"]["cpu"] = self.dice.choice(("2", "4", "8"))
        self.put(node)

    def delete_node(self) -> None:
        """A node goes; its pods are still said to be there."""
        node = self.some("Node")
        if node is not None and self.dice.random() < 0.5:
            self.drop(key_of(node))

    def add_node(self) -> None:
        """A node comes, new or back again."""
        made: list[Document] = [{}] * self.dice.randint(0, 8)
        clusters.add_node(self.dice, made, random_clusters.nodes(self.dice)[0], self.mix)
        self.put(made[-1])

    def change_queue(self) -> None:
        """A queue says something else."""
        name = self.dice.choice(QUEUES)
        changed = some_queue(self.dice, name)
        parent = self.objects["Queue", name]["spec"].get("parent")
        if parent:
            changed["spec"]["parent"] = parent
        self.put(changed)

    # -- told anew ------------------------------------------------------------------------------

    def fresh(self) -> Engine:
        """An engine that is told everything now, in any order."""
        made = Engine(parse_scheduler_config(self.configuration))
        told = [self.objects[key] for key in sorted(self.objects)]
        self.dice.shuffle(told)
        for document in told:
            assert made.apply(document) == []
        return made


def key_of(document: Document) -> Key:
    meta = document["metadata"]
    return document["kind"], f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]


def some_queue(dice: Random, name: str) -> Document:
    """A queue with limits, or without."""
    spec: Document = {}
    if dice.random() < 0.5:
        spec["min"] = {"cpu": str(dice.randint(0, 4))}
    if dice.random() < 0.4:
        spec["max"] = {"cpu": str(dice.randint(4, 12))}
    if dice.random() < 0.5:
        spec["deserved"] = {"cpu": str(dice.randint(4, 6)), "memory": f"{dice.randint(4, 16)}Gi"}
        spec["deserved"] = {k: v for k, v in spec["deserved"].items() if dice.random() < 0.7}
    if "max" in spec and "cpu" in spec.get("deserved", {}):
        spec["max"] = {"cpu": str(dice.randint(6, 12))}
    if dice.random() < 0.2:
        spec["lendMin"] = True
    if dice.random() < 0.3:
        spec["priority"] = dice.randint(1, 9)
    if dice.random() < 0.2:
        spec["reclaimable"] = False
    if dice.random() < 0.2:
        spec["interruptible"] = False
    return queue(name, dice.randint(1, 4), **spec)


def random_world(seed: str, share: str, *, mix: Mix | None = None) -> World:
    """A world with queues (some of them below another), nodes and pods of others.

    One in five has Volcano's actions, which evict nobody.
    """
    dice, mix = Random(seed), mix or Mix()
    scene = clusters.scene(dice, mix, most_nodes=6, most_pods=6)
    scene.groups.clear()
    scene.pending.clear()
    scene.others += [some_queue(dice, name) for name in QUEUES]
    if dice.random() < 0.4:
        above = queue("above", dice.randint(1, 3), **({"max": {"cpu": "14"}} if dice.random() < 0.5 else {}))
        scene.others.append(above)
        for document in scene.others:
            if document["kind"] == "Queue" and document["metadata"]["name"] in "ab":
                document["spec"]["parent"] = "above"
    return World(dice, config(share, volcano=dice.random() < 0.2), scene, mix)
