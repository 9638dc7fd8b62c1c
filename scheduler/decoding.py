"""A document (as read from YAML or JSON) into the object the state takes in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from volcano_py.crds.messages import validation_messages
from volcano_py.crds.objects import parse_object
from volcano_py.scheduler.model.kube.errors import ObjectError, Problem, not_text
from volcano_py.scheduler.model.kube.objects import decode


def decode_object(document: Mapping[str, Any]) -> object | None:
    """The object in *document*; None for kinds nobody here knows.

    Raises:
        ObjectError: naming every field that is wrong.
    """
    try:
        return _decoded(document)
    except UnicodeEncodeError as error:
        raise ObjectError(not_text(error)) from error


def _decoded(document: Mapping[str, Any]) -> object | None:
    try:
        parsed = parse_object(dict(document))
    except ValidationError as error:
        raise ObjectError(
            *(Problem(path, message) for path, message in validation_messages(error))
        ) from error
    return parsed if parsed is not None else decode(document)
