"""What was said of objects: the one memory of it that a leader has.

Whatever is to be said is compared with this book first, and written into it when it is ordered: its echo on
the object comes later, and only what is new may be said again. A new leader's book begins with what stands on
the objects, whoever wrote it there; so what does not hold any more is taken back.

Used in the engine's thread alone. Those who write (``cluster/writer``) know only what is on its way, and
``cluster/events`` counts how often the same words were told, so that they make one event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from volcano_py.crds.podgroup import PodGroup
from volcano_py.scheduler.cluster.orders import ProblemOrder, Subject
from volcano_py.scheduler.cluster.problems import READABLE, VALID, WITH_CONDITIONS
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.model.kube.objects import Node, Pod
from volcano_py.scheduler.model.resources import Ints
from volcano_py.scheduler.run.owner import Known

__all__ = ["Book", "Holding"]

_TRUE: Final = "True"


class Holding(NamedTuple):
    """What a queue holds: (R,) in base units; ``uid`` says which queue of the name."""

    name: str
    uid: str
    amounts: Ints


class Book:
    """See the module."""

    def __init__(self) -> None:
        self._refused: dict[str, Refusal] = {}
        self._nominated: dict[str, str] = {}
        self._wrong: Mapping[str, ProblemOrder] = {}
        self._held: Mapping[str, Holding] = {}

    def read(self, known: Known) -> None:
        """Begin anew, with what stands on the objects."""
        self._refused, self._held = {}, {}
        pods = (change.item for change in known.get("Pod", {}).values())
        waiting = (pod for pod in pods if isinstance(pod, Pod) and not pod.spec.node_name)
        self._nominated = {
            pod.key: pod.status.nominated_node_name for pod in waiting if pod.status.nominated_node_name
        }
        self._wrong = {_name(order.subject): order for order in _stated_problems(known)}

    def forget(self, pod: str) -> None:
        """The pod is gone: another one of its name was told nothing."""
        self._refused.pop(pod, None)
        self._nominated.pop(pod, None)

    def refusals(self, refused: dict[str, Refusal]) -> Iterator[tuple[str, Refusal, Refusal | None]]:
        """Pods that are *refused* in other words than before: key, refusal, and what they were told last."""
        before, self._refused = self._refused, refused
        for key, refusal in refused.items():
            told = before.get(key)
            if told is not refusal and (told is None or told.message != refusal.message):
                yield key, refusal, told

    def nominations(self, kept: dict[str, str]) -> list[tuple[str, str | None]]:
        """Pods for which room is *kept* (pod -> node) elsewhere than before, or no more, and where it was."""
        before, self._nominated = self._nominated, kept
        return [(key, before.get(key)) for key in {**before, **kept} if before.get(key) != kept.get(key)]

    def holdings(self, held: Iterable[Holding]) -> list[Holding]:
        """Queues that hold something else than before, of all that are there."""
        before, self._held = self._held, {each.name: each for each in held}
        return [each for each in self._held.values() if not _same(before.get(each.name), each)]

    def problems(self, wrong: Mapping[str, ProblemOrder], known: Known) -> list[ProblemOrder]:
        """What is *wrong* ("Kind namespace/name") that was not, and that nothing is wrong any more."""
        before, self._wrong = self._wrong, wrong
        news = [order for name, order in wrong.items() if before.get(name) != order]
        healed = (order.subject for name, order in before.items() if name not in wrong)
        return [*news, *(ProblemOrder(each, ()) for each in healed if each.key in known.get(each.kind, {}))]

    def problem_of(self, kind: str, key: str) -> ProblemOrder | None:
        """What is wrong with an object, as it was said."""
        return self._wrong.get(f"{kind} {key}")


def _same(before: Holding | None, now: Holding) -> bool:
    return before is not None and before.uid == now.uid and np.array_equal(before.amounts, now.amounts)


def _name(subject: Subject) -> str:
    return f"{subject.kind} {subject.key}"


def _stated_problems(known: Known) -> Iterator[ProblemOrder]:
    """What objects say is wrong with them."""
    for kind in sorted(WITH_CONDITIONS):
        for key, change in known.get(kind, {}).items():
            item = change.item
            if not isinstance(item, Node | Pod | PodGroup) or item.status is None:
                continue
            for said in item.status.conditions:
                if said.type == VALID and said.reason != READABLE:
                    namespace, _, name = key.rpartition("/")
                    subject = Subject(kind, namespace, name, change.uid)
                    yield ProblemOrder(subject, (said.message,), used=said.status == _TRUE)
