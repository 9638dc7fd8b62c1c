"""Options that belong together, as one value: what several commands share, and what one has many of.

A group is a frozen dataclass whose fields are annotated as options are. A command takes the group where it
would take its options one by one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

Command = Callable[..., None]


def grouped(function: Command) -> Command:
    """*function* as a command that has an option for each field of the groups among its parameters."""
    taken = inspect.signature(function, eval_str=True).parameters.values()
    groups: dict[str, Any] = {each.name: each.annotation for each in taken if is_dataclass(each.annotation)}

    def command(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        function(**given)

    parameters = [
        each for one in taken for each in (_options(groups[one.name]) if one.name in groups else (one,))
    ]
    keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    command.__doc__, command.__name__ = function.__doc__, function.__name__
    command.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined] # typer reads it
    command.__annotations__ = {each.name: each.annotation for each in keyword}
    return command


def _options(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        if field.default is MISSING:
            raise TypeError(f"{group.__name__}.{field.name}: an option of a group needs a default")
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
