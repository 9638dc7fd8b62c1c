"""``serviceaccounts/token``: a bearer token for a service account."""

from __future__ import annotations

from typing import Final

from volcano_py.simulator.apiserver import metadata as meta
from volcano_py.simulator.apiserver.objects import Objects
from volcano_py.simulator.apiserver.requests import Target
from volcano_py.simulator.apiserver.security import Keyring
from volcano_py.simulator.apiserver.status import Document

_HOUR_S: Final = 3600


def issue_token(objects: Objects, keys: Keyring, target: Target, request: Document) -> Document:
    """A TokenRequest with its token.

    Raises:
        Refused: 404.
    """
    account = objects.item(Target(target.kind, target.namespace, target.name))
    spec: Document = request.get("spec") or {}
    seconds = int(spec.get("expirationSeconds") or _HOUR_S)
    end = objects.clock() + seconds
    token = keys.issue(f"system:serviceaccount:{account.namespace}:{account.name}", end)
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": account.name,
            "namespace": account.namespace,
            "creationTimestamp": meta.timestamp(objects.clock()),
        },
        "spec": {"audiences": spec.get("audiences") or ["api"], "expirationSeconds": seconds},
        "status": {"token": token, "expirationTimestamp": meta.timestamp(end)},
    }
