"""One key that can't be worked on is the trouble of that key alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from tests.controllers.process import Process
from tests.controllers.server import Server
from volcano_py.controllers.acts import Act, Plan
from volcano_py.controllers.carrier import NotLeading
from volcano_py.controllers.observed import Change
from volcano_py.controllers.reconciler import Limits, Reconciler


class Odd:
    """Stumbles over the key "bad"; notes all others."""

    name = "odd"

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.seen: list[str] = []

    def affected(self, change: Change) -> Iterable[str]:
        return ()

    def plan(self, name: str) -> Plan:
        self.seen.append(name)
        if name == "bad":
            raise self.error
        return Plan()

    def carried_out(self, name: str, act: Act) -> None:
        """Nothing is."""


async def work(odd: Odd, failed: list[str]) -> None:
    """Until the bad key was looked at twice, and a good one after it."""
    limits = Limits(workers=1, first_wait_s=0.001, longest_wait_s=0.002, refused_wait_s=0.002)
    carrier = Process(Server()).carrier
    reconciler = Reconciler([odd], carrier, say=lambda _: None, failed=failed.append, limits=limits)
    for name in ("bad", "good"):
        reconciler.add("odd", name)
    working = asyncio.ensure_future(reconciler.run())
    async with asyncio.timeout(60):
        while not working.done() and not (odd.seen.count("bad") > 1 and "good" in odd.seen):
            await asyncio.sleep(0.001)
    working.cancel()
    await working


def test_a_fault_of_ours_over_one_key_stops_no_other_and_is_tried_again() -> None:
    odd, failed = Odd(KeyError("uid")), list[str]()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work(odd, failed))
    assert odd.seen[:3] == ["bad", "good", "bad"]
    assert set(failed) == {"fault"}


def test_who_leads_no_more_stops_at_once() -> None:
    with pytest.raises(NotLeading):
        asyncio.run(work(Odd(NotLeading()), []))
