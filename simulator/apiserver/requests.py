"""What a request asks for, apart from HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from volcano_py.simulator.apiserver.schema.kinds import Cause, ServedKind
from volcano_py.simulator.apiserver.status import Document, Refused, bad_request

IGNORE: Final = "Ignore"
WARN: Final = "Warn"
STRICT: Final = "Strict"

BACKGROUND: Final = "Background"
FOREGROUND: Final = "Foreground"
ORPHAN: Final = "Orphan"


@dataclass(frozen=True, slots=True)
class Target:
    """The object, or the collection, that a request is about.

    Attributes:
        namespace: "" for objects without one, and for all namespaces.
        name: "" for a collection.
        subresource: "" for the object itself.
    """

    kind: ServedKind
    namespace: str
    name: str = ""
    subresource: str = ""

    def named(self, name: str) -> Target:
        """The object *name* of this collection."""
        return Target(self.kind, self.namespace, name, self.subresource)


@dataclass(frozen=True, slots=True)
class Write:
    """How a write is to be done.

    Attributes:
        manager: who owns the fields that are written.
        validation: what becomes of unknown fields: IGNORE, WARN or STRICT.
        force: apply: take fields that others own.
        user: who asks, for what the server records about it.
        warnings: sentences for the client, filled in on the way.
    """

    manager: str = "unknown"
    dry_run: bool = False
    validation: str = WARN
    force: bool = False
    user: str = "admin"
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Deletion:
    """``DeleteOptions``.

    Attributes:
        grace_s: None where the kind's own period holds.
        policy: BACKGROUND, FOREGROUND, ORPHAN, or "" where nothing was said.
        uid, version: preconditions; "" where there are none.
    """

    grace_s: int | None = None
    policy: str = ""
    uid: str = ""
    version: str = ""


def write_options(query: Mapping[str, str], agent: str, *, apply: bool = False) -> Write:
    """The options of a write in the query string.

    Raises:
        Refused: 400 or 422, for options that there aren't.
    """
    dry_run = query.get("dryRun", "")
    if dry_run not in ("", "All"):
        raise _bad_option(
            "dryRun", f'Unsupported value: ["{dry_run}"]: supported values: "All"', _KIND_OF[apply]
        )
    validation = query.get("fieldValidation") or WARN
    if validation not in (IGNORE, WARN, STRICT):
        listed = '"Ignore", "Strict", "Warn"'
        why = f'Unsupported value: "{validation}": supported values: {listed}'
        raise _bad_option("fieldValidation", why, _KIND_OF[apply])
    manager = query.get("fieldManager", "")
    if apply and not manager:
        raise _bad_option("fieldManager", "Required value: is required for apply patch", _KIND_OF[apply])
    return Write(
        manager=manager or manager_of(agent),
        dry_run=bool(dry_run),
        validation=validation,
        force=query.get("force", "").lower() in ("1", "t", "true"),
    )


_KIND_OF: Final = {True: "PatchOptions", False: "CreateOptions"}


def _bad_option(field: str, message: str, noun: str) -> Refused:
    reason = "FieldValueRequired" if message.startswith("Required") else "FieldValueNotSupported"
    cause = Cause(reason, message, field)
    return Refused(
        422,
        "Invalid",
        f'{noun}.meta.k8s.io "" is invalid: {field}: {message}',
        details={"group": "meta.k8s.io", "kind": noun, "causes": [cause._asdict()]},
    )


def manager_of(agent: str) -> str:
    """The manager that a User-Agent stands for: its first word."""
    return agent.partition("/")[0].partition(" ")[0][:128] or "unknown"


def delete_options(query: Mapping[str, str], body: Document | None) -> tuple[Deletion, bool]:
    """The options of a delete, from the body or else the query; and whether it is a dry run.

    Raises:
        Refused: 400, for options that there aren't.
    """
    options: Document = body if body is not None else {}
    policy = options.get("propagationPolicy") or query.get("propagationPolicy") or ""
    if policy not in ("", BACKGROUND, FOREGROUND, ORPHAN):
        raise bad_request(f'invalid propagationPolicy "{policy}"')
    if options.get("orphanDependents"):
        policy = ORPHAN
    conditions: Document = options.get("preconditions") or {}
    grace = options.get("gracePeriodSeconds")
    if grace is None and query.get("gracePeriodSeconds"):
        grace = _whole(query["gracePeriodSeconds"])
    dry_run = bool(options.get("dryRun") or query.get("dryRun"))
    deletion = Deletion(
        grace_s=grace,
        policy=policy,
        uid=conditions.get("uid") or "",
        version=conditions.get("resourceVersion") or "",
    )
    return deletion, dry_run


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from error
