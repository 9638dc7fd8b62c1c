"""What is wrong with one object, said by field, so that it can be marked and the others go on."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """One fault of one object.

    ``field`` is a dotted path such as ``spec.containers[0].resources.requests.cpu``; a key that itself
    holds a dot or a slash stands in brackets (``requests[nvidia.com/gpu]``).
    """

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class ObjectError(ValueError):
    """An object the engine can't use; ``problems`` names every fault that was found, at least one."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems


def child(path: str, key: str) -> str:
    """Field path of *key* inside the map at *path*."""
    if not path:
        return key
    return f"{path}[{key}]" if "." in key or "/" in key else f"{path}.{key}"


def not_text(error: UnicodeEncodeError) -> Problem:
    """The fault of an object with half a character in it, which JSON can spell and no text holds."""
    return Problem("", f"holds {error.object[error.start : error.end]!a}, which is no character")
