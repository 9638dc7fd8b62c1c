"""Random histories of a cluster as a scheduler meets them: late echoes, failed orders, noise."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from random import Random
from typing import Any

from tests.framework.reference.clusters import Mix
from tests.properties.worlds import Document, Key, World, config, key_of, random_world, text_time
from volcano_py.crds.schedulerconfig import parse_scheduler_config
from volcano_py.scheduler.cluster.feed import Change
from volcano_py.scheduler.cluster.orders import BindDone, BindFailed, EvictDone, EvictFailed, Outcome
from volcano_py.scheduler.decoding import decode_object
from volcano_py.scheduler.engine import SCHEDULER_NAMES, CycleResult, Engine
from volcano_py.scheduler.framework.decision import Decision
from volcano_py.scheduler.run.owner import Owner


def change_of(document: Document) -> Change:
    """*document* as the feed would hand it over."""
    kind, key = key_of(document)
    item = decode_object(document)
    return Change(kind, key, item, (), "1", str(getattr(item, "uid", "")))


def deletion_of(key: Key) -> Change:
    return Change(*key, None, (), "1")


class Life(World):
    """A world whose engine belongs to an ``Owner``, and whose server answers late, or no.

    Attributes:
        changes, outcomes: what the owner has not been told yet.
        on_the_way: decisions that the server has not carried out yet.
    """

    owner: Owner

    def __init__(self, world: World) -> None:
        self.changes: list[Change] = []
        self.outcomes: list[Outcome] = []
        self.on_the_way: list[Decision] = []
        self.__dict__.update({k: v for k, v in world.__dict__.items() if k != "engine"})
        self.owner = Owner(parse_scheduler_config(self.configuration), SCHEDULER_NAMES)
        self.changes = [change_of(document) for document in self.objects.values()]

    @property
    def engine(self) -> Engine:  # type: ignore[override]
        return self.owner.engine

    def put(self, document: Document) -> None:
        self.objects[key_of(document)] = document
        self.changes.append(change_of(document))

    def drop(self, key: Key) -> None:
        del self.objects[key]
        self.changes.append(deletion_of(key))

    def take(self) -> tuple[list[Change], list[Outcome]]:
        """What has happened since the last time, to be told."""
        taken = self.changes, self.outcomes
        self.changes, self.outcomes = [], []
        return taken

    def decided(self, result: CycleResult) -> None:
        """The server hears of *result*."""
        self.on_the_way += [each for each in result.decisions if each.kind != "pipeline"]
        for name, status in result.pod_groups.items():
            group = copy.deepcopy(self.objects.get(("PodGroup", name)))
            if group is not None and self.dice.random() < 0.8:
                group["status"] = {"phase": status.phase}
                self.put(group)

    def answer(self) -> None:
        """The server carries out some of what is on its way, and refuses some."""
        for each in list(self.on_the_way):
            fate = self.dice.random()
            if fate < 0.3:
                continue
            self.on_the_way.remove(each)
            pod = self.objects.get(("Pod", each.pod))
            if pod is None:
                continue
            uid = change_of(pod).uid
            if fate < 0.45:
                self.refuse(each, uid)
            elif each.kind == "bind":
                self.put(self.started(pod, each))
                self.outcomes.append(BindDone(each.pod, uid, each.node, "", 0.1))
            else:
                self.outcomes.append(EvictDone(each.pod, uid, each.for_whom))
                self.drop(("Pod", each.pod))

    def refuse(self, each: Decision, uid: str) -> None:
        trouble: Any = self.dice.choice(("refused", "fenced", "gone"))
        if each.kind == "bind":
            self.outcomes.append(BindFailed(each.pod, uid, each.node, "", "no", trouble))
        else:
            self.outcomes.append(EvictFailed(each.pod, uid, each.for_whom, "no", trouble))

    def noise(self) -> None:
        """Something is written that nobody here reads."""
        kind = self.dice.choice(("Pod", "Node", "PodGroup"))
        found = self.some(kind)
        if found is None:
            return
        meta, said = found["metadata"], {"example.com/x": str(self.dice.random())}
        if kind == "Node":
            said = {"hami.io/node-handshake": text_time(self.now)}
        if kind == "PodGroup":
            self.put({**found, "status": {**found["status"], "running": 1}})
            return
        notes = {**meta.get("annotations", {}), **said}
        self.put({**found, "metadata": {**meta, "annotations": notes}})

    def live(self, events: int) -> None:
        """Some things happen."""
        for _ in range(events):
            self.dice.choice((self.noise, self.noise, self.answer, self.happen))()


def random_life(seed: str, share: str = "proportion", *, mix: Mix | None = None) -> Life:
    """A life that begins now."""
    return Life(random_world(seed, share, mix=mix))


def known_of(result: CycleResult) -> tuple[object, ...]:
    """All that a cycle says, to be compared."""
    return (result.decisions, result.pod_groups, result.refusals, result.job_refusals)


def other_config(dice: Random) -> Document:
    """Another configuration."""
    return config(dice.choice(("proportion", "capacity")), volcano=dice.random() < 0.5)


def tell(owner: Owner, life: Life) -> None:
    """Tell *owner* what has happened."""
    changes, outcomes = life.take()
    owner.settle(outcomes)
    owner.take(changes)


def of_kind(result: CycleResult, *kinds: str) -> list[Decision]:
    return [each for each in result.decisions if each.kind in kinds]


def pods_of(decisions: Iterable[Decision]) -> set[str]:
    return {each.pod for each in decisions}
