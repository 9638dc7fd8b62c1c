"""The status of a custom object, written to exactly that object and never to a later one of its name.

On the status endpoint of a custom object the server takes the identity in a merge patch for nothing. A JSON
patch can test it. It can't add to a status that is not there: whoever orders says at which version the object
had none, and then that version is tested. Where that was wrong the object is read, and the patch made anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from volcano_py.client.api import RESOURCES, Api
from volcano_py.client.errors import ApiError
from volcano_py.scheduler.cluster.orders import Subject

__all__ = ["StatusPatch", "write_status"]

_UNPROCESSABLE: Final = 422
_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class StatusPatch:
    """Fields of one object's status.

    Attributes:
        fields: by name; a map or list replaces the one that is there.
        blank_at: version of the object when it had no status; "": it has one.
        sub: whether the status has an endpoint of its own.
    """

    subject: Subject
    fields: Mapping[str, Any]
    blank_at: str = ""
    sub: bool = True

    @property
    def operations(self) -> list[dict[str, Any]]:
        """As a JSON patch."""
        same = {"op": "test", "path": "/metadata/uid", "value": self.subject.uid}
        if not self.blank_at:
            added = [
                {"op": "add", "path": f"/status/{name}", "value": it} for name, it in self.fields.items()
            ]
            return [same, *added]
        still = {"op": "test", "path": "/metadata/resourceVersion", "value": self.blank_at}
        return [same, still, {"op": "add", "path": "/status", "value": dict(self.fields)}]

    def stands_in(self, document: Mapping[str, Any]) -> bool:
        """Whether *document* says all of it."""
        status = document.get("status") or {}
        return all(status.get(name) == it for name, it in self.fields.items())


async def write_status(api: Api, wanted: StatusPatch) -> Mapping[str, Any] | None:
    """Write *wanted*, or nothing where another object has the name now. Raises as ``Api.call``.

    Returns:
        The object as it is after that; None where it is another one.
    """
    subject = wanted.subject
    resource = RESOURCES[subject.kind]
    path = resource.path(subject.namespace, subject.name, "status" if wanted.sub else None)
    for left in reversed(range(_TRIES)):
        try:
            after: Mapping[str, Any] = await api.patch(path, wanted.operations, kind="json")
        except ApiError as error:
            if error.status != _UNPROCESSABLE or not left:
                raise
            found = await _found(api, subject)
            if found is None:
                return None
            blank_at = "" if "status" in found else str(found["metadata"]["resourceVersion"])
            if blank_at == wanted.blank_at:
                raise  # the object is as supposed: it is what we say that the server refuses
            wanted = replace(wanted, blank_at=blank_at)
        else:
            return after
    raise AssertionError("the last try returns or raises")


async def _found(api: Api, subject: Subject) -> Mapping[str, Any] | None:
    """The object as it is; None where it is gone. By a list, since the scheduler may not get a Queue."""
    path = RESOURCES[subject.kind].path(subject.namespace)
    listed = (await api.get(path, fieldSelector=f"metadata.name={subject.name}"))["items"]
    return next((each for each in listed if each["metadata"]["uid"] == subject.uid), None)
