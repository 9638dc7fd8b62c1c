"""What is kept of a class from job to job and cycle to cycle is never older than the cluster."""

from __future__ import annotations

from tests.clusters import engine, group, node, pod

NOW = 1767225600.0
CONFIG = """\
actions: allocate
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}]
"""


def test_a_class_that_takes_the_row_of_another_has_reasons_of_its_own() -> None:
    """Nothing on any node changes between the two; only the pod that waits is another."""
    known = engine(node("n"), group("a"), pod("a-0", "a", "9"), config=CONFIG)
    assert "Insufficient cpu" in known.cycle(NOW).refusals["ml/a-0"].message
    known.delete("Pod", "ml/a-0")
    known.apply(group("b"))
    known.apply(pod("b-0", "b", "1", nodeSelector={"zone": "z"}))
    assert "Insufficient cpu" not in known.cycle(NOW).refusals["ml/b-0"].message
