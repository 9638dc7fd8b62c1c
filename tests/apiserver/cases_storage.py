"""Claims that name no storage class."""

from __future__ import annotations

from typing import Any

from tests.apiserver.spaces import until
from volcano_py.client.api import Api
from volcano_py.client.errors import ApiError

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
DEFAULT = "storageclass.kubernetes.io/is-default-class"


def claims(space: str) -> str:
    return f"/api/v1/namespaces/{space}/persistentvolumeclaims"


def claim(name: str, **spec: Any) -> dict[str, Any]:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": {**asked, **spec}}


async def class_of(api: Api, space: str, name: str, **spec: Any) -> str | None:
    made = await api.post(claims(space), claim(name, **spec), dryRun="All")
    found: str | None = made["spec"].get("storageClassName")
    return found


async def claim_without_a_class_gets_the_default(api: Api, space: str) -> None:
    name = f"{space}-default"
    await api.post(claims(space), claim("early"))
    document = {"metadata": {"name": name, "annotations": {DEFAULT: "true"}}, "provisioner": "x.io/y"}
    await api.post(CLASSES, document)
    try:

        async def is_given() -> bool:
            return await class_of(api, space, "late") == name

        await until(is_given)  # a real server hears of new classes a little later
        assert await class_of(api, space, "none", storageClassName="") == ""
        assert await class_of(api, space, "other", storageClassName="other") == "other"
        await api.patch(f"{claims(space)}/early", {"spec": {"storageClassName": name}})
        assert await refusal(api, f"{claims(space)}/early", {"spec": {"storageClassName": "other"}}) == 422
    finally:
        await api.delete(f"{CLASSES}/{name}")


async def refusal(api: Api, path: str, change: dict[str, Any]) -> int:
    try:
        await api.patch(path, change)
    except ApiError as error:
        return error.status
    return 0


CASES = [claim_without_a_class_gets_the_default]
