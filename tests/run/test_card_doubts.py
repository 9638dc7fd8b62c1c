"""What only the choice of a card tells is said of the pod as soon as its bind comes back."""

from __future__ import annotations

import pytest

from tests.clusters import group, node, pod, queue
from tests.run.lives import change_of
from volcano_py.crds.cards.register import CardReport, MigProfile, encode_hami
from volcano_py.scheduler.cluster.orders import BindOrder, ProblemOrder
from volcano_py.scheduler.run.carry import Carrier, EvictionStyle
from volcano_py.scheduler.run.metrics import Metrics
from volcano_py.scheduler.run.reload import read_config
from volcano_py.scheduler.run.triggers import Triggers
from volcano_py.scheduler.run.worker import Given, Worker

CONFIG = """\
actions: enqueue, allocate
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: proportion}, {name: deviceshare}]
"""
ANY = {"volcano-py.io/accelerator": "1", "volcano-py.io/accelerator-memory": "5000"}
GPU = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "5000"}
CHIP = CardReport("A-0", 0, 4, 65536, 20, "Ascend910B3")
CUT = (MigProfile("3g.40gb", 40192, 43, 4, ((0, 4), (4, 4))),)
MIG = CardReport("GPU-0", 0, 2, 81559, 100, "NVIDIA A100", mode="mig", mig=CUT)


@pytest.mark.parametrize(
    ("key", "card", "asks", "given"),
    [
        ("hami.io/node-register-Ascend910B3", CHIP, ANY, "template vir05_1c_16g of 16384Mi"),
        ("hami.io/node-nvidia-register", MIG, GPU, "MIG instance 3g.40gb of 40192Mi"),
    ],
)
def test_what_is_rounded_up_by_the_card_that_was_chosen_is_told(
    key: str, card: CardReport, asks: dict[str, str], given: str
) -> None:
    worker = Worker(
        read_config(CONFIG), ("volcano-py",), Carrier(EvictionStyle(), "me"), Triggers(1.0), Metrics()
    )
    there = node("n0", annotations={key: encode_hami([card])})
    began = [there, queue("default"), group("g"), pod("p", "g", requests=asks)]
    orders = worker.turn(Given(1.0, [*map(change_of, began)], may_cycle=True, leads=True)).orders
    (bind,) = [order for order in orders if isinstance(order, BindOrder)]
    back = pod("p", "g", on=bind.node, requests=asks, annotations=dict(bind.annotations))
    orders = worker.turn(Given(2.0, [change_of(back)], may_cycle=True, leads=True)).orders
    (told,) = [order for order in orders if isinstance(order, ProblemOrder)]
    assert told.problems == (f"spec.containers: container main asks 5000Mi and gets {given}",)
