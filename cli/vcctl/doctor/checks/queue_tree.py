"""Queues that take no jobs since their place in the tree makes no sense."""

from __future__ import annotations

from collections.abc import Iterator

from volcano_py.cli.vcctl.doctor.finding import Evidence, Finding


def check(evidence: Evidence) -> Iterator[Finding]:
    """One finding a queue: a missing parent, or a circle."""
    for queue in evidence.engine.state.queues.live():
        if queue.spec_problem:
            _, _, what = queue.spec_problem.partition(": ")
            yield Finding(
                "error",
                f"Queue {queue.name}",
                f"takes no jobs: {what or queue.spec_problem}",
                f"make the parent, or name another one: kubectl patch queue {queue.name} --type merge "
                """-p '{"spec":{"parent":"root"}}'""",
            )
