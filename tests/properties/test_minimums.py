"""Invariant 3: a queue below its min that asks is served before any queue above its deserved share."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.clusters import Document, engine, group, node, pod, queue

NOW = 1767225600.0
CONFIG = """\
actions: allocate
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins: [{{name: predicates}}, {{name: {share}}}, {{name: nodeorder}}]
"""
SIZE = 8


def cluster(least: int, lends: bool, holds: tuple[int, int], asks: tuple[int, int]) -> list[Document]:
    """One node; queue a has a min; b has none, but a higher priority, and older and more important jobs."""
    classes = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    made: list[Document] = [
        {**classes, "value": 100},
        node("n", cpu=str(SIZE)),
        queue("a", min={"cpu": str(least)}, lendMin=lends),
        queue("b", priority=9),
    ]
    for name, held, asked in zip("ab", holds, asks, strict=True):
        more = {"created": "2024-01-01T00:00:00Z", "priorityClassName": "high"} if name == "b" else {}
        made += [group(f"{name}-runs", 1, name, "Running", **more), group(f"{name}-asks", 1, name, **more)]
        made += [pod(f"{name}-runs-{number}", f"{name}-runs", on="n") for number in range(held)]
        if asked:
            made.append(pod(f"{name}-asks-0", f"{name}-asks", str(asked)))
    return made


@pytest.mark.parametrize("share", ["proportion", "capacity"])
@settings(max_examples=150)
@given(
    st.integers(1, SIZE),
    st.booleans(),
    st.tuples(st.integers(0, 3), st.integers(1, 5)),
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
)
def test_below_the_min_goes_first(
    share: str, least: int, lends: bool, holds: tuple[int, int], asks: tuple[int, int]
) -> None:
    made = cluster(least, lends, holds, asks)
    result = engine(*made, config=CONFIG.format(share=share)).cycle(NOW)
    bound = {each.pod for each in result.decisions}
    fits = sum(holds) + asks[0] <= SIZE and holds[0] + asks[0] <= least
    if fits:
        assert "ml/a-asks-0" in bound
