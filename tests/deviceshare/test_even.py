"""Cards that are cut into parts of one size at a time: Kunlunxin's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.clusters import group, node, pod, queue
from tests.run.lives import change_of
from volcano_py.crds.cards.register import CardReport, encode_hami
from volcano_py.plugins.deviceshare.backends.kunlun import SHARED
from volcano_py.scheduler.cluster.orders import BindOrder, RefusalOrder
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
CARD = CardReport("X-0", 0, 4, 98304, 100, "P800")


def placed(*asks: int, cards: int = 1, count: int = 1) -> tuple[list[str], list[str]]:
    """Records of pods that ask for so many MiB one after another, and why the others wait."""
    worker = Worker(
        read_config(CONFIG), ("volcano-py",), Carrier(EvictionStyle(), "me"), Triggers(1.0), Metrics()
    )
    register = encode_hami([replace(CARD, uuid=f"X-{at}", index=at) for at in range(cards)])
    there = [node("n0", "16", annotations={"hami.io/node-register-xpu": register}), queue("default")]
    worker.turn(Given(1.0, [*map(change_of, there)], may_cycle=True, leads=True))
    records, reasons = [], []
    for at, memory in enumerate(asks):
        limits = {"kunlunxin.com/vxpu": str(count)}
        limits |= {"kunlunxin.com/vxpu-memory": str(memory)} if memory else {}
        made = [group(f"g{at}"), pod(f"p{at}", f"g{at}", requests=limits)]
        for order in worker.turn(Given(2.0 + at, [*map(change_of, made)], may_cycle=True, leads=True)).orders:
            if isinstance(order, BindOrder):
                records.append(order.annotations["hami.io/xpu-devices-allocated"])
            if isinstance(order, RefusalOrder) and order.name == f"p{at}":
                reasons.append(order.message)
    return records, reasons


@pytest.mark.parametrize(
    ("memory", "part"), [(1000, "24576,25"), (24576, "24576,25"), (24577, "49152,50"), (0, "98304,100")]
)
def test_an_ask_gets_the_smallest_part_that_is_enough(memory: int, part: str) -> None:
    assert placed(memory) == ([f"X-0,XPU,{part}:;"], [])


def test_a_card_has_parts_of_one_size() -> None:
    """A half does not stand beside a quarter, though there would be memory; four quarters do."""
    records, (why,) = placed(1000, 30000, 1000, 1000, 1000)
    assert records == ["X-0,XPU,24576,25:;"] * 4
    assert "card" in why


def test_several_parts_are_of_several_cards() -> None:
    assert placed(1000, cards=2, count=2)[0] == ["X-0,XPU,24576,25:X-1,XPU,24576,25:;"]


def test_more_than_a_card_is_told_with_the_nearest() -> None:
    assert "asked 200000Mi, the nearest is a whole card with 98304Mi" in placed(200000)[1][0]


def test_cores_count_too_where_they_can_be_asked_for() -> None:
    assert SHARED.even is not None
    assert SHARED.even.of(1000, 30) == (49152, 50)
    assert SHARED.even.of(1000, 101) is None


@pytest.mark.parametrize(("members", "started"), [(4, 4), (5, 0)])
def test_a_gang_fills_a_card_with_parts_and_no_further(members: int, started: int) -> None:
    worker = Worker(
        read_config(CONFIG), ("volcano-py",), Carrier(EvictionStyle(), "me"), Triggers(1.0), Metrics()
    )
    limits = {"kunlunxin.com/vxpu": "1", "kunlunxin.com/vxpu-memory": "20000"}
    there = node("n0", "16", annotations={"hami.io/node-register-xpu": encode_hami([CARD])})
    pods = [pod(f"p{at}", "g", requests=limits) for at in range(members)]
    documents = [there, queue("default"), group("g", members), *pods]
    orders = worker.turn(Given(1.0, [*map(change_of, documents)], may_cycle=True, leads=True)).orders
    assert len([order for order in orders if isinstance(order, BindOrder)]) == started
