"""Ask single checks and scorers of an engine about a pending pod."""

from __future__ import annotations

from typing import Any

from volcano_py.crds.schedulerconfig import load_scheduler_config
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.framework.points import Check, Scorer
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.view import NodeView
from volcano_py.scheduler.model.classes import TaskClass

CONFIG = """\
actions: allocate
tiers:
- plugins: [{name: predicates}, {name: nodeorder}]
"""


def engine_of(*documents: dict[str, Any], config: str = CONFIG) -> Engine:
    """An engine that knows *documents*, all of them sound."""
    made = Engine(load_scheduler_config(config))
    for document in documents:
        problems = made.apply(document)
        assert not problems, problems
    return made


def opened(engine: Engine) -> Session:
    """A session with the engine's plugins."""
    session = Session(engine.state, engine.config, engine.placer, 0.0, engine.gate)
    session.open(engine.plugins)
    return session


def class_of(engine: Engine, pod: str) -> TaskClass:
    """The task class of *pod* ("namespace/name")."""
    state = engine.state
    return state.classes[int(state.tasks.klass[state.tasks.index[pod]])]


def checks(engine: Engine) -> dict[str, Check]:
    """The checks by name."""
    return {entry.call.name: entry.call for entry in opened(engine).points.predicate}


def passing(engine: Engine, pod: str, check: str, *, future: bool = False) -> set[str]:
    """Live nodes that pass *check* for *pod*; all of them where the check does not apply."""
    asked, klass, nodes = checks(engine)[check], class_of(engine, pod), engine.state.nodes
    if not asked.applies(klass):
        return {nodes.names[row] for row in nodes.order.tolist()}
    view = NodeView(engine.state, nodes.order, future=future)
    mask = asked.mask(klass, view)
    return {nodes.names[row] for row in nodes.order[mask].tolist()}


def refused(engine: Engine, pod: str) -> dict[str, str]:
    """Node -> name of the first check that it fails, for nodes that fail any."""
    klass, nodes = class_of(engine, pod), engine.state.nodes
    found: dict[str, str] = {}
    for name in checks(engine):
        for node in {nodes.names[row] for row in nodes.order.tolist()} - passing(engine, pod, name):
            found.setdefault(node, name)
    assert klass is class_of(engine, pod)
    return found


def why(engine: Engine, pod: str, check: str) -> str:
    """The reason that *check* gives for the nodes it refuses."""
    asked, klass, state = checks(engine)[check], class_of(engine, pod), engine.state
    mask = asked.mask(klass, NodeView(state, state.nodes.order))
    return asked.explain(klass, NodeView(state, state.nodes.order[~mask]))


def scorer(engine: Engine, name: str) -> Scorer:
    """The scorer called *name*."""
    return next(e.call for e in opened(engine).points.node_order if e.call.name == name)


def scores(
    engine: Engine, pod: str, name: str, among: set[str] | None = None, *, future: bool = False
) -> dict[str, float]:
    """Node -> score of scorer *name* for *pod*, over *among* (None: all live nodes); {} if not asked."""
    asked, klass, nodes = scorer(engine, name), class_of(engine, pod), engine.state.nodes
    if not asked.applies(klass):
        return {}
    rows = nodes.order
    if among is not None:
        rows = rows[[nodes.names[row] in among for row in rows.tolist()]]
    values = asked.score(klass, NodeView(engine.state, rows, future=future))
    return {nodes.names[row]: float(value) for row, value in zip(rows.tolist(), values, strict=True)}
