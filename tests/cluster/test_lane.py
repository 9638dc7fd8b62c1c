"""A fault of ours over one item: the lane goes on, and somebody can find the place."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from volcano_py.scheduler.cluster.lane import Lane


def test_a_fault_over_one_item_is_logged_with_its_traceback_and_the_next_one_is_done() -> None:
    done: list[str] = []
    broken: list[tuple[str, str]] = []

    async def carry_out(item: str) -> None:
        if item == "bad":
            raise KeyError(item)
        done.append(item)

    async def live() -> None:
        lane = Lane(1, carry_out, lambda item, why: broken.append((item, why)))
        for item in ("bad", "good"):
            lane.put(item)
        async with asyncio.timeout(60):
            await lane.quiet()
        await lane.close()

    with capture_logs() as logs:
        asyncio.run(live())
    assert done == ["good"]
    assert broken == [("bad", "KeyError: 'bad'")]
    (line,) = logs
    assert (line["event"], line["log_level"]) == ("order_fault", "error")
    assert isinstance(line["exc_info"], KeyError)
