"""The same requests to two servers, and what differs in their answers.

A transcript is a list of steps; ``play`` sends them and keeps what clients can see, with what must differ
(UIDs, versions, times) named instead of shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from tests.apiserver.spaces import exists, until
from volcano_py.client.api import Api
from volcano_py.client.errors import ApiError

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

_VARIABLE = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "selfLink")
_TIMES = ("lastTransitionTime", "lastPhaseTransitionTime", "startTime")
_IN_OTHER_WORDS = (
    (r" is invalid: \[.*\]", " is invalid: [...]"),
    (r'Invalid value: "(\{.*\})": .*', "<what became of the object>"),
    (r' in scheme "[^"]*"', ""),
    (r"StorageError: .* AdditionalErrorMsg: ", ""),
    (r"(allow it to be set to 1 if it was previously negative\)).*", r"\1"),
    (r"(unrecognized \(must be of type \w+\)).*", r"\1"),
    (r"in record \(\d+\)", "in record"),
    (r"unable to parse requirement: .*", "unable to parse requirement"),
    (r"continue key is not valid: .*", "continue key is not valid"),
    (r"cannot be handled as a (\w+): converting .*|the object is a .*", r"another kind than \1"),
)
"""Sentences for people where the servers need not agree in every word."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


@dataclass(frozen=True)
class Step:
    """One request; ``{ns}`` stands for the transcript's namespace.

    UNTIL waits for an answer to a GET, or, where it has a body, until a POST of that would be taken: a real
    server's admission gets to know of other objects by a watch. QUIET is a POST whose answer is not compared.
    """

    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    query: dict[str, str] | None = None


async def play(api: Api, steps: list[Step], namespace: str) -> list[tuple[int, Any]]:
    """Status and body of every answer, comparable between servers."""
    answers = []
    for step in steps:
        path = step.path.replace("{ns}", namespace)
        body = _filled(step.body, namespace)
        if step.method == "UNTIL":
            await until(partial(exists, api, path) if body is None else partial(_is_taken, api, path, body))
            continue
        if step.method == "QUIET":
            await api.call("POST", path, body=body, content_type=step.content_type)
            continue
        query = {name: text.replace("{ns}", namespace) for name, text in (step.query or {}).items()}
        try:
            said = await api.call(step.method, path, query=query, body=body, content_type=step.content_type)
            answers.append((200, plain(_decoded(said), namespace)))
        except ApiError as error:
            answers.append((error.status, plain(_decoded(error.body), namespace)))
    return answers


async def _is_taken(api: Api, path: str, body: bytes) -> bool:
    try:
        await api.call("POST", path, query={"dryRun": "All"}, body=body)
    except ApiError:
        return False
    return True


def _filled(body: Any, namespace: str) -> Any:
    if body is None or isinstance(body, bytes):
        return body
    return msgspec.json.encode(body).replace(b"{ns}", namespace.encode())


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body.decode()


def plain(value: Any, namespace: str, name: str = "") -> Any:
    """*value* without what is different on every server."""
    if name == "fieldsV1":
        return value
    if name == "causes":
        causes = {msgspec.json.encode(cause): plain(cause, namespace) for cause in value}
        return sorted(causes.values(), key=lambda cause: (str(cause.get("field")), str(cause.get("message"))))
    if isinstance(value, dict):
        return {
            key: plain(below, namespace, key)
            for key, below in value.items()
            if below not in ("", {}, []) and key != "time"
        }
    if name == "managedFields":
        value = sorted(
            value, key=lambda entry: (entry["manager"], entry["operation"], str(entry.get("subresource")))
        )
    if isinstance(value, list):
        return [plain(item, namespace, name) for item in value]
    if name in _VARIABLE or name in _TIMES:
        return f"<{name}>" if value else value
    if isinstance(value, str):
        for pattern, words in _IN_OTHER_WORDS:
            value = re.sub(pattern, words, value, flags=re.DOTALL)
        return _UUID.sub("<uuid>", value.replace(namespace, "{ns}"))
    return value
