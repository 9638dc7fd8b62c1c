"""An engine with a clock, and controllers around it as far as they matter to scheduling.

Plans and scenarios drive this: objects go in, are completed as a cluster's controllers would
(``expand``), and cycles run. What was decided is carried out by ``settle``; nothing happens by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from volcano_py.crds.objects import KINDS
from volcano_py.crds.schedulerconfig import SchedulerConfig
from volcano_py.scheduler.decoding import decode_object
from volcano_py.scheduler.engine import SCHEDULER_NAMES, CycleResult, Engine
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem
from volcano_py.scheduler.model.kube.objects import KubeObject
from volcano_py.scheduler.model.tasks import NOWHERE, Status
from volcano_py.simulator.expand import expand
from volcano_py.simulator.present import Document, identity, part

Identity = tuple[str, str, str]

CLUSTER_SCOPED: Final = frozenset(
    {
        *(kind.__name__ for kind in KubeObject.__subclasses__() if not kind.namespaced),
        *(kind.info.kind for kind in KINDS if kind.info.cluster_scoped),
    }
)
"""Kinds without a namespace."""
SETTLE_S: Final = 1.0
"""How far the clock moves while the cluster carries out what was decided."""


@dataclass(frozen=True, slots=True)
class Applied:
    """One object after the engine has seen it.

    Attributes:
        document: as it was fed in, completed by controllers or made by them.
        problems: what is wrong with it; it counts as absent then.
        known: the engine reads objects of this kind.
    """

    document: Document
    problems: tuple[Problem, ...] = ()
    known: bool = True


class World:
    """See the module.

    Attributes:
        engine: the engine, which lives as long as this does.
        now: the clock, epoch seconds.
    """

    def __init__(self, config: SchedulerConfig, now: float) -> None:
        """An empty cluster at *now*; raises ``ConfigError`` if *config* can't be carried out."""
        self.engine = Engine(config)
        self.now = now
        self._fed: dict[Identity, Document] = {}
        self._made_groups: set[Identity] = set()
        self._staged: list[Document] = []

    def apply(self, documents: Iterable[Document]) -> list[Applied]:
        """Take in *documents* and what controllers make of them."""
        new = list(documents)
        self._staged += [document for document in new if _has_stages(document)]
        replaced = {identity(document) for document in new}
        known = [document for key, document in self._fed.items() if key not in replaced]
        made = _expanded(new, known)
        self._made_groups |= {key for key in map(identity, made) if key[0] == "PodGroup"} - replaced
        return [self._feed(document) for document in made]

    def delete(self, kind: str, name: str, namespace: str | None = None) -> None:
        """The object *kind* *name* is gone, and so is what it owns; unknown ones are fine.

        *namespace* is ``default`` unless told otherwise; kinds without one ignore it.
        """
        space = namespace or "default"
        apart = kind in CLUSTER_SCOPED
        self.engine.delete(kind, name if apart else f"{space}/{name}")
        for key in [
            key for key in self._fed if (key[0], key[2]) == (kind, name) and (apart or key[1] == space)
        ]:
            del self._fed[key]
        self._staged = [job for job in self._staged if identity(job) != (kind, space, name)]
        for key in [key for key, document in self._fed.items() if _is_owned(document, kind, name)]:
            if key in self._fed and (apart or key[1] == space):
                self.delete(key[0], key[2], key[1])

    def cycle(self) -> CycleResult:
        """One cycle; the clock stands still meanwhile."""
        return self.engine.cycle(self.now)

    def settle(self) -> None:
        """The cluster carries out what was decided, which takes a second."""
        self.engine.settle(self.now)
        self.now += SETTLE_S
        for job in self._staged:
            self._next_stage(job)

    def _feed(self, document: Document) -> Applied:
        self._fed[identity(document)] = document
        try:
            item = decode_object(document)
        except ObjectError:
            return Applied(document, tuple(self.engine.apply(document)))
        if item is None:
            return Applied(document, known=False)
        return Applied(document, tuple(self.engine.state.upsert(item)))

    def _next_stage(self, job: Document) -> None:
        """Make the pods of tasks of *job* whose dependencies run by now; the gang grows by them."""
        known = [
            self._as_it_stands(document) if key[0] == "Pod" else document
            for key, document in self._fed.items()
            if key not in self._made_groups
        ]
        for document in _expanded([job], known):
            if document != self._fed.get(identity(document)):
                self._feed(document)

    def _as_it_stands(self, pod: Document) -> Document:
        _, namespace, name = identity(pod)
        state = self.engine.state
        task = state.tasks.index.get(f"{namespace}/{name}", NOWHERE)
        if task == NOWHERE or state.tasks.status[task] != Status.RUNNING:
            return pod
        node = state.nodes.names[state.tasks.node[task]]
        return {**pod, "spec": {**part(pod, "spec"), "nodeName": node}, "status": {"phase": "Running"}}


def _expanded(new: list[Document], known: list[Document]) -> list[Document]:
    """*new*, expanded beside *known* objects."""
    aside = {id(document) for document in known}
    return [d for d in expand([*known, *new], SCHEDULER_NAMES) if id(d) not in aside]


def _is_owned(document: Document, kind: str, name: str) -> bool:
    owners = part(document, "metadata").get("ownerReferences")
    return any(
        isinstance(owner, dict) and (owner.get("kind"), owner.get("name")) == (kind, name)
        for owner in (owners if isinstance(owners, list) else [])
    )


def _has_stages(document: Document) -> bool:
    """A Job in which tasks wait for others."""
    tasks = part(document, "spec").get("tasks")
    tasks = tasks if isinstance(tasks, list) else []
    return document.get("kind") == "Job" and any(
        bool(part(task, "dependsOn")) for task in tasks if isinstance(task, dict)
    )
