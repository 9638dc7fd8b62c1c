"""Logs: one JSON object a line, or text for people; each line of a cycle carries its number."""

from __future__ import annotations

import logging
import sys
from typing import Any, TextIO

import structlog


def set_up_logs(*, level: str = "info", form: str = "json", stream: TextIO | None = None) -> None:
    """Write log lines of *level* and above to *stream* (standard error unless told), as "json" or "text".

    Lines of libraries that use ``logging`` come out in the same form, from "warning" on.
    """
    out = stream or sys.stderr
    last: Any = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=out.isatty())
    )
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]
    if form == "json":
        shared.append(structlog.processors.format_exc_info)
    structlog.configure(
        processors=[*shared, last],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        cache_logger_on_first_use=False,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
