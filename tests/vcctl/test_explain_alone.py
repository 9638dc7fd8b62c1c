"""What explain says of groups at the gate, beside the gate's own words."""

from __future__ import annotations

import pytest

from tests.clusters import group, pod
from tests.vcctl.test_explain import of_group
from volcano_py.simulator.kubelet.nodes import CardShape, NodeShape, make_nodes


@pytest.mark.parametrize(("memory", "hidden"), [(81920, True), (16384, False)])
def test_who_waits_at_the_gate_is_told_too_that_no_card_is_that_large(memory: int, hidden: bool) -> None:
    """Two cards of 16Gi; the gate says only that all cards together are too small, or in use."""
    asks = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(memory)}
    least = {"nvidia.com/gpu": "2", "nvidia.com/gpumem": str(2 * memory)}
    held = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "16384"}
    story = of_group(
        "g",
        *make_nodes(2, NodeShape(cards=CardShape(1, memory_mib=16384))),
        *[
            group("r", 2, phase="Running"),
            *(pod(f"r-{i}", "r", on=f"node-{i}", requests=held) for i in (0, 1)),
        ],
        *[group("g", 2, phase="Pending", minResources=least)],
        *(pod(f"g-{i}", "g", requests=asks) for i in (0, 1)),
    )
    gate, *others = story.reasons
    assert gate["code"] in ("ClusterFull", "QueueLimit")
    assert bool(others) == hidden
    says = "2 card memory (the largest card has 16384Mi, asked 81920Mi)"
    assert all(says in one["message"] for one in others)
    assert any("less or other cards asked" in way for way in story.changes) == hidden
