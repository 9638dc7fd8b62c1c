"""What a container's command would do, as far as a glance tells: sleep, echo, exit.

Read are ``sleep 30`` and shell lines of ``sleep``, ``echo``, ``true`` and ``exit`` joined by ``;``, ``&&`` or
line ends. Nothing is run; whatever else stands there runs until it is deleted.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash"})
_JOINTS: Final = frozenset({";", "&&", "\n"})
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Course:
    """How a container goes. ``seconds``: until it ends by itself, infinite if it never does."""

    seconds: float = 0.0
    exit_code: int = 0
    output: tuple[str, ...] = ()


ENDLESS: Final = Course(math.inf)


def read_command(argv: Sequence[str]) -> Course:
    """The course of *argv* (command and args together); empty is the image's own program: endless."""
    if not argv:
        return ENDLESS
    if _program(argv[0]) in _SHELLS:
        return _read_shell(argv[1:])
    return _follow([list(argv)])


def _program(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _read_shell(argv: Sequence[str]) -> Course:
    if len(argv) < 2 or not argv[0].startswith("-") or not argv[0].endswith("c"):
        return ENDLESS
    try:
        return _follow(_simple_commands(argv[1]))
    except ValueError:  # an open quote
        return ENDLESS


def _simple_commands(text: str) -> Iterator[list[str]]:
    """The commands of a shell line; one that holds what is not read ends in an unknown word."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    words: list[str] = []
    for token in lexer:
        if token.strip(" ") in _JOINTS or not token.strip(";\n"):
            yield words
            words = []
        elif not token.strip(";&|()<>\n"):
            yield ["?"]
        else:
            words.append(token)
    yield words


def _follow(commands: Iterator[list[str]] | list[list[str]]) -> Course:
    course = Course()
    for words in commands:
        if not words:
            continue
        match _program(words[0]), words[1:]:
            case "sleep", [amount]:
                course = replace(course, seconds=course.seconds + _seconds(amount))
            case "echo", said:
                course = replace(course, output=(*course.output, " ".join(said)))
            case "true" | ":", _:
                continue
            case "exit", []:
                return course
            case "exit", [code] if code.isdecimal():
                return replace(course, exit_code=int(code) % 256)
            case _:
                return replace(course, seconds=math.inf)
    return course


def _seconds(amount: str) -> float:
    """``30``, ``0.5``, ``2m``; what is no number (``infinity``) never ends."""
    number, unit = (amount[:-1], amount[-1]) if amount[-1:] in _UNITS else (amount, "s")
    try:
        seconds = float(number) * _UNITS[unit]
    except ValueError:
        return math.inf
    return seconds if seconds >= 0 else math.inf
