"""What a kubelet does next with a pod, and when: a function of the pod, its script and the clock.

Everything is read from the pod itself, so that a kubelet that starts anew goes on where the last one stopped.
Neighbours: ``statuses`` writes what a step means, ``kubelets`` carries it out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Final

from volcano_py.simulator.kubelet.podview import PodView
from volcano_py.simulator.kubelet.script import Script

KILLED: Final = 137
"""Exit code of what had to be killed."""
TERMINATED: Final = 143
"""Exit code of what left when it was asked to."""


class Act(Enum):
    """What a kubelet can do with a pod."""

    ACKNOWLEDGE = "acknowledge"
    START = "start"
    FINISH = "finish"
    REMOVE = "remove"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Step:
    """*act* is due at ``at_s`` (seconds since the epoch; in the past: now). ``exit_code``: of a FINISH."""

    act: Act
    at_s: float = -math.inf
    exit_code: int = 0


@dataclass(slots=True)
class Moments:
    """What this process knows better than the pod, whose times are whole seconds; None: it does not.

    Attributes:
        seen_s: when it was acknowledged.
        started_s: when it began to run.
    """

    seen_s: float | None = None
    started_s: float | None = None


def next_step(pod: PodView, script: Script, own: Moments) -> Step | None:
    """The next step with *pod*, as last read or written; None: nothing, until the pod changes."""
    asked_s = pod.asked_to_leave_s
    if pod.status.phase == "Running":
        return _end(pod, script, own.started_s or pod.running_since_s or 0.0, asked_s)
    if asked_s is not None:
        return Step(Act.REMOVE)
    if pod.has_ended:
        return None
    if script.start_delay_s == 0:
        return Step(Act.START)
    seen_s = own.seen_s or pod.acknowledged_s
    return Step(Act.ACKNOWLEDGE) if seen_s is None else Step(Act.START, seen_s + script.start_delay_s)


def _end(pod: PodView, script: Script, started_s: float, asked_s: float | None) -> Step | None:
    """The natural end of a running pod, or the one it is asked for, whichever comes first."""
    ends_s = started_s + script.run_s
    if asked_s is not None:
        is_stubborn = script.ignore_sigterm_s >= pod.grace_s > 0
        leaves_s = asked_s + min(script.ignore_sigterm_s, pod.grace_s)
        if leaves_s < ends_s:
            return Step(Act.FINISH, leaves_s, KILLED if is_stubborn else TERMINATED)
    return Step(Act.FINISH, ends_s, script.exit_code) if math.isfinite(ends_s) else None
