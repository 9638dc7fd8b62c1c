"""What is wrong with an object, field by field, in words a user can act on.

Turns pydantic's errors into (field path, message) pairs; the models raise their own through
:func:`field_error`. Neighbour: ``base`` (the models' common ground).
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

__all__ = ["did_you_mean", "field_error", "join_path", "shown", "validation_messages"]

_LONGEST_SHOWN: Final = 60
_FIELD: Final = "field"


def field_error(field: str, message: str) -> PydanticCustomError:
    """An error about *field* (a path below the object whose validator raises it; may be empty).

    pydantic knows only the object that the validator belongs to; the rest of the path travels inside.
    """
    text = f"{field}: {message}" if field else message
    return PydanticCustomError(_FIELD, "{text}", {"text": text, "field": field, "message": message})


def validation_messages(err: ValidationError) -> list[tuple[str, str]]:
    """Every fault of one object as (field path, message), in the order of the fields.

    Paths are written ``spec.tasks[0].policies``; a key that itself has dots or slashes stands in brackets
    (``spec.capability[nvidia.com/gpu]``). What a user wrote is cut to a length that fits a message.
    """
    return [(_path(error), _message(error)) for error in err.errors(include_url=False)]


def join_path(parent: str, key: str | int) -> str:
    """The path of *key* below *parent*; numbers are positions in a list."""
    if isinstance(key, int):
        return f"{parent}[{key}]"
    key = key if len(key) <= _LONGEST_SHOWN else f"{key[: _LONGEST_SHOWN - 3]}..."
    if "." in key or "/" in key:
        return f"{parent}[{key}]"
    return f"{parent}.{key}" if parent else key


def shown(value: object) -> str:
    """*value* as a user wrote it in YAML, cut to a length that fits a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` (did you mean "x"?)`` for the closest known word, or nothing; to be put behind a message."""
    close = difflib.get_close_matches(word[:_LONGEST_SHOWN], list(known), n=1, cutoff=0.6)
    return f' (did you mean "{close[0]}"?)' if close else ""


def _path(error: ErrorDetails) -> str:
    path = ""
    for key in error["loc"]:
        if key != "[key]":  # pydantic's mark that the key itself, not its value, is at fault
            path = join_path(path, key)
    field = error.get("ctx", {}).get("field", "") if error["type"] == _FIELD else ""
    if not field or not path:
        return path or field
    return f"{path}{field}" if field.startswith("[") else f"{path}.{field}"


def _message(error: ErrorDetails) -> str:
    words = _WORDS.get(error["type"])
    return words(error.get("ctx", {}), error["input"]) if words else error["msg"]


def _needs(what: str) -> Callable[[dict[str, Any], object], str]:
    return lambda _context, value: f"must be {what}, not {shown(value)}"


def _whole_number(_context: dict[str, Any], value: object) -> str:
    hint = " (drop the quotes)" if isinstance(value, str) and value.lstrip("-").isdigit() else ""
    return f"must be a whole number, not {shown(value)}{hint}"


def _true_or_false(_context: dict[str, Any], value: object) -> str:
    hint = " (drop the quotes)" if value in ("true", "false") else ""
    return f"must be true or false, not {shown(value)}{hint}"


def _text(_context: dict[str, Any], value: object) -> str:
    hint = " (put it in quotes)" if isinstance(value, (bool, int, float)) else ""
    return f"must be a text, not {shown(value)}{hint}"


def _choice(context: dict[str, Any], value: object) -> str:
    expected = str(context["expected"]).replace("'", "")
    known = expected.replace(" or ", ", ").split(", ")
    hint = did_you_mean(value, known) if isinstance(value, str) else ""
    return f"must be {'one of ' if len(known) > 1 else ''}{expected}, not {shown(value)}{hint}"


_WORDS: Final[dict[str, Callable[[dict[str, Any], object], str]]] = {
    _FIELD: lambda context, _value: str(context["message"]),
    "missing": lambda _context, _value: "is required",
    "extra_forbidden": lambda _context, value: f"is unknown (its value is {shown(value)})",
    "value_error": lambda context, _value: str(context["error"]),
    "int_type": _whole_number,
    "int_parsing": _whole_number,
    "int_from_float": _whole_number,
    "bool_type": _true_or_false,
    "string_type": _text,
    "literal_error": _choice,
    "dict_type": _needs("a mapping"),
    "model_type": _needs("a mapping"),
    "model_attributes_type": _needs("a mapping"),
    "list_type": _needs("a list"),
    "invalid_key": lambda _context, _value: "has a key that is not a text (put it in quotes)",
    "greater_than_equal": lambda context, value: f"must be at least {context['ge']}, not {shown(value)}",
    "less_than_equal": lambda context, value: f"must be at most {context['le']}, not {shown(value)}",
    "string_too_long": lambda context, value: (
        f"must have at most {context['max_length']} characters, not {len(str(value))}"
    ),
    "string_too_short": lambda context, _value: f"must have at least {context['min_length']} characters",
    "too_short": lambda context, _value: f"must have at least {context['min_length']} entries",
    "too_long": lambda context, _value: f"must have at most {context['max_length']} entries",
}
