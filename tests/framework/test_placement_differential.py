"""The engine places as one would by hand: pod by pod, node by node, nothing kept from before."""

from __future__ import annotations

from random import Random

import pytest

from tests.framework.reference.cards import Share
from tests.framework.reference.clusters import Document, Mix, Scene, scene
from tests.framework.reference.placer import PlainPlacer, Weights
from volcano_py.crds.schedulerconfig import parse_scheduler_config
from volcano_py.scheduler.engine import CycleResult, Engine

NOW = 1767225600.0
Placement = dict[str, tuple[str, tuple[Share, ...]]]
MIXES = {
    "amounts": Mix(wishes=0.0, cards=0.0, volumes=0.0),
    "wishes": Mix(wishes=0.9, cards=0.0, volumes=0.1),
    "cards": Mix(wishes=0.1, cards=0.9, volumes=0.0),
    "all": Mix(),
}


def engine_with(documents: list[Document], weights: Weights, actions: str = "allocate") -> Engine:
    """An engine that knows *documents*, all of them sound."""
    made = Engine(parse_scheduler_config(weights.config(actions)))
    for document in documents:
        assert made.apply(document) == [], document
    return made


def placements(result: CycleResult) -> Placement:
    """Pod -> node and cards of what a cycle binds."""
    return {
        each.pod: (each.node, tuple(Share(each.node, s.card, s.memory_mib, s.cores) for s in each.slices))
        for each in result.decisions
        if each.kind == "bind"
    }


def weights_of(dice: Random) -> Weights:
    """One of the ways in which people weigh scores."""
    return dice.choice(
        (
            Weights(),
            Weights(binpack=0),
            Weights(binpack=5, binpack_memory=3, least=0),
            Weights(binpack=2, binpack_cpu=0, most=2, least=0, spread=1, cards="binpack", card_weight=3),
            Weights(balanced=0, taints=1, pod_affinity=7, cards="spread"),
            Weights(0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        )
    )


def differing(seed: str, mix: Mix) -> tuple[Placement, Placement, Scene]:
    """What the engine does and what is right."""
    dice = Random(seed)
    made, weights = scene(dice, mix), weights_of(dice)
    told = made.documents()
    dice.shuffle(told)
    found = placements(engine_with(told, weights).cycle(NOW))
    return found, PlainPlacer(made, weights).run(), made


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("seed", range(60))
def test_engine_places_as_by_hand(seed: int, mix: str) -> None:
    found, expected, _ = differing(f"{mix} {seed}", MIXES[mix])
    assert found == expected
