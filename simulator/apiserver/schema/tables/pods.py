"""Rows of pods: the one-word state that people read first.

Source: the behaviour of ``kubectl get pods`` against a real server (tests compare the two).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from volcano_py.simulator.apiserver.schema.tables.ages import age, seconds_of
from volcano_py.simulator.apiserver.schema.tables.columns import (
    AGE,
    NAME,
    NONE,
    Column,
    Document,
    field,
    text,
    wide,
)

_FINAL = ("Succeeded", "Failed")


class State(NamedTuple):
    """What the columns Ready, Status and Restarts say.

    Attributes:
        last: When a container last ended before it was started anew; "" for never.
    """

    ready: int
    total: int
    word: str
    restarts: int
    last: str


def state(pod: Document) -> State:
    """The pod's state in a word, with its containers counted."""
    inits = {one["name"]: one for one in field(pod, "spec", "initContainers", default=())}
    sidecars = {name for name, one in inits.items() if one.get("restartPolicy") == "Always"}
    total = len(field(pod, "spec", "containers", default=())) + len(sidecars)
    word = field(pod, "status", "reason") or field(pod, "status", "phase", default="")
    if _condition(pod, "PodScheduled").get("reason") == "SchedulingGated":
        word = "SchedulingGated"
    initial = _initializing(pod, inits, sidecars)
    if initial.word and _condition(pod, "Initialized").get("status") != "True":
        return _ending(pod, initial._replace(total=total))
    return _ending(pod, _running(pod, word, initial)._replace(total=total))


def _condition(pod: Document, name: str) -> Mapping[str, Any]:
    conditions = field(pod, "status", "conditions", default=())
    return next((one for one in conditions if one.get("type") == name), {})


def _initializing(pod: Document, inits: Mapping[str, Any], sidecars: set[str]) -> State:
    """Where init containers stand; an empty word once all have done their part."""
    ready = restarts = sidecar_restarts = 0
    last = sidecar_last = ""
    for position, status in enumerate(field(pod, "status", "initContainerStatuses", default=())):
        restarts += status.get("restartCount", 0)
        last = max(last, _last_end(status))
        if status["name"] in sidecars:
            sidecar_restarts += status.get("restartCount", 0)
            sidecar_last = max(sidecar_last, _last_end(status))
        ended = field(status, "state", "terminated")
        if ended is not None and not ended.get("exitCode", 0):
            continue
        if status["name"] in sidecars and status.get("started"):
            ready += bool(status.get("ready"))
            continue
        return State(ready, 0, _init_word(status, position, len(inits)), restarts, last)
    return State(ready, 0, "", sidecar_restarts, sidecar_last)


def _init_word(status: Document, position: int, count: int) -> str:
    ended = field(status, "state", "terminated")
    if ended is not None:
        return f"Init:{ended.get('reason') or _exit(ended)}"
    waiting = field(status, "state", "waiting", "reason", default="")
    return f"Init:{waiting}" if waiting and waiting != "PodInitializing" else f"Init:{position}/{count}"


def _exit(ended: Document) -> str:
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _last_end(status: Document) -> str:
    return str(field(status, "lastState", "terminated", "finishedAt", default=""))


def _running(pod: Document, word: str, initial: State) -> State:
    ready, restarts, last, has_running = initial.ready, initial.restarts, initial.last, False
    for status in reversed(field(pod, "status", "containerStatuses", default=[])):
        restarts += status.get("restartCount", 0)
        last = max(last, _last_end(status))
        ended = field(status, "state", "terminated")
        if waiting := field(status, "state", "waiting", "reason"):
            word = waiting
        elif ended is not None:
            word = ended.get("reason") or _exit(ended)
        elif status.get("ready") and field(status, "state", "running") is not None:
            has_running, ready = True, ready + 1
    if word == "Completed" and has_running:
        word = "Running" if _condition(pod, "Ready").get("status") == "True" else "NotReady"
    return State(ready, 0, word, restarts, last)


def _ending(pod: Document, found: State) -> State:
    if not field(pod, "metadata", "deletionTimestamp"):
        return found
    if field(pod, "status", "reason") == "NodeLost":
        return found._replace(word="Unknown")
    return found if field(pod, "status", "phase") in _FINAL else found._replace(word="Terminating")


def _ready(pod: Document, now: float) -> str:
    found = state(pod)
    return f"{found.ready}/{found.total}"


def _word(pod: Document, now: float) -> str:
    return state(pod).word


def _restarts(pod: Document, now: float) -> str:
    found = state(pod)
    if not found.restarts or not found.last or now < seconds_of(found.last):
        return str(found.restarts)
    return f"{found.restarts} ({age(found.last, now)} ago)"


def _address(pod: Document, now: float) -> str:
    addresses = field(pod, "status", "podIPs", default=())
    return (addresses[0].get("ip") if addresses else field(pod, "status", "podIP")) or NONE


def _gates(pod: Document, now: float) -> str:
    gates = field(pod, "spec", "readinessGates", default=())
    met = sum(_condition(pod, gate["conditionType"]).get("status") == "True" for gate in gates)
    return f"{met}/{len(gates)}" if gates else NONE


def row_conditions(pod: Document) -> Iterator[dict[str, str]]:
    """Tells clients that a pod is over, so that they may leave its row out."""
    told = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
    phase = field(pod, "status", "phase")
    if phase in told:
        yield {"type": "Completed", "status": "True", "reason": phase, "message": told[phase]}


COLUMNS = [
    NAME,
    Column("Ready", _ready),
    Column("Status", _word),
    Column("Restarts", _restarts),
    AGE,
    wide("IP", _address),
    wide("Node", text("spec", "nodeName", default=NONE)),
    wide("Nominated Node", text("status", "nominatedNodeName", default=NONE)),
    wide("Readiness Gates", _gates),
]
