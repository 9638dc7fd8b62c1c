"""Objects that could not be read, or only some way: a condition on them, and an event.

Rare, so each is read first and written only where it says something else. Nodes, pods and PodGroups get the
condition ``volcano-py.io/Valid``; other kinds have no place for one and get the event alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from volcano_py.scheduler.cluster.api import MERGE, RESOURCES, STRATEGIC, Api, retry_wait_s
from volcano_py.scheduler.cluster.errors import ApiError, Unreachable
from volcano_py.scheduler.cluster.lane import Lane, Pace
from volcano_py.scheduler.cluster.orders import Note, ProblemOrder, Subject
from volcano_py.scheduler.cluster.statuses import Served, StatusStats, Writing, unscheduled
from volcano_py.scheduler.model.kube.times import format_time

VALID: Final = "volcano-py.io/Valid"
UNREADABLE: Final = "Unreadable"
DOUBTFUL: Final = "Doubtful"
SCHEDULER_ERROR: Final = "SchedulerError"
_WITH_CONDITIONS: Final = frozenset({"Node", "Pod", "PodGroup"})
_WIDTH, _PER_SECOND, _BURST = 1, 20.0, 50
_LONGEST: Final = 1000


class Problems:
    """Says on objects what is wrong with them.

    Args:
        fence: False drops what waits.
        clock: epoch seconds.
        note: writes an event.
        writing: the ends of patches of statuses that are on their way.
    """

    def __init__(
        self,
        api: Api,
        fence: Callable[[], bool],
        clock: Callable[[], float],
        note: Callable[[Subject, Note], None],
        writing: Writing,
    ) -> None:
        self._api, self._fence, self._clock, self._note = api, fence, clock, note
        self._writing = writing
        self._served = Served(api)
        self._said: dict[tuple[str, str], ProblemOrder] = {}
        self._tries: dict[tuple[str, str], int] = {}
        self.stats = StatusStats()
        self.lane: Lane[tuple[str, str]] = Lane(_WIDTH, self._write, self._lost, Pace(_PER_SECOND, _BURST))

    def __len__(self) -> int:
        """Objects of which something is said."""
        return len(self._said) + len(self._tries)

    def put(self, order: ProblemOrder) -> None:
        """Say *order*, if it is not what was said of the object last."""
        key = (order.subject.kind, order.subject.key)
        if self._said.get(key) == order or (not order.problems and key not in self._said):
            return
        self._said[key] = order
        if order.problems:
            reason = DOUBTFUL if order.used else UNREADABLE
            self._note(
                order.subject, Note(reason, text_of(order.problems), warning=True, action="Validating")
            )
        if order.subject.kind in _WITH_CONDITIONS:
            self.lane.put(key)

    def forget(self, kind: str, key: str) -> None:
        """The object is gone."""
        self._said.pop((kind, key), None)
        self._tries.pop((kind, key), None)

    def forget_all(self) -> None:
        """Nothing was said of anything: what is wrong is to be ordered anew."""
        self._said.clear()
        self._tries.clear()

    def beside(self, subject: Subject, conditions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """*conditions*, which replace those of a PodGroup, with what is said here of it among them."""
        order = self._said.get((subject.kind, subject.key))
        if order is None or order.subject.uid != subject.uid:
            return conditions
        return changed_conditions({"status": {"conditions": conditions}}, order, self._clock()) or conditions

    async def _write(self, key: tuple[str, str]) -> None:
        order = self._said.get(key)
        if order is None:
            return
        if not self._fence():
            self.forget(*key)
            return
        try:
            await self._say(order)
        except ApiError as error:
            passing = error.is_passing or error.status == 409
            if passing or self._served.may_be_why(key[0], error, self._tries.get(key, 0)):
                self._again(key, error)
            elif error.is_missing:
                self.forget(*key)
            else:
                self._lost(key, error.message)
        except Unreachable as error:
            self._again(key, error)
        else:
            self._tries.pop(key, None)

    def _again(self, key: tuple[str, str], error: Exception) -> None:
        tries = self._tries[key] = self._tries.get(key, 0) + 1
        self.lane.put_later(key, retry_wait_s(tries, error))

    def _lost(self, key: tuple[str, str], why: str) -> None:
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
        sub = "status" if await self._served.has_status(subject.kind) else None
        path = resource.path(subject.namespace, subject.name, sub)
        await self._api.call("PATCH", path, body=body, content_type=MERGE if whole else STRATEGIC)
        self.stats.written += 1


def text_of(problems: tuple[str, ...]) -> str:
    """All problems in one text of bounded length."""
    text = "; ".join(problems)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def changed_conditions(found: dict[str, Any], order: ProblemOrder, now: float) -> list[dict[str, Any]] | None:
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


def _wanted(order: ProblemOrder, now: float) -> list[dict[str, Any]]:
    if not order.problems:
        entry = {"type": VALID, "status": "True", "reason": "Readable", "message": ""}
        return [{**entry, "lastTransitionTime": format_time(now)}]
    text = text_of(order.problems)
    reason = DOUBTFUL if order.used else UNREADABLE
    entry = {"type": VALID, "status": "True" if order.used else "False", "reason": reason, "message": text}
    wanted: list[dict[str, Any]] = [{**entry, "lastTransitionTime": format_time(now)}]
    if order.waits and order.subject.kind == "Pod":
        wanted.append(unscheduled(SCHEDULER_ERROR, text, now, fresh=True))
    return wanted


def _alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one[key] == other.get(key, "") for key in ("type", "status", "reason", "message"))
