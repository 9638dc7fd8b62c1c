"""Each key once, by one worker at a time, and not lost."""

from __future__ import annotations

import asyncio

from volcano_py.controllers.workqueue import WorkQueue


def test_a_key_is_taken_once_however_often_it_was_added() -> None:
    async def course() -> None:
        queue: WorkQueue[str] = WorkQueue()
        for key in ("a", "b", "a"):
            queue.add(key)
        assert [await queue.take(), await queue.take()] == ["a", "b"]
        assert len(queue) == 0

    asyncio.run(course())


def test_a_key_that_is_added_while_it_is_worked_on_comes_again_but_not_before() -> None:
    async def course() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        await queue.take()
        queue.add("a")
        assert (len(queue), queue.is_idle) == (0, False)
        queue.done("a")
        assert await queue.take() == "a"
        queue.done("a")
        assert queue.is_idle

    asyncio.run(course())


def test_of_two_later_times_the_earlier_one_counts() -> None:
    async def course() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add_later("a", 0.01)
        queue.add_later("a", 30)
        assert not queue.is_idle
        async with asyncio.timeout(60):
            assert await queue.take() == "a"
        queue.done("a")
        assert len(queue) == 0
        queue.add_later("b", 30)
        queue.add_later("b", 0.01)
        async with asyncio.timeout(60):
            assert await queue.take() == "b"

    asyncio.run(course())


def test_a_waiting_worker_is_woken() -> None:
    async def course() -> None:
        queue: WorkQueue[str] = WorkQueue()
        workers = [asyncio.create_task(queue.take()) for _ in range(2)]
        await asyncio.sleep(0)
        queue.add("a")
        queue.add("b")
        async with asyncio.timeout(60):
            assert sorted(await asyncio.gather(*workers)) == ["a", "b"]

    asyncio.run(course())
