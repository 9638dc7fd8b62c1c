"""Questions that are objects: who am I, what may I do. Here everybody who has the token may do everything."""

from __future__ import annotations

from typing import Final

from volcano_py.simulator.apiserver.schema.kinds import ServedKind
from volcano_py.simulator.apiserver.security import Keyring, User
from volcano_py.simulator.apiserver.status import Document

REVIEWS: Final = frozenset(
    [
        "selfsubjectaccessreviews",
        "localsubjectaccessreviews",
        "subjectaccessreviews",
        "selfsubjectrulesreviews",
        "selfsubjectreviews",
        "tokenreviews",
    ]
)


def review(kind: ServedKind, question: Document, user: User, keys: Keyring) -> Document:
    """The question with its answer in the status."""
    named = {"kind": kind.kind, "apiVersion": kind.api_version}
    return {**named, **question, "status": _answer(kind.plural, question, user, keys)}


def _answer(plural: str, question: Document, user: User, keys: Keyring) -> Document:
    match plural:
        case "selfsubjectreviews":
            return {"userInfo": _user_info(user)}
        case "selfsubjectrulesreviews":
            anything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
            paths = {"verbs": ["*"], "nonResourceURLs": ["*"]}
            return {"resourceRules": [anything], "nonResourceRules": [paths], "incomplete": False}
        case "tokenreviews":
            known = keys.user_of(str((question.get("spec") or {}).get("token") or ""))
            if known is None:
                return {"authenticated": False, "error": "the token is not known here", "user": {}}
            return {"authenticated": True, "user": _user_info(known)}
        case _:
            return {"allowed": True}


def _user_info(user: User) -> Document:
    return {"username": user.name, "groups": list(user.groups)}
