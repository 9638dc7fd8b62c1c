"""What watches don't tell is found by lists."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from tests.controllers.objects import pod_parts
from tests.controllers.process import NAMES
from tests.controllers.server import Server
from volcano_py.client.api import Api
from volcano_py.controllers.intake import Intake, pod_selector
from volcano_py.controllers.observed import KINDS, Change, Observed


def test_an_object_whose_end_no_watch_tells_of_is_found_gone() -> None:
    async def course() -> list[Change]:
        server, seen, changes = Server(), Observed(NAMES), list[Change]()
        server.put("Pod", "p", "ns", "u1", **pod_parts())
        intake = Intake(cast(Api, server), seen, changed=changes.append, scheduler_names=NAMES, every_s=0.02)
        await intake.fill()
        assert intake.complete
        server.remove("Pod", "p", "ns")
        server.put("Queue", "q", spec={})
        refreshing = asyncio.create_task(intake.refresh())
        async with asyncio.timeout(60):
            while seen.pod("ns/p") is not None or seen.queue("q") is None:
                await asyncio.sleep(0.001)
        refreshing.cancel()
        await asyncio.gather(refreshing, return_exceptions=True)
        assert min(intake.lists[kind] for kind in KINDS) >= 1
        return changes

    seen_first, *later = [(change.before is None, change.after is None) for change in asyncio.run(course())]
    assert seen_first == (True, False)
    # Each kind is listed at a time of its own.
    assert sorted(later) == [(False, True), (True, False)]


@pytest.mark.parametrize(
    ("names", "selector"),
    [
        (("volcano-py",), "spec.schedulerName=volcano-py"),
        (("volcano-py", "volcano"), "spec.schedulerName!=default-scheduler"),
        (("volcano", "default-scheduler"), ""),
    ],
)
def test_most_foreign_pods_are_kept_away_by_the_server(names: tuple[str, ...], selector: str) -> None:
    assert pod_selector(names) == selector
