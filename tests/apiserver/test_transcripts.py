"""Whatever is asked, both servers answer alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.apiserver.builders import DEFINITIONS
from tests.apiserver.cases_life import gone
from tests.apiserver.scripts import SCRIPTS
from tests.apiserver.spaces import exists, new_namespace, until
from tests.apiserver.transcripts import play
from volcano_py.client.api import Api


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_answers_are_alike(name: str, configs: Callable[[str], Path], real_without_controllers: Path) -> None:
    steps = SCRIPTS[name]

    async def answers(config: Path) -> list[tuple[int, object]]:
        async with await Api.connect(str(config)) as api:
            space = await new_namespace(api, with_controllers=False)
            try:
                return await play(api, steps, space)
            finally:
                await undefine(api, f"{DEFINITIONS}/things.{space}.example.com")

    real = asyncio.run(answers(real_without_controllers))
    embedded = asyncio.run(answers(configs("embedded")))
    asked = [step for step in steps if step.method not in ("UNTIL", "QUIET")]
    for step, ours, theirs in zip(asked, embedded, real, strict=True):
        assert ours == theirs, f"{step.method} {step.path} {step.body}"


async def undefine(api: Api, definition: str) -> None:
    """Take the kind of a transcript away; discovery would tell other cases of it."""
    if await exists(api, definition):
        await api.delete(definition)
        await until(partial(gone, api, definition))
