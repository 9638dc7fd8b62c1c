"""Who leads: against a Lease that lives in memory and clocks that the test turns."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from tests.cluster.waiting import until
from volcano_py.client.api import Api, ApiError, Unreachable
from volcano_py.scheduler.cluster.lease import Lease, own_identity


class Clock:
    """Seconds that pass only when the test says so."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class OneObject:
    """The server's side of one Lease: versions, conflicts, and on request no answer at all."""

    def __init__(self) -> None:
        self.stored: dict[str, Any] | None = None
        self.version = 0
        self.down = False
        self.lose_answers = False

    async def get(self, path: str, **_query: str) -> Any:
        self._reach()
        if self.stored is None:
            raise ApiError(404, "NotFound", path)
        return self.stored

    async def post(self, path: str, body: Mapping[str, Any], **_query: str) -> Any:
        self._reach()
        if self.stored is not None:
            raise ApiError(409, "AlreadyExists", path)
        return self._store(body)

    async def put(self, path: str, body: Mapping[str, Any], **_query: str) -> Any:
        self._reach()
        if body["metadata"].get("resourceVersion") != str(self.version):
            raise ApiError(409, "Conflict", path)
        stored = self._store(body)
        if self.lose_answers:
            raise Unreachable("cut")
        return stored

    def _reach(self) -> None:
        if self.down:
            raise Unreachable("refused")

    def _store(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self.version += 1
        self.stored = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return self.stored

    @property
    def spec(self) -> dict[str, Any]:
        assert self.stored is not None
        return cast(dict[str, Any], self.stored["spec"])


def candidate(server: OneObject, name: str, clock: Clock, **more: Any) -> Lease:
    return Lease(cast(Api, server), namespace="n", name="l", identity=name, clock=clock, **more)


def attempt(*candidates: Lease) -> list[bool]:
    for each in candidates:
        asyncio.run(each.attempt())
    return [each.held for each in candidates]


def test_the_first_takes_it_and_the_second_waits() -> None:
    server, clock = OneObject(), Clock()
    a, b = candidate(server, "a", clock), candidate(server, "b", clock)
    assert attempt(a, b) == [True, False]
    assert b.holder == "a"
    assert server.spec["leaseDurationSeconds"] == 15


def test_it_is_taken_over_only_after_its_holder_was_silent_for_the_whole_duration() -> None:
    server, clock = OneObject(), Clock()
    a, b = candidate(server, "a", clock), candidate(server, "b", clock)
    attempt(a, b)
    clock.now += 14.9
    assert attempt(b) == [False]
    clock.now += 0.1
    assert attempt(b) == [True]
    assert (server.spec["holderIdentity"], server.spec["leaseTransitions"]) == ("b", 2)


def test_clocks_that_differ_do_not_matter() -> None:
    server, early, late = OneObject(), Clock(), Clock()
    late.now = 1_000_000.0
    a, b = candidate(server, "a", early), candidate(server, "b", late)
    assert attempt(a, b) == [True, False]


def test_a_leader_that_cannot_renew_ends_before_others_may_begin() -> None:
    server, clock = OneObject(), Clock()
    a, b = candidate(server, "a", clock), candidate(server, "b", clock)
    attempt(a, b)
    server.down = True
    clock.now += 9.9
    assert attempt(a) == [True]
    clock.now += 0.1
    assert not a.held
    server.down = False
    assert attempt(b) == [False]


def test_a_lost_answer_or_a_foreign_change_does_not_end_leadership() -> None:
    server, clock = OneObject(), Clock()
    a = candidate(server, "a", clock)
    attempt(a)
    server.lose_answers = True
    clock.now += 5
    assert attempt(a) == [True]
    server.lose_answers = False
    clock.now += 4
    assert attempt(a) == [True]
    clock.now += 9
    assert a.held


def test_what_is_given_back_is_free_at_once() -> None:
    server, clock = OneObject(), Clock()
    a, b = candidate(server, "a", clock), candidate(server, "b", clock)
    attempt(a, b)
    asyncio.run(a.release())
    assert attempt(b) == [True]
    assert not a.held
    asyncio.run(a.release())
    assert server.spec["holderIdentity"] == "b"


def test_it_bears_the_notes_of_its_holder_beside_those_of_others() -> None:
    server, clock = OneObject(), Clock()
    attempt(candidate(server, "a", clock))
    assert server.stored is not None
    server.stored["metadata"]["annotations"] = {"theirs": "1", "ours": "old"}
    noted = candidate(server, "a", clock, notes={"ours": "new"})
    assert attempt(noted) == [True]
    assert server.stored["metadata"]["annotations"] == {"theirs": "1", "ours": "new"}


def test_only_one_of_two_that_move_at_the_same_moment_wins() -> None:
    async def race(server: OneObject, clock: Clock) -> list[bool]:
        candidates = [candidate(server, name, clock) for name in "abc"]
        server.stored = None
        await asyncio.gather(*(each.attempt() for each in candidates))
        return [each.held for each in candidates]

    assert sum(asyncio.run(race(OneObject(), Clock()))) == 1


def test_run_tells_when_leadership_comes_and_goes() -> None:
    async def course() -> list[str]:
        server, clock, told = OneObject(), Clock(), list[str]()
        lease = candidate(server, "a", clock, retry_s=0.02)
        task = asyncio.create_task(lease.run(lambda: told.append("on"), lambda: told.append("off")))
        await until(lambda: told == ["on"])
        server.down = True
        clock.now += 10.0
        await until(lambda: told == ["on", "off"])
        server.down = False
        await until(lambda: told == ["on", "off", "on"])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert server.spec["holderIdentity"] == ""
        return told

    assert asyncio.run(course()) == ["on", "off", "on"]


def test_times_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="renew"):
        Lease(cast(Api, OneObject()), namespace="n", name="l", renew_s=15.0, duration_s=15.0)


def test_no_two_processes_share_an_identity() -> None:
    assert own_identity() != own_identity()
