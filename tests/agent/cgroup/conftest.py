"""A host for every version of cgroups that this machine has.

Skipped with the reason where it has none; where there are some, what fails is a failure.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agent.cgroup.hosts import Host, host, root_of


def hosts(version: int) -> Iterator[Host]:
    root, reason = root_of(version)
    if root is None:
        pytest.skip(reason)
    with host(root) as made:
        yield made


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def node(request: pytest.FixtureRequest) -> Iterator[Host]:
    yield from hosts(request.param)


@pytest.fixture
def lists() -> Iterator[Host]:
    """A host whose device files are governed by v1's lists."""
    yield from hosts(1)


@pytest.fixture
def programs() -> Iterator[Host]:
    """A host whose device files are governed by v2's programs."""
    yield from hosts(2)
