"""Binds that queue put off what is told of groups, for a while."""

from __future__ import annotations

import asyncio

from volcano_py.scheduler.cluster.burst import Burst


def test_a_burst_lasts_while_binds_queue() -> None:
    ended: list[bool] = []

    async def work() -> None:
        burst = Burst(3600.0, lambda: ended.append(burst.puts_off))
        burst.mark(0)
        assert (burst.puts_off, ended) == (False, [])
        for _ in range(2):
            burst.mark(5)
            burst.mark(1)
            assert burst.puts_off
        assert ended == []
        burst.mark(0)
        burst.mark(0)
        assert (burst.puts_off, ended) == (False, [False])
        burst.mark(1)
        assert burst.puts_off
        burst.close()

    asyncio.run(work())


def test_a_burst_that_lasts_puts_off_nothing_more_until_it_ended() -> None:
    async def work() -> None:
        lasted = asyncio.Event()
        burst = Burst(0.0, lasted.set)
        burst.mark(5)
        await lasted.wait()
        assert not burst.puts_off
        lasted.clear()
        burst.mark(4)
        assert not burst.puts_off
        await next_timers()
        assert not lasted.is_set()
        burst.mark(0)
        assert lasted.is_set()

    asyncio.run(work())


def test_nobody_is_called_before_a_burst_begins_and_after_it_was_closed() -> None:
    called: list[bool] = []

    async def work() -> None:
        burst = Burst(0.0, lambda: called.append(True))
        assert not burst.puts_off
        await next_timers()
        assert called == []
        burst.mark(1)
        burst.close()
        await next_timers()

    asyncio.run(work())
    assert called == []


async def next_timers() -> None:
    """Until every timer that was due by now went off."""
    due = asyncio.Event()
    asyncio.get_running_loop().call_later(0.0, due.set)
    await due.wait()
