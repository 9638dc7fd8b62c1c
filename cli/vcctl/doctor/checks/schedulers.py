"""Pods that wait for a scheduler that nobody runs: nobody looks at them, and nobody says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from volcano_py.cli.vcctl.doctor.finding import Document, Evidence, Finding, annotations_of, name_of, some
from volcano_py.crds.annotations import SERVED
from volcano_py.crds.messages import did_you_mean
from volcano_py.crds.times import parse_time_s
from volcano_py.scheduler.engine import SCHEDULER_NAMES

PATIENCE_S: Final = 30.0
"""A pod that nobody has looked at for this long is not being looked at."""
DEFAULT: Final = "default-scheduler"
LEASES: Final = {"kube-scheduler": (DEFAULT,), "volcano-py": SCHEDULER_NAMES}
"""Name of a lease -> the scheduler names that its holder serves, where it does not say; else its own name."""


def check(evidence: Evidence) -> Iterator[Finding]:
    """One finding a scheduler name."""
    alive, dead = _holders(evidence)
    heard = {_component(event) for event in evidence.of("Event")}
    forsaken: dict[str, list[Document]] = {}
    for pod in evidence.of("Pod"):
        name = (pod.get("spec") or {}).get("schedulerName") or DEFAULT
        if name not in alive and name not in heard and _is_forsaken(pod, evidence.server_time):
            forsaken.setdefault(name, []).append(pod)
    for name, pods in sorted(forsaken.items()):
        keys = sorted(map(name_of, pods))
        why = f"the lease of {name} expired" if name in dead else f"no lease and no event of {name} is there"
        known = {*SCHEDULER_NAMES, DEFAULT}
        hint = "" if name in known else did_you_mean(name, sorted(alive | known))
        yield Finding(
            "error",
            f"Pod {keys[0]}",
            f"{_wait(len(pods))} for scheduler {name} ({some(keys)}) and nobody looks there: {why}",
            f"start that scheduler, or set spec.schedulerName of what makes the pods{hint}",
        )


def _wait(pods: int) -> str:
    return "1 pod waits" if pods == 1 else f"{pods} pods wait"


def _is_forsaken(pod: Document, now: float) -> bool:
    """Waits, may be scheduled, and nobody has said a word about it."""
    spec, status, meta = pod.get("spec") or {}, pod.get("status") or {}, pod["metadata"]
    if spec.get("nodeName") or spec.get("schedulingGates") or meta.get("deletionTimestamp"):
        return False
    if status.get("phase", "Pending") != "Pending":
        return False
    if any(condition.get("type") == "PodScheduled" for condition in status.get("conditions") or []):
        return False
    made = meta.get("creationTimestamp")
    return bool(made) and now - parse_time_s(made) > PATIENCE_S


def _holders(evidence: Evidence) -> tuple[set[str], set[str]]:
    """Scheduler names whose lease is held now, and those whose lease has run out."""
    alive: set[str] = set()
    dead: set[str] = set()
    for lease in evidence.of("Lease"):
        spec, name = lease.get("spec") or {}, lease["metadata"]["name"]
        renewed, lasts = spec.get("renewTime"), spec.get("leaseDurationSeconds") or 0
        held = bool(spec.get("holderIdentity")) and bool(renewed)
        fresh = held and parse_time_s(renewed) + lasts >= evidence.server_time
        said = annotations_of(lease).get(SERVED)
        (alive if fresh else dead).update(said.split(",") if said else LEASES.get(name, (name,)))
    return alive, dead - alive


def _component(event: Document) -> str:
    return str(event.get("reportingComponent") or (event.get("source") or {}).get("component") or "")
