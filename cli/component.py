"""What commands that run for long have in common: logs, addresses, and how a bad setting ends them."""

from __future__ import annotations

import errno
import sys
from enum import StrEnum
from typing import Annotated, Final, NoReturn

import typer

from volcano_py.scheduler.probes import Address, AddressError, parse_address

BAD_INPUT: Final = 2
"""Exit status where a setting can't be carried out."""


class LogFormat(StrEnum):
    """How log lines look."""

    json = "json"
    text = "text"


class LogLevel(StrEnum):
    """The least pressing line that is written."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


Format = Annotated[LogFormat, typer.Option("--log-format", help="Form of log lines.")]
Level = Annotated[LogLevel, typer.Option("--log-level", help="Least level of log lines.")]


def address(option: str, text: str) -> Address | None:
    """Where to listen, as *option* says it; None for nowhere. Ends the command if it is no address."""
    try:
        return parse_address(text)
    except AddressError as error:
        fail(f"{option}: {error}")


def failed(error: Exception, *options: str) -> NoReturn:
    """End the command over *error*; where an address is taken, *options* are what names another."""
    taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
    fail(f"{error}; name another by {' or '.join(options)}, 0 for none" if taken else str(error))


def fail(message: str) -> NoReturn:
    """End the command: *message* says what can't be carried out."""
    sys.stderr.write(f"error: {message}\n")
    raise typer.Exit(BAD_INPUT)
