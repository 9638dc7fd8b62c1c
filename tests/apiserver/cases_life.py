"""How objects end, and what follows them: pods, owners, namespaces, definitions, budgets."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.apiserver.builders import config_map, pod, thing, thing_definition
from tests.apiserver.cases_watch import events, maps, version_of
from tests.apiserver.spaces import exists, new_namespace, state, until
from volcano_py.client.api import Api
from volcano_py.client.errors import ApiError
from volcano_py.simulator.apiserver.bootstrap import our_definitions


def pods(space: str) -> str:
    return f"/api/v1/namespaces/{space}/pods"


async def make(api: Api, space: str, name: str, **metadata: Any) -> str:
    """A ConfigMap; its UID."""
    document = config_map(name)
    document["metadata"] |= metadata
    return str((await api.post(maps(space), document))["metadata"]["uid"])


def owned_by(name: str, uid: str, **more: Any) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, **more}
    return {"ownerReferences": [owner]}


async def unbound_pod_goes_at_once(api: Api, space: str) -> None:
    start = await version_of(api, pods(space))
    await api.post(pods(space), pod("a"))
    await api.delete(f"{pods(space)}/a")
    assert not await exists(api, f"{pods(space)}/a")
    found = await events(api, pods(space), 3, resourceVersion=start)
    assert [event["type"] for event in found] == ["ADDED", "MODIFIED", "DELETED"]


async def bound_pod_waits_for_its_kubelet(api: Api, space: str) -> None:
    start = await version_of(api, pods(space))
    await api.post(pods(space), pod("a"))
    await api.post(f"{pods(space)}/a/binding", {"metadata": {"name": "a"}, "target": {"name": "n"}})
    await api.delete(f"{pods(space)}/a")
    there = await api.get(f"{pods(space)}/a")
    assert there["metadata"]["deletionGracePeriodSeconds"] == 30
    await api.delete(f"{pods(space)}/a", {"gracePeriodSeconds": 0})
    assert not await exists(api, f"{pods(space)}/a")
    found = await events(api, pods(space), 5, resourceVersion=start)
    assert [event["type"] for event in found] == ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]


async def finished_pod_goes_at_once(api: Api, space: str) -> None:
    await api.post(pods(space), pod("a"))
    await api.post(f"{pods(space)}/a/binding", {"metadata": {"name": "a"}, "target": {"name": "n"}})
    await api.patch(f"{pods(space)}/a/status", {"status": {"phase": "Succeeded"}})
    await api.delete(f"{pods(space)}/a")
    assert not await exists(api, f"{pods(space)}/a")


async def pod_with_finalizer_stays_after_its_grace(api: Api, space: str) -> None:
    document = pod("a")
    document["metadata"]["finalizers"] = ["x.io/y"]
    await api.post(pods(space), document)
    await api.delete(f"{pods(space)}/a")
    there = await api.get(f"{pods(space)}/a")
    assert there["metadata"]["deletionTimestamp"]
    await api.patch(f"{pods(space)}/a", {"metadata": {"finalizers": None}})
    assert not await exists(api, f"{pods(space)}/a")


async def dependants_go_with_their_owner(api: Api, space: str) -> None:
    uid = await make(api, space, "owner")
    middle = await make(api, space, "child", **owned_by("owner", uid))
    await make(api, space, "grandchild", **owned_by("child", middle))
    await api.delete(f"{maps(space)}/owner")
    await until(lambda: gone(api, f"{maps(space)}/grandchild"))
    assert await gone(api, f"{maps(space)}/child")


async def second_owner_keeps_the_dependant(api: Api, space: str) -> None:
    first, second = await make(api, space, "one"), await make(api, space, "two")
    owners = [*owned_by("one", first)["ownerReferences"], *owned_by("two", second)["ownerReferences"]]
    await make(api, space, "child", ownerReferences=owners)
    await api.delete(f"{maps(space)}/one")

    async def one_owner() -> bool:
        child = await api.get(f"{maps(space)}/child")
        return [owner["name"] for owner in child["metadata"]["ownerReferences"]] == ["two"]

    await until(one_owner)


async def orphans_stay_without_their_owner(api: Api, space: str) -> None:
    uid = await make(api, space, "owner")
    await make(api, space, "child", **owned_by("owner", uid))
    await api.delete(f"{maps(space)}/owner", {"propagationPolicy": "Orphan"})
    await until(lambda: gone(api, f"{maps(space)}/owner"))
    child = await api.get(f"{maps(space)}/child")
    assert "ownerReferences" not in child["metadata"]


async def foreground_owner_goes_last(api: Api, space: str) -> None:
    uid = await make(api, space, "owner")
    child = owned_by("owner", uid, blockOwnerDeletion=True)
    await make(api, space, "child", finalizers=["x.io/hold"], **child)
    await api.delete(f"{maps(space)}/owner", {"propagationPolicy": "Foreground"})

    async def child_is_going() -> bool:
        return bool((await api.get(f"{maps(space)}/child"))["metadata"].get("deletionTimestamp"))

    await until(child_is_going)
    assert (await api.get(f"{maps(space)}/owner"))["metadata"]["finalizers"] == ["foregroundDeletion"]
    await api.patch(f"{maps(space)}/child", {"metadata": {"finalizers": None}})
    await until(lambda: gone(api, f"{maps(space)}/owner"))


async def owner_that_never_was_owns_nothing(api: Api, space: str) -> None:
    uid = "00000000-0000-4000-8000-000000000000"
    await make(api, space, "child", **owned_by("nobody", uid))
    await until(lambda: gone(api, f"{maps(space)}/child"))


async def namespace_takes_its_content_along(api: Api, space: str) -> None:
    del space
    name = await new_namespace(api)
    await make(api, name, "a", finalizers=["x.io/hold"])
    await make(api, name, "b")
    answer = await api.delete(f"/api/v1/namespaces/{name}")
    assert answer["status"]["phase"] == "Terminating"
    with pytest.raises(ApiError) as caught:
        await api.post(maps(name), config_map("late"))
    assert caught.value.status == 403
    await until(lambda: gone(api, f"{maps(name)}/b"))
    assert await exists(api, f"/api/v1/namespaces/{name}")
    await api.patch(f"{maps(name)}/a", {"metadata": {"finalizers": None}})
    await until(lambda: gone(api, f"/api/v1/namespaces/{name}"), 60)


async def definition_takes_effect_and_goes_with_its_objects(api: Api, space: str) -> None:
    group = f"{space}.example.com"
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    things = f"/apis/{group}/v1/namespaces/{space}/things"
    await api.post(definitions, thing_definition(group))
    await until(lambda: exists(api, things))
    made = await api.post(things, thing("a", spec={"size": 2, "odd": True}) | {"apiVersion": f"{group}/v1"})
    assert made["spec"] == {"size": 2, "colour": "red"}
    assert made["metadata"]["generation"] == 1
    changed = await api.patch(f"{things}/a", {"spec": {"size": 3}, "status": {"phase": "x"}})
    assert (changed["metadata"]["generation"], changed.get("status")) == (2, None)
    status = await api.patch(f"{things}/a/status", {"spec": {"size": 9}, "status": {"phase": "Up"}})
    assert (status["spec"]["size"], status["status"]) == (3, {"phase": "Up"})
    assert status["metadata"]["generation"] == 2
    with pytest.raises(ApiError) as caught:
        await api.patch(f"{things}/a", {"spec": {"size": 0}})
    assert caught.value.status == 422
    assert "spec.size: Invalid value: 0" in caught.value.message
    scale = await api.get(f"{things}/a/scale")
    assert scale["spec"] == {"replicas": 3}
    scale["spec"]["replicas"] = 4
    await api.put(f"{things}/a/scale", scale)
    assert (await api.get(f"{things}/a"))["spec"]["size"] == 4
    with pytest.raises(ApiError) as caught:
        await api.patch(f"{things}/a", {"spec": {}}, kind="strategic")
    assert caught.value.status == 415
    await api.delete(f"{definitions}/things.{group}")
    await until(lambda: gone(api, f"{definitions}/things.{group}"))
    await until(lambda: gone(api, things))


async def status_of_a_custom_object_is_taken_without_metadata(api: Api, space: str) -> None:
    """So a UID in such a patch guards nothing; a JSON patch can test it, and a version is heeded."""
    queues = "/apis/scheduling.volcano.sh/v1beta1/queues"
    await ensure_definition(api, "queues.scheduling.volcano.sh")
    document = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": space}}
    made = await api.post(queues, document)
    status = f"{queues}/{space}/status"
    patch = {"metadata": {"uid": "other", "labels": {"a": "b"}}, "status": {"state": "Open", "running": 1}}
    written = await api.patch(status, patch)
    assert (written["status"]["state"], written["status"]["running"]) == ("Open", 1)
    assert (written["metadata"]["uid"], written["metadata"].get("labels")) == (made["metadata"]["uid"], None)
    test = {"op": "test", "path": "/metadata/uid", "value": "other"}
    with pytest.raises(ApiError) as caught:
        await api.patch(status, [test, {"op": "replace", "path": "/status/running", "value": 2}], kind="json")
    assert caught.value.status == 422
    version = made["metadata"]["resourceVersion"]
    with pytest.raises(ApiError) as caught:
        await api.patch(status, {"metadata": {"resourceVersion": version}, "status": {"running": 2}})
    assert caught.value.status == 409
    assert (await api.get(f"{queues}/{space}"))["status"]["running"] == 1
    await api.delete(f"{queues}/{space}")


async def undeclared_subresource_is_not_found(api: Api, space: str) -> None:
    groups = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{space}/podgroups"
    await ensure_definition(api, "podgroups.scheduling.volcano.sh")
    with pytest.raises(ApiError) as caught:
        await api.patch(f"{groups}/g/scale", {"spec": {"replicas": 1}})
    assert (caught.value.status, caught.value.reason) == (404, "NotFound")


async def ensure_definition(api: Api, name: str) -> None:
    """Install one of this project's definitions where it is missing."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    if not await exists(api, f"{path}/{name}"):
        wanted = next(one for one in our_definitions() if one["metadata"]["name"] == name)
        await api.post(path, wanted)
    spec = (await api.get(f"{path}/{name}"))["spec"]
    served = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    await until(lambda: exists(api, served))


async def token_of_a_service_account_opens_the_server(api: Api, space: str) -> None:
    path = f"/api/v1/namespaces/{space}/serviceaccounts/default/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = (await api.post(path, request))["status"]["token"]
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token},
    }
    answer = await api.post("/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert answer["status"]["authenticated"] is True
    assert answer["status"]["user"]["username"] == f"system:serviceaccount:{space}:default"


async def healthy_is_what_it_says(api: Api, space: str) -> None:
    del space
    for path in ("/healthz", "/readyz", "/livez"):
        assert (await api.call("GET", path)).strip() == b"ok"
    version = msgspec.json.decode(await api.call("GET", "/version"))
    assert (version["major"], version["minor"]) == ("1", "36")


async def event_is_found_by_its_object(api: Api, space: str) -> None:
    path = f"/api/v1/namespaces/{space}/events"
    for name in ("a", "b"):
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name}.1"},
            "involvedObject": {"kind": "Pod", "namespace": space, "name": name, "apiVersion": "v1"},
            "reason": "Testing",
            "message": "said",
            "type": "Normal",
            "source": {"component": "tester"},
            "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:00:00Z",
            "count": 1,
        }
        await api.post(path, event)
    found = await api.get(path, fieldSelector=f"involvedObject.name=a,involvedObject.namespace={space}")
    assert [item["metadata"]["name"] for item in found["items"]] == ["a.1"]
    same = await api.get(f"/apis/events.k8s.io/v1/namespaces/{space}/events/a.1")
    assert (same["regarding"]["name"], same["note"]) == ("a", "said")


async def lease_is_taken_by_version(api: Api, space: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{space}/leases"
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.123456Z"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": spec}
    made = await api.post(path, lease)
    assert made["spec"]["renewTime"] == "2026-01-01T00:00:00.123456Z"
    made["spec"]["holderIdentity"] = "two"
    await api.put(f"{path}/l", made)
    made["spec"]["holderIdentity"] = "three"
    with pytest.raises(ApiError) as caught:
        await api.put(f"{path}/l", made)
    assert (caught.value.status, caught.value.reason) == (409, "Conflict")


async def budget_holds_its_pods(api: Api, space: str) -> None:
    budgets = f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets"
    budget = {
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"role": "x"}}},
    }
    for name in ("a", "b"):
        document = pod(name)
        document["metadata"]["labels"] = {"role": "x"}
        await api.post(pods(space), document)
        await api.post(f"{pods(space)}/{name}/binding", {"metadata": {"name": name}, "target": {"name": "n"}})
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await api.patch(f"{pods(space)}/{name}/status", {"status": ready}, kind="strategic")
    await api.post(budgets, budget)

    async def counted() -> bool:
        status = (await api.get(f"{budgets}/b")).get("status") or {}
        # A pod without a controller counts as it is; the real server wants minAvailable as a number then.
        return (status.get("currentHealthy"), status.get("disruptionsAllowed")) == (2, 1)

    await until(counted)
    await api.post(f"{pods(space)}/a/eviction", {"metadata": {"name": "a"}})
    with pytest.raises(ApiError) as caught:
        await api.post(f"{pods(space)}/b/eviction", {"metadata": {"name": "b"}})
    assert (caught.value.status, caught.value.reason) == (429, "TooManyRequests")
    assert "violate the pod's disruption budget" in caught.value.message
    there = await api.get(f"{pods(space)}/a")
    reasons = [one.get("reason") for one in there["status"]["conditions"]]
    assert "EvictionByEvictionAPI" in reasons


async def gone(api: Api, path: str) -> bool:
    return await state(api, path) is None


CASES = (
    unbound_pod_goes_at_once,
    bound_pod_waits_for_its_kubelet,
    finished_pod_goes_at_once,
    pod_with_finalizer_stays_after_its_grace,
    dependants_go_with_their_owner,
    second_owner_keeps_the_dependant,
    orphans_stay_without_their_owner,
    foreground_owner_goes_last,
    owner_that_never_was_owns_nothing,
    namespace_takes_its_content_along,
    definition_takes_effect_and_goes_with_its_objects,
    status_of_a_custom_object_is_taken_without_metadata,
    undeclared_subresource_is_not_found,
    token_of_a_service_account_opens_the_server,
    healthy_is_what_it_says,
    event_is_found_by_its_object,
    lease_is_taken_by_version,
    budget_holds_its_pods,
)
