"""Errors as Kubernetes' clients expect them: a ``Status`` object with reason, details, causes and code.

The sentences are those that kubectl prints and that clients look for, so they are part of the interface.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from volcano_py.simulator.apiserver.schema.kinds import Cause, ServedKind

Document = dict[str, Any]


class Refused(Exception):  # noqa: N818 - the word for what the server does
    """A request is answered with an error.

    Attributes:
        code: HTTP status.
        reason: one CamelCase word for programs.
        message: one sentence for people.
        details: of the ``Status``; may be empty.
        headers: of the answer (``Retry-After``).
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Document | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details: Document = details or {}
        self.headers: Mapping[str, str] = headers or {}

    def status(self) -> Document:
        """The body of the answer."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }


def resource_name(kind: ServedKind) -> str:
    """``pods``, ``queues.scheduling.volcano.sh``: how messages name what a request is about."""
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def _details(kind: ServedKind, name: str, noun: str = "") -> Document:
    details: Document = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    details["kind"] = noun or kind.plural
    return details


def not_found(kind: ServedKind, name: str) -> Refused:
    """404: no such object."""
    message = f'{resource_name(kind)} "{name}" not found'
    return Refused(404, "NotFound", message, details=_details(kind, name))


def already_exists(kind: ServedKind, name: str) -> Refused:
    """409: the name is taken."""
    message = f'{resource_name(kind)} "{name}" already exists'
    return Refused(409, "AlreadyExists", message, details=_details(kind, name))


def conflict(kind: ServedKind, name: str, why: str) -> Refused:
    """409: the object is not what the client thinks it is."""
    message = f'Operation cannot be fulfilled on {resource_name(kind)} "{name}": {why}'
    return Refused(409, "Conflict", message, details=_details(kind, name))


MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def forbidden(kind: ServedKind, name: str, why: str, causes: Iterable[Document] = ()) -> Refused:
    """403: an admission rule says no."""
    details = _details(kind, name)
    if causes := list(causes):
        details["causes"] = causes
    return Refused(403, "Forbidden", f'{resource_name(kind)} "{name}" is forbidden: {why}', details=details)


def invalid(kind: ServedKind, name: str, causes: Iterable[Cause]) -> Refused:
    """422: fields that are wrong, all of them."""
    causes = list(causes)
    sentences = [f"{cause.field}: {cause.message}" for cause in causes]
    said = sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"
    details = _details(kind, name, kind.kind)
    details["causes"] = [cause._asdict() for cause in causes]
    called = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return Refused(422, "Invalid", f'{called} "{name}" is invalid: {said}', details=details)


def version_needed(kind: ServedKind, name: str) -> Refused:
    """422: a replacement that does not say which version it replaces."""
    cause = Cause(
        "FieldValueInvalid", "Invalid value: 0: must be specified for an update", "metadata.resourceVersion"
    )
    details = _details(kind, name)
    details["causes"] = [cause._asdict()]
    message = f'{resource_name(kind)} "{name}" is invalid: {cause.field}: {cause.message}'
    return Refused(422, "Invalid", message, details=details)


def bad_request(message: str) -> Refused:
    """400: the request makes no sense, whatever the state is."""
    return Refused(400, "BadRequest", message)


def expired(message: str) -> Refused:
    """410: the version asked for is no longer kept."""
    return Refused(410, "Expired", message)


def too_large_version(asked: int, current: int) -> Refused:
    """504: a version that has not been yet; the client may try again."""
    message = f"Too large resource version: {asked}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return Refused(504, "Timeout", f"Timeout: {message}", details={"causes": [cause], "retryAfterSeconds": 1})


def not_allowed() -> Refused:
    """405: the resource has no such verb."""
    message = "the server does not allow this method on the requested resource"
    return Refused(405, "MethodNotAllowed", message)


def unknown_resource() -> Refused:
    """404: no such path."""
    return Refused(404, "NotFound", "the server could not find the requested resource")


def unsupported_media(accepted: Iterable[str]) -> Refused:
    """415: a body in a format that the resource does not take."""
    message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(
        accepted
    )
    return Refused(415, "UnsupportedMediaType", message)


def success(kind: ServedKind, name: str, uid: str) -> Document:
    """The body that answers a delete."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {**_details(kind, name), "uid": uid},
    }
