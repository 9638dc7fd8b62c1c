"""A scheduler that starts again reads from the records what the one before it knew, whatever the cards."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest

from tests.clusters import Document, group, node, pod
from tests.deviceshare.cards import NOW, card_engine
from volcano_py.plugins.deviceshare.mig import Geometry
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.model.kube.objects import Pod, decode
from volcano_py.simulator.card_shorthand import node_cards

CARDS: dict[str, dict[str, Any]] = {
    "nvidia": {"count": 2, "memory": 20000, "links": {"0-1": 50}},
    "volcano": {"count": 2, "memory": 20000, "family": "volcano"},
    "mig": {"count": 2, "memory": 81920, "mode": "mig", "instances": "a100"},
    "known": {"memory": 81920, "mode": "mig", "family": "volcano", "type": "NVIDIA-A100-SXM4-80GB"},
    "b3": {"vendor": "Ascend910B3", "count": 3, "memory": 65536, "cores": 20, "zones": [0, 0, 1]},
    "c": {"vendor": "Ascend910C", "count": 4, "memory": 65536, "cores": 20},
    "amd": {"vendor": "amd", "memory": 65536, "cores": 304},
}
PARTS = '{"devices":[{"index":"0","capacity":6}],"profiles":{"1g.8gb":"1","3g.24gb":"3","6g.48gb":"6"}}'
ASKS: tuple[dict[str, str], ...] = (
    {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "9000"},
    {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "20"},
    {"nvidia.com/gpu": "1"},
    {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "30000"},
    {"huawei.com/Ascend910B3": "1", "huawei.com/Ascend910B3-memory": "9000"},
    {"huawei.com/Ascend910": "1", "huawei.com/Ascend910-memory": "20000"},
    {"huawei.com/Ascend910C": "2"},
    {"amd.com/gpu": "1", "amd.com/gpumem": "100", "amd.com/gpucores": "33"},
    {"volcano-py.io/accelerator": "1", "volcano-py.io/accelerator-memory": "2000"},
    {"enflame.com/drs-gcu": "3"},
    {"enflame.com/gcu-memory": "7", "enflame.com/gcu-core": "10"},
    {"aws.amazon.com/neuron": "2"},
    {"aws.amazon.com/neuroncore": "1"},
)
BOOKS = ("used_memory", "used_cores", "used_slots", "used_parts")


def nodes() -> list[Document]:
    made = []
    for name, cards in CARDS.items():
        notes, amounts = node_cards(name, cards)
        made.append(node(name, "64", "512Gi", annotations=notes, amounts=amounts))
    notes, devices = {"enflame.com/gcu-drs-capacity": PARTS}, {"aws.amazon.com/neuron": "4"}
    made.append(node("gcu", "64", "512Gi", annotations=notes, amounts={"enflame.com/drs-gcu": "6"}))
    ring = {"node.kubernetes.io/instance-type": "inf2.48xlarge"}
    amounts = devices | {"aws.amazon.com/neuroncore": "8"}
    made.append(node("neuron", "64", "512Gi", labels=ring, amounts=amounts))
    return made


class World:
    """An engine, and the objects that a server would hold."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.objects: dict[str, Document] = {}
        self.count = 0
        self.engine = card_engine(*nodes())

    def step(self) -> None:
        for _ in range(self.dice.randint(1, 6)):
            self.come()
        decisions = self.engine.cycle(NOW).decisions
        decided = books(self.engine)
        for decision in decisions:
            if decision.kind == "bind":
                self.bind(decision.pod, decision.node)
        assert books(self.engine) == decided, "the records say something else than was decided"
        self.engine.settle(NOW)
        for key in self.dice.sample(sorted(self.objects), min(2, len(self.objects))):
            del self.objects[key]
            self.engine.delete("Pod", key)

    def come(self) -> None:
        name = f"p{self.count}"
        self.count += 1
        made = pod(f"{name}-0", name, None, requests=self.dice.choice(ASKS))
        self.objects[f"ml/{name}-0"] = made
        for document in (group(name, phase="Inqueue"), made):
            self.engine.apply(document)

    def bind(self, key: str, where: str) -> None:
        """Write what the bind writes."""
        state, bound = self.engine.state, copy.deepcopy(self.objects[key])
        choice = state.tasks.slices[state.tasks.index[key]]
        decoded = decode(bound)
        assert isinstance(decoded, Pod)
        cards = state.cards.specs[state.nodes.index[where]]
        bound["metadata"].setdefault("annotations", {}).update(
            state.card_source.record(decoded, choice.slices, where, cards, NOW)
        )
        bound["spec"]["nodeName"] = where
        bound["status"] = {"phase": "Running"}
        self.objects[key] = bound
        self.engine.apply(bound)

    def again(self) -> Engine:
        """A new engine that sees the objects in another order."""
        documents = list(self.objects.values())
        self.dice.shuffle(documents)
        groups = [group(it["metadata"]["name"].removesuffix("-0"), phase="Running") for it in documents]
        return card_engine(*nodes(), *groups, *documents)


def books(engine: Engine) -> dict[str, dict[str, list[list[int]]]]:
    state = engine.state
    return {
        name: {
            book: getattr(state.cards, book)[row, : len(state.cards.specs[row])].tolist() for book in BOOKS
        }
        for name, row in state.nodes.index.items()
        if row in state.cards.specs
    }


@pytest.mark.parametrize("seed", range(6))
def test_a_restart_knows_what_was_known(seed: int) -> None:
    world = World(seed)
    for _ in range(8):
        world.step()
        assert books(world.again()) == books(world.engine)
        no_card_is_over_its_room(world.engine)
    used = world.engine.state.cards.used_slots
    kinds = [name for name, row in world.engine.state.nodes.index.items() if used[row].any()]
    assert len(kinds) >= 4, f"seed {seed} used {kinds} only"


def no_card_is_over_its_room(engine: Engine) -> None:
    cards = engine.state.cards
    for row, specs in cards.specs.items():
        for at, spec in enumerate(specs):
            assert cards.used_slots[row, at] <= spec.slots
            if isinstance(spec.cut, Geometry):
                taken = [o for i, o in enumerate(spec.cut.options) if cards.used_parts[row, at] >> i & 1]
                sums = np.array([[o.memory_mib, o.cores] for o in taken]).reshape(-1, 2).sum(axis=0)
                assert [cards.used_memory[row, at], cards.used_cores[row, at]] == sums.tolist()
                bits = [1 << spec.cut.options.index(option) for option in taken]
                assert all(
                    not option.excludes & other
                    for i, option in enumerate(taken)
                    for j, other in enumerate(bits)
                    if i != j
                )
            else:
                assert cards.used_memory[row, at] <= spec.memory_mib
                assert cards.used_cores[row, at] <= spec.cores
