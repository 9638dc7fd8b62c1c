"""Whatever goes wrong on the way, the end is the same.

People do things in batches. One process sees every event in order and no request fails. The other one gets
events of different objects in any order and misses some until it lists again; its requests fail before or
after they were carried out; it is killed between any two of them and starts with an empty memory. After each
batch both servers must hold the same.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controllers.people import ACTIONS, COMMANDS, GROUP
from tests.controllers.process import Process
from tests.controllers.server import Event, Server
from volcano_py.client.api import ApiError, Unreachable

Step = tuple[str, int, int]


class Killed(BaseException):
    """kill -9 at this very moment."""


def steps(orders: bool) -> st.SearchStrategy[list[Step]]:
    """A batch. Commands come one at a time: whether one is refused depends on when it comes."""
    names = COMMANDS if orders else ACTIONS
    step = st.tuples(st.sampled_from(sorted(names)), st.integers(0, 4), st.integers(0, 5))
    return st.lists(step, min_size=1, max_size=1 if orders else 8)


batches = st.lists(st.one_of(steps(False), steps(False), steps(True)), min_size=1, max_size=6)


class Trouble:
    """Decides, by a seed, what happens to each request.

    Attributes:
        left: faults to come; none while a process starts, since a list that fails is waited for.
    """

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.left = 0

    async def before(self, method: str, _path: str) -> None:
        await asyncio.sleep(0)
        self._maybe(method, answered=False)

    async def after(self, method: str, _path: str) -> None:
        self._maybe(method, answered=True)
        await asyncio.sleep(0)

    def _maybe(self, method: str, *, answered: bool) -> None:
        if self.left <= 0 or self.dice.random() > 0.3:
            return
        self.left -= 1
        fault = self.dice.randrange(4)
        if fault == 0 and method != "GET":
            raise Killed
        if fault == 1 or answered:
            raise Unreachable("cut")
        raise ApiError(429 if fault == 2 else 503, "Busy", "later")


async def calm(server: Server, plan: Sequence[Sequence[Step]]) -> list[Any]:
    process = Process(server)
    await process.start()
    course = []
    for number, batch in enumerate(plan):
        play(server, batch, number)
        await process.settle()
        course.append(picture(server))
    return course


async def troubled(server: Server, plan: Sequence[Sequence[Step]], seed: int) -> list[Any]:
    trouble = Trouble(seed)
    server.before, server.after = trouble.before, trouble.after
    process = await started(server)
    course = []
    for number, batch in enumerate(plan):
        play(server, batch, number)
        faults = trouble.dice.randrange(40)
        while not await survived(process, trouble, faults):
            faults, trouble.left = trouble.left, 0
            process = await started(server)
        course.append(picture(server))
    return course


async def started(server: Server) -> Process:
    process = Process(server)
    await process.start()
    return process


async def survived(process: Process, trouble: Trouble, faults: int) -> bool:
    """Work until nothing is left to do; False if the process was killed."""
    trouble.left = faults
    try:
        await process.settle(muddled(trouble.dice))
        trouble.left = 0
        await process.intake.fill()
        await process.settle()
    except Killed:
        return False
    return True


def muddled(dice: random.Random) -> Callable[[list[Event]], int]:
    """Events of different objects in any order, those of one object in theirs; some are missed."""

    def pick(events: list[Event]) -> int:
        while len(events) > 1 and dice.random() < 0.1:
            events.pop(_first_of(events, dice.randrange(len(events))))
        return _first_of(events, dice.randrange(len(events)))

    return pick


def _first_of(events: list[Event], at: int) -> int:
    """Where the first event of the object is that the one at *at* is about."""
    uid = events[at][2]["metadata"]["uid"]
    return next(number for number, event in enumerate(events) if event[2]["metadata"]["uid"] == uid)


def play(server: Server, batch: Sequence[Step], number: int) -> None:
    for at, (name, *choices) in enumerate(batch):
        (ACTIONS | COMMANDS)[name](server, choices[0], choices[1], number * 100 + at)


def picture(server: Server) -> Any:
    """All that matters of all objects: not versions and times, nor the uids of what controllers made."""
    picture = {}
    for (kind, namespace, name), document in server.objects.items():
        meta = document["metadata"]
        kept = {key: meta.get(key) or {} for key in ("annotations", "labels", "ownerReferences")}
        status = {key: value for key, value in document.get("status", {}).items() if value}
        picture[kind, namespace, name] = (kept, document.get("spec"), status)
    return picture


@settings(max_examples=60, deadline=None)
@given(plan=batches, seed=st.integers(0, 2**32))
def test_the_end_is_the_same_whatever_goes_wrong(plan: list[list[Step]], seed: int) -> None:
    assert asyncio.run(troubled(Server(), plan, seed)) == asyncio.run(calm(Server(), plan))


@pytest.mark.long
@settings(max_examples=3000, deadline=None)
@given(plan=batches, seed=st.integers(0, 2**32))
def test_the_end_is_the_same_whatever_goes_wrong_at_length(plan: list[list[Step]], seed: int) -> None:
    assert asyncio.run(troubled(Server(), plan, seed)) == asyncio.run(calm(Server(), plan))


@settings(max_examples=40, deadline=None)
@given(plan=batches)
def test_every_live_pod_ends_with_a_group_that_exists(plan: list[list[Step]]) -> None:
    server = Server()
    asyncio.run(calm(server, plan))
    groups = server.of("PodGroup")
    for pod in server.of("Pod").values():
        if pod["status"]["phase"] == "Pending":
            assert f"ns/{pod['metadata']['annotations'][GROUP]}" in groups


@settings(max_examples=40, deadline=None)
@given(plan=batches)
def test_a_process_that_starts_on_a_settled_cluster_writes_nothing(plan: list[list[Step]]) -> None:
    async def again(server: Server) -> None:
        process = await started(server)
        await process.settle()

    server = Server()
    asyncio.run(calm(server, plan))
    server.writes.clear()
    asyncio.run(again(server))
    assert server.writes == []
