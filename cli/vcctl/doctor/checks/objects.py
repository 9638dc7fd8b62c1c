"""Objects that count as absent since they can't be read, and such as can be read only with doubts."""

from __future__ import annotations

from collections.abc import Iterator

from volcano_py.cli.vcctl.doctor.finding import Evidence, Finding
from volcano_py.scheduler.model.kube.errors import Problem
from volcano_py.simulator.inspection import doubts


def check(evidence: Evidence) -> Iterator[Finding]:
    """One finding a fault."""
    state = evidence.engine.state
    for name, problems in sorted(state.problems.items()):
        for problem in problems:
            yield Finding("error", name, f"is left out, since it is not valid: {problem}", "mend that field")
    for kind, key, problem in doubts(state):
        yield Finding("warning", f"{kind} {key}", str(problem), _fix(kind, key, problem))


def _fix(kind: str, key: str, problem: Problem) -> str:
    """By its field where one is named; else the object itself is what people have to look at."""
    if problem.field:
        return f"mend {problem.field}"
    namespace, _, name = key.rpartition("/")
    where = f"{kind.lower()} {name} -n {namespace}" if namespace else f"{kind.lower()} {name}"
    return f"see who made it, kubectl describe {where}; if nobody needs it, kubectl delete {where}"
