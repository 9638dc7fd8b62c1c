"""The agent dies at any step of what it does on disk: the next one finds what was, or what was to be."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from volcano_py.shim.agent.slices import Owner, Slices

STEPS = (
    (os, "fsync"),
    (os, "open"),
    (os, "fchmod"),
    (Path, "mkdir"),
    (Path, "rename"),
    (Path, "replace"),
    (Path, "unlink"),
    (Path, "chmod"),
    (shutil, "rmtree"),
)


class Death(BaseException):
    """As SIGKILL: nothing of the agent's runs after it, least of all a handler of errors."""


def owner(pod: str) -> Owner:
    return Owner(
        id="",
        sequence=0,
        resource="r",
        ids=("GPU-0-1",),
        limited=True,
        pod_uid=pod,
        namespace="n",
        pod=pod,
        container="main",
    )


def make(place: Slices, kept: Owner) -> None:
    place.make(owner("new"))


def rewrite(place: Slices, kept: Owner) -> None:
    place.rewrite(msgspec.structs.replace(kept, confirmed=True))


def remove(place: Slices, kept: Owner) -> None:
    place.remove(kept)


@pytest.mark.parametrize("work", [make, rewrite, remove])
def test_a_slice_is_there_or_not_and_says_one_thing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Callable[[Slices, Owner], None]
) -> None:
    for point in itertools.count():
        folder = tmp_path / str(point)
        place = Slices(folder)
        place.load()
        kept, beside = place.make(owner("kept")), place.make(owner("beside"))
        before = told(folder)
        died = False
        with monkeypatch.context() as patched, dying(patched, point):
            try:
                work(place, kept)
            except Death:
                died = True
        found = told(folder)
        assert beside in found
        changed = [each for each in found if each not in before]
        assert len(found) in (len(before) - 1, len(before), len(before) + 1)
        assert all(each.pod == "new" or each.confirmed for each in changed)
        assert not [path for path in folder.iterdir() if path.name.startswith(".")]
        if not died:
            assert found != before
            return
        assert point < 100


def told(folder: Path) -> list[Owner]:
    """What the next agent reads, which tidies up first."""
    place = Slices(folder)
    place.load()
    return place.all()


@contextmanager
def dying(patched: pytest.MonkeyPatch, point: int) -> Iterator[None]:
    """Die at step *point*: even ones before the step is done, odd ones after."""
    steps = itertools.count()

    def watched(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*words: Any, **more: Any) -> Any:
            if next(steps) == point:
                raise Death
            answer = real(*words, **more)
            if next(steps) == point:
                raise Death
            return answer

        return step

    for where, name in STEPS:
        patched.setattr(where, name, watched(getattr(where, name)))
    yield
