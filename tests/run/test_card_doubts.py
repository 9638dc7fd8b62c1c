"""What only the choice of a card tells is said of the pod as soon as its bind comes back."""

from __future__ import annotations

from tests.clusters import group, node, pod, queue
from tests.run.lives import change_of
from volcano_py.crds.cards.register import CardReport, encode_hami
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
ASKS = {"volcano-py.io/accelerator": "1", "volcano-py.io/accelerator-memory": "5000"}


def test_an_ask_of_any_vendor_that_is_rounded_up_is_told() -> None:
    worker = Worker(
        read_config(CONFIG), ("volcano-py",), Carrier(EvictionStyle(), "me"), Triggers(1.0), Metrics()
    )
    register = encode_hami([CardReport("A-0", 0, 4, 65536, 20, "Ascend910B3")])
    there = node("n0", annotations={"hami.io/node-register-Ascend910B3": register})
    began = [there, queue("default"), group("g"), pod("p", "g", requests=ASKS)]
    orders = worker.turn(Given(1.0, [*map(change_of, began)], may_cycle=True, leads=True)).orders
    (bind,) = [order for order in orders if isinstance(order, BindOrder)]
    back = pod("p", "g", on=bind.node, requests=ASKS, annotations=dict(bind.annotations))
    orders = worker.turn(Given(2.0, [change_of(back)], may_cycle=True, leads=True)).orders
    (told,) = [order for order in orders if isinstance(order, ProblemOrder)]
    assert told.problems == (
        "spec.containers: container main asks 5000Mi and gets template vir05_1c_16g of 16384Mi",
    )
