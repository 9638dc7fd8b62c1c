"""Containers for the tests: a slice of 1 GiB on a card of 16 GiB, or two of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shim.harness import Probe, Slice, build_library, one_slice


@pytest.fixture(scope="session")
def library() -> Path:
    """The quota library."""
    return build_library()


@pytest.fixture
def pod(library: Path, tmp_path: Path) -> Iterator[Slice]:
    """A container with 1 GiB of the only card."""
    with one_slice(tmp_path, (1024,)) as slice_:
        yield slice_


@pytest.fixture
def pair(library: Path, tmp_path: Path) -> Iterator[Slice]:
    """A container with 1 GiB of each of two cards."""
    with one_slice(tmp_path, (1024, 1024)) as slice_:
        yield slice_


@pytest.fixture
def probe(pod: Slice) -> Iterator[Probe]:
    """A program in the pod, its context made."""
    with pod.probe() as probe:
        yield probe.start()
