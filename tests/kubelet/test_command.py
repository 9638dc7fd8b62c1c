"""What a command would do, read at a glance."""

from __future__ import annotations

import math

import pytest

from volcano_py.simulator.kubelet.command import Course, read_command


@pytest.mark.parametrize(
    ("argv", "course"),
    [
        (["sleep", "30"], Course(30.0)),
        (["/bin/sleep", "2m"], Course(120.0)),
        (["sleep", "infinity"], Course(math.inf)),
        (["sh", "-c", "echo hello world; sleep 5 && exit 3"], Course(5.0, 3, ("hello world",))),
        (["/bin/sh", "-ec", "sleep 1\nsleep 2\n"], Course(3.0)),
        (["bash", "-c", "echo 'a; b'; exit"], Course(0.0, 0, ("a; b",))),
        (["true"], Course(0.0)),
    ],
)
def test_commands_that_are_read(argv: list[str], course: Course) -> None:
    assert read_command(argv) == course


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["python", "train.py"],
        ["sleep"],
        ["sleep", "-1"],
        ["sh", "-c", "while true; do sleep 1; done"],
        ["sh", "-c", "sleep 1 | tee x"],
        ["sh", "-c", "sleep 1 &"],
        ["sh", "-c", "echo 'open"],
        ["sh", "script.sh"],
    ],
)
def test_whatever_else_runs_until_it_is_deleted(argv: list[str]) -> None:
    assert math.isinf(read_command(argv).seconds)


def test_what_was_said_before_the_unknown_is_still_said() -> None:
    assert read_command(["sh", "-c", "echo ready; ./serve"]) == Course(math.inf, 0, ("ready",))
