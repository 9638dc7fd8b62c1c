"""A patch and an object into the new object, for the three kinds of patches that know no owners."""

from __future__ import annotations

import copy
from typing import Any, Final

import jsonpatch
import jsonpointer
import msgspec
import yaml

from volcano_py.simulator.apiserver.schema.kinds import ServedKind
from volcano_py.simulator.apiserver.status import Document, Refused, bad_request
from volcano_py.simulator.apiserver.strategic import strategic_patch

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

_ERROR_IN_REQUEST: Final = "the server rejected our request due to an error in our request"
_MOST_OPERATIONS: Final = 10_000


def patch_types(kind: ServedKind) -> tuple[str, ...]:
    """The media types that a kind takes."""
    if kind.custom:
        return JSON_PATCH, MERGE_PATCH, APPLY_PATCH
    return JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH


def read_patch(body: bytes) -> Any:
    """The patch as sent.

    Raises:
        Refused: 400, for what is no JSON.
    """
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise bad_request(f"error decoding patch: {error}") from error


def read_configuration(body: bytes) -> Document:
    """The object of a server-side apply, in YAML or JSON.

    Raises:
        Refused: 400.
    """
    try:
        document = msgspec.json.decode(body) if body.lstrip()[:1] == b"{" else yaml.safe_load(body)
    except (msgspec.DecodeError, yaml.YAMLError) as error:
        raise bad_request(f"error decoding YAML: {error}") from error
    if not isinstance(document, dict):
        raise bad_request("error decoding YAML: the body is not an object")
    return document


def patched(kind: ServedKind, media_type: str, live: Document, patch: Any) -> Document:
    """*live* with the patch; the live object is not changed.

    Raises:
        Refused: 400 or 422 for a patch that can't be carried out.
    """
    if media_type == JSON_PATCH:
        return _json_patched(live, patch)
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: the patch is not an object")
    if media_type == MERGE_PATCH:
        merged: Document = merge_patch(live, patch)
        return merged
    return strategic_patch(live, patch, kind.shape)


def merge_patch(value: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for name, below in patch.items():
        if below is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), below)
    return merged


def _json_patched(live: Document, patch: Any) -> Document:
    if not isinstance(patch, list):
        raise bad_request("error decoding patch: the patch is not a list of operations")
    if len(patch) > _MOST_OPERATIONS:
        raise Refused(
            413,
            "RequestEntityTooLarge",
            f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}, got {len(patch)}",
        )
    try:
        document = jsonpatch.apply_patch(copy.deepcopy(live), patch)
    except jsonpatch.InvalidJsonPatch as error:
        raise bad_request(f"error decoding patch: {error}") from error
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError) as error:
        raise Refused(422, "Invalid", _ERROR_IN_REQUEST) from error
    if not isinstance(document, dict):
        raise Refused(422, "Invalid", _ERROR_IN_REQUEST)
    return document
