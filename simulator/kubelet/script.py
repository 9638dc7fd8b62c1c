"""What a pretend pod does: read from its annotations, else from its containers' commands.

Annotations begin with ``playground.volcano-py.io/`` and speak of the whole pod; they win over commands. A pod
that says nothing runs until it is deleted and then leaves at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from volcano_py.simulator.kubelet.command import Course, read_command
from volcano_py.simulator.kubelet.podview import Container, PodView

PREFIX: Final = "playground.volcano-py.io/"
START_DELAY: Final = PREFIX + "start-delay-seconds"
RUN: Final = PREFIX + "run-seconds"
EXIT_CODE: Final = PREFIX + "exit-code"
LOG: Final = PREFIX + "log"
IGNORE_SIGTERM: Final = PREFIX + "ignore-sigterm-seconds"
KEYS: Final = (START_DELAY, RUN, EXIT_CODE, LOG, IGNORE_SIGTERM)
_LONGEST_S: Final = 10 * 365 * 86400.0


class ScriptError(ValueError):
    """An annotation of ours that can't be read: the pod fails with this sentence."""


@dataclass(frozen=True, slots=True)
class Script:
    """What happens to a pod, in seconds.

    Attributes:
        start_delay_s: from bound to running.
        run_s: from running to ended; infinite: until it is deleted.
        exit_code: of all containers when they end by themselves; 0 succeeds.
        ignore_sigterm_s: how long it goes on after its deletion was asked for; its grace period at most.
    """

    start_delay_s: float = 0.0
    run_s: float = math.inf
    exit_code: int = 0
    ignore_sigterm_s: float = 0.0


def read_script(pod: PodView) -> Script:
    """The script of *pod*.

    Raises:
        ScriptError: an annotation under our prefix is unknown or has no sensible value.
    """
    notes = pod.metadata.annotations
    ours = [key for key in notes if key.startswith(PREFIX)]
    unknown = sorted(set(ours) - set(KEYS))
    if unknown:
        raise ScriptError(f"unknown annotation {unknown[0]}; known: {', '.join(KEYS)}")
    course = _course(pod)
    own = math.inf if _is_restarted(pod, course) else course.seconds
    if EXIT_CODE in notes:  # it ends: after what its commands sleep, or at once
        own = course.seconds if math.isfinite(course.seconds) else 0.0
    return Script(
        start_delay_s=_seconds(notes, START_DELAY, _init_seconds(pod)),
        run_s=_seconds(notes, RUN, own),
        exit_code=_exit_code(notes, course.exit_code),
        ignore_sigterm_s=_seconds(notes, IGNORE_SIGTERM, 0.0),
    )


def output(pod: PodView, container: Container) -> list[str]:
    """The lines *container* writes when it starts."""
    said = pod.metadata.annotations.get(LOG)
    if said is not None:
        return said.splitlines()
    lines = list(read_command((*container.command, *container.args)).output)
    return lines or [f"container {container.name} on {pod.spec.node_name}: a pretend one, no program runs"]


def _course(pod: PodView) -> Course:
    """The pod ends with its last container, and fails with the first that fails."""
    courses = [read_command((*one.command, *one.args)) for one in pod.spec.containers]
    seconds = max((course.seconds for course in courses), default=math.inf)
    code = next((course.exit_code for course in courses if course.exit_code), 0)
    return Course(seconds, code)


def _is_restarted(pod: PodView, course: Course) -> bool:
    """Whether its policy starts what ends again: such a pod goes on running."""
    policy = pod.spec.restart_policy
    return policy == "Always" or (policy == "OnFailure" and course.exit_code != 0)


def _init_seconds(pod: PodView) -> float:
    ones = [one for one in pod.spec.init_containers if one.restart_policy != "Always"]
    courses = [read_command((*one.command, *one.args)) for one in ones]
    return sum(course.seconds for course in courses if math.isfinite(course.seconds))


def _seconds(notes: Mapping[str, str], key: str, default: float) -> float:
    if key not in notes:
        return default
    try:
        seconds = float(notes[key])
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LONGEST_S:
        raise ScriptError(f"{key}: {notes[key]!r} is not a number of seconds from 0 on")
    return seconds


def _exit_code(notes: Mapping[str, str], default: int) -> int:
    text = notes.get(EXIT_CODE, str(default))
    if not (text.isascii() and text.isdecimal() and int(text) < 256):
        raise ScriptError(f"{EXIT_CODE}: {text!r} is not an exit code, 0 to 255")
    return int(text)
