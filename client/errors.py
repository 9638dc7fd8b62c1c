"""What can go wrong between us and the API server: it refused, or no answer came."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

__all__ = ["ApiError", "Unreachable", "api_error", "status_error"]


class Unreachable(Exception):  # noqa: N818 - a state of the world, said as one
    """No whole answer: refused, reset, timed out, TLS. What was asked may have been carried out."""


class ApiError(Exception):
    """The server answered, with an error.

    Attributes:
        status: HTTP status.
        reason: ``reason`` of the Status object, such as ``Conflict``; empty where the answer was none.
        message: what the server says, for people.
        retry_after_s: seconds the server asks to wait; None where it asks nothing.
        body: the whole answer.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        retry_after_s: float | None = None,
        body: bytes = b"",
        request: str = "",
    ) -> None:
        super().__init__(
            f"{request}: {status} {reason}: {message}" if request else f"{status} {reason}: {message}"
        )
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        self.body = body

    @property
    def is_conflict(self) -> bool:
        """The object is not as the request supposed; read it and decide again."""
        return self.status == 409 and not self.is_exists

    @property
    def is_exists(self) -> bool:
        """An object of this name is there already."""
        return self.status == 409 and self.reason == "AlreadyExists"

    @property
    def is_gone(self) -> bool:
        """The version asked for is no longer kept; list anew."""
        return self.status == 410 or self.reason in {"Expired", "Gone"}

    @property
    def is_missing(self) -> bool:
        """No such object, or no such kind."""
        return self.status == 404

    @property
    def is_another(self) -> bool:
        """A write that named an identity met another object of the same name.

        kube-apiserver answers 422 to a patch with another ``metadata.uid``, and 409 to a precondition.
        """
        return self.status in {409, 422} and "uid" in self.message.lower()

    @property
    def is_passing(self) -> bool:
        """The same request may pass later: who we are, how long it took, how much there is to do, a fault."""
        return self.status in {401, 408, 429} or self.status >= 500

    @property
    def is_busy(self) -> bool:
        """The server has too much to do or isn't ready; the same request may pass later."""
        return self.status in {429, 503}


def api_error(status: int, headers: Mapping[str, str], body: bytes, request: str) -> ApiError:
    """The error in an answer to *request*, whose body is a Status object or anything a proxy says."""
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        said = None
    text = body[:200].decode(errors="replace").strip()
    error = status_error(said if isinstance(said, dict) else {"message": text}, status, body, request)
    wait_s = _retry_after_s(headers.get("Retry-After"))
    error.retry_after_s = error.retry_after_s if wait_s is None else wait_s
    return error


def status_error(said: Mapping[str, Any], status: int, body: bytes, request: str) -> ApiError:
    """The error that a Status object describes; *status* where it names no code."""
    code, details = said.get("code"), said.get("details")
    wait_s = details.get("retryAfterSeconds") if isinstance(details, Mapping) else None
    return ApiError(
        code if isinstance(code, int) and code >= 400 else status,
        str(said.get("reason") or ""),
        str(said.get("message") or ""),
        retry_after_s=float(wait_s) if isinstance(wait_s, int | float) and wait_s > 0 else None,
        body=body,
        request=request,
    )


def _retry_after_s(text: str | None) -> float | None:
    """Seconds of a ``Retry-After`` header, a number or a date; None where it is absent or makes no sense."""
    if not text:
        return None
    if text.isascii() and text.strip().isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds())
