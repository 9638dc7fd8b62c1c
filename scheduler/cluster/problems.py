"""Objects that could not be read, or only some way: a condition on them, and an event.

Rare, so each is read first and written only where it says something else. Nodes, pods and PodGroups get the
condition ``volcano-py.io/Valid``; other kinds have no place for one and get the event alone. What was said is
remembered by whoever orders (``run/book``); here is what is on its way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from volcano_py.client.api import MERGE, RESOURCES, STRATEGIC, Api, retry_wait_s
from volcano_py.client.errors import ApiError, Unreachable
from volcano_py.scheduler.cluster.lane import Lane, Pace
from volcano_py.scheduler.cluster.orders import Note, ProblemOrder, Subject
from volcano_py.scheduler.cluster.sayings import Said
from volcano_py.scheduler.cluster.statuses import Served, StatusStats, Writing, unscheduled
from volcano_py.scheduler.model.kube.times import format_time

VALID: Final = "volcano-py.io/Valid"
READABLE: Final = "Readable"
UNREADABLE: Final = "Unreadable"
DOUBTFUL: Final = "Doubtful"
SCHEDULER_ERROR: Final = "SchedulerError"
WITH_CONDITIONS: Final = frozenset({"Node", "Pod", "PodGroup"})
_WIDTH, _PER_SECOND, _BURST = 1, 20.0, 50
_LONGEST: Final = 1000

Key = tuple[str, str]
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Wish:
    """*order* is to be said; that was tried so often."""

    order: ProblemOrder
    tries: int = 0


class Problems:
    """Says on objects what is wrong with them.

    Args:
        fence: False drops what waits.
        clock: epoch seconds.
        note: writes an event.
        writing: the ends of patches of statuses that are on their way.
        dropped: told that something was not said since we do not lead.
    """

    def __init__(
        self,
        api: Api,
        fence: Callable[[], bool],
        clock: Callable[[], float],
        note: Callable[[Subject, Note], None],
        writing: Writing,
        served: Served,
        dropped: Callable[[], None],
    ) -> None:
        self._api, self._fence, self._clock, self._note = api, fence, clock, note
        self._writing, self._served, self._dropped = writing, served, dropped
        self._wishes: dict[Key, _Wish] = {}
        self.stats = StatusStats()
        self.lane: Lane[Key] = Lane(_WIDTH, self._write, self._lost, Pace(_PER_SECOND, _BURST))

    def __len__(self) -> int:
        """Objects of which something is to be said."""
        return len(self._wishes)

    def put(self, order: ProblemOrder) -> None:
        """Say *order*."""
        key = (order.subject.kind, order.subject.key)
        if order.problems:
            reason = DOUBTFUL if order.used else UNREADABLE
            self._note(
                order.subject, Note(reason, text_of(order.problems), warning=True, action="Validating")
            )
        if order.subject.kind in WITH_CONDITIONS:
            waits = key in self._wishes
            self._wishes[key] = _Wish(order)
            if not waits:
                self.lane.put(key)

    def forget(self, kind: str, key: str) -> None:
        """The object is gone."""
        self._wishes.pop((kind, key), None)

    async def _write(self, key: Key) -> None:
        wish = self._wishes.pop(key, None)
        if wish is None:
            return
        if not self._fence():
            self._dropped()
            return
        try:
            await self._say(wish.order)
        except ApiError as error:
            passing = error.is_passing or error.status == 409
            if passing or self._served.may_be_why(key[0], error, wish.tries):
                self._again(key, wish, error)
            elif not error.is_missing:
                self._lost(key, error.message)
        except Unreachable as error:
            self._again(key, wish, error)

    def _again(self, key: Key, wish: _Wish, error: Exception) -> None:
        """Say it later, unless there is something newer by then."""
        if key not in self._wishes:
            self._wishes[key] = _Wish(wish.order, wish.tries + 1)
            self.lane.put_later(key, retry_wait_s(wish.tries + 1, error))

    def _lost(self, key: Key, why: str) -> None:
        self.stats.refused += 1
        self.stats.last_refusal = f"{key[0]} {key[1]}: {why}"

    async def _say(self, order: ProblemOrder) -> None:
        """Read the object, and write where it says something else. Raises as ``Api.call``."""
        subject = order.subject
        resource = RESOURCES[subject.kind]
        writing = self._writing.get((subject.kind, subject.key))
        if writing is not None:
            await writing  # it was put together before this was to be said; later ones say it too
        found = await self._api.get(resource.path(subject.namespace, subject.name))
        if found["metadata"].get("uid") != subject.uid:
            return
        conditions = changed_conditions(found, order, self._clock())
        if conditions is None:
            return
        whole = subject.kind == "PodGroup"  # a merge patch replaces lists
        meta = {"uid": subject.uid}
        if whole:
            meta["resourceVersion"] = found["metadata"]["resourceVersion"]
        body = {"metadata": meta, "status": {"conditions": conditions}}
        sub = "status" if await self._served.has_status(subject.kind, sure=True) else None
        path = resource.path(subject.namespace, subject.name, sub)
        await self._api.call("PATCH", path, body=body, content_type=MERGE if whole else STRATEGIC)
        self.stats.written += 1


def text_of(problems: tuple[str, ...]) -> str:
    """All problems in one text of bounded length."""
    text = "; ".join(problems)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def validity(order: ProblemOrder | None) -> Said:
    """The condition of an object of which *order* holds, or with which nothing is wrong."""
    if order is None or not order.problems:
        return Said(VALID, "True", READABLE, "")
    reason = DOUBTFUL if order.used else UNREADABLE
    return Said(VALID, "True" if order.used else "False", reason, text_of(order.problems))


def amended(conditions: list[Document], order: ProblemOrder, now: float) -> list[Document]:
    """*conditions*, which are to replace those of a PodGroup, with what *order* says of it."""
    return changed_conditions({"status": {"conditions": conditions}}, order, now) or conditions


def changed_conditions(found: Document, order: ProblemOrder, now: float) -> list[Document] | None:
    """What is to be patched into the conditions of *found*, None where they say it already.

    PodGroups get the whole list, the others what changes.
    """
    listed = (found.get("status") or {}).get("conditions")
    old = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    wanted = _wanted(order, now)
    changed = [each for each in wanted if not any(_alike(each, other) for other in old)]
    if not order.problems:
        known = any(each.get("type") == VALID for each in old)
        changed = changed if known else []
    if not changed:
        return None
    if order.subject.kind != "PodGroup":
        return changed
    replaced = {each["type"] for each in changed}
    return [each for each in old if each.get("type") not in replaced] + changed


def _wanted(order: ProblemOrder, now: float) -> list[Document]:
    said = validity(order)
    wanted: list[Document] = [{**said._asdict(), "lastTransitionTime": format_time(now)}]
    if order.problems and order.waits and order.subject.kind == "Pod":
        wanted.append(unscheduled(SCHEDULER_ERROR, said.message, now, fresh=True))
    return wanted


def _alike(one: Document, other: Document) -> bool:
    return all(one[key] == other.get(key, "") for key in ("type", "status", "reason", "message"))
