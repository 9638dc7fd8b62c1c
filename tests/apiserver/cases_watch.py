"""Lists and watches, as clients that follow a cluster need them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from tests.apiserver.builders import config_map, pod
from tests.apiserver.spaces import WAIT_S
from volcano_py.client.api import Api
from volcano_py.client.errors import ApiError

Event = tuple[str, str]
"""Type and name."""


def maps(space: str) -> str:
    return f"/api/v1/namespaces/{space}/configmaps"


async def events(api: Api, path: str, count: int, **query: str) -> list[dict[str, Any]]:
    """The first *count* events of a watch."""
    found: list[dict[str, Any]] = []
    query = {"watch": "1", "timeoutSeconds": f"{WAIT_S:.0f}", **query}
    async with aclosing(api.lines(path, query, idle_timeout_s=WAIT_S)) as lines:
        async for line in lines:
            found.append(msgspec.json.decode(line))
            if len(found) == count:
                break
    return found


def told(found: list[dict[str, Any]]) -> list[Event]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in found]


async def version_of(api: Api, path: str) -> str:
    return str((await api.get(path))["metadata"]["resourceVersion"])


async def watch_follows_every_change(api: Api, space: str) -> None:
    start = await version_of(api, maps(space))
    await api.post(maps(space), config_map("a"))
    await api.patch(f"{maps(space)}/a", {"data": {"x": "1"}})
    await api.patch(f"{maps(space)}/a", {"data": {"x": "1"}})
    await api.delete(f"{maps(space)}/a")
    await api.post(maps(space), config_map("b"))
    found = await events(api, maps(space), 4, resourceVersion=start)
    assert told(found) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in found]
    assert versions == sorted(set(versions))
    assert found[2]["object"]["data"] == {"x": "1"}


async def watch_resumes_where_it_stopped(api: Api, space: str) -> None:
    start = await version_of(api, maps(space))
    for name in "abc":
        await api.post(maps(space), config_map(name))
    first = await events(api, maps(space), 2, resourceVersion=start)
    seen = first[-1]["object"]["metadata"]["resourceVersion"]
    assert told(await events(api, maps(space), 1, resourceVersion=seen)) == [("ADDED", "c")]


async def watch_without_version_begins_with_what_is_there(api: Api, space: str) -> None:
    own = "metadata.name=a"
    await api.post(maps(space), config_map("a"))
    for version in ({}, {"resourceVersion": "0"}):
        found = await events(api, maps(space), 1, fieldSelector=own, **version)
        assert told(found) == [("ADDED", "a")]


async def watch_list_ends_its_first_part_with_a_bookmark(api: Api, space: str) -> None:
    await api.post(maps(space), config_map("a"))
    await api.post(maps(space), config_map("b"))
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "fieldSelector": "metadata.name!=kube-root-ca.crt",
    }
    found = await events(api, maps(space), 3, **query)
    assert told(found)[:2] == [("ADDED", "a"), ("ADDED", "b")]
    assert found[2]["type"] == "BOOKMARK"
    assert found[2]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert found[2]["object"]["kind"] == "ConfigMap"
    assert int(found[2]["object"]["metadata"]["resourceVersion"]) >= int(
        found[1]["object"]["metadata"]["resourceVersion"]
    )


async def selection_makes_additions_and_deletions(api: Api, space: str) -> None:
    path = f"/api/v1/namespaces/{space}/pods"
    start = await version_of(api, path)
    await api.post(path, pod("a"))
    await api.post(path, pod("b"))
    await api.post(f"{path}/a/binding", {"metadata": {"name": "a"}, "target": {"name": "n1"}})
    await api.delete(f"{path}/b")
    unbound = await events(api, path, 5, resourceVersion=start, fieldSelector="spec.nodeName=")
    assert told(unbound)[:3] == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    assert told(unbound)[3:] == [("MODIFIED", "b"), ("DELETED", "b")]
    assert "nodeName" not in unbound[2]["object"]["spec"]
    bound = await events(api, path, 1, resourceVersion=start, fieldSelector="spec.nodeName=n1")
    assert told(bound) == [("ADDED", "a")]
    labelled = await events(api, path, 1, resourceVersion=start, labelSelector="app in (b,c)")
    assert told(labelled) == [("ADDED", "b")]


async def watch_ends_when_its_time_is_up(api: Api, space: str) -> None:
    start = await version_of(api, maps(space))
    query = {"watch": "1", "timeoutSeconds": "1", "resourceVersion": start}
    lines = [line async for line in api.lines(maps(space), query, idle_timeout_s=WAIT_S)]
    assert lines == []


async def watch_from_no_version_is_refused(api: Api, space: str) -> None:
    query = {"watch": "1", "resourceVersion": "nonsense"}
    with pytest.raises(ApiError) as caught:
        async for _ in api.lines(maps(space), query, idle_timeout_s=WAIT_S):
            pass
    assert caught.value.status == 500
    assert "Invalid value" in caught.value.message


async def list_pages_are_of_one_version(api: Api, space: str) -> None:
    for name in "abcde":
        await api.post(maps(space), config_map(name))
    own = {"fieldSelector": "metadata.name!=kube-root-ca.crt"}
    first = await api.get(maps(space), limit="2", **own)
    await api.delete(f"{maps(space)}/d")
    await api.post(maps(space), config_map("f"))
    second = await api.get(maps(space), limit="2", **own, **{"continue": first["metadata"]["continue"]})
    third = await api.get(maps(space), limit="2", **own, **{"continue": second["metadata"]["continue"]})
    names = [item["metadata"]["name"] for page in (first, second, third) for item in page["items"]]
    assert names == list("abcde")
    assert "continue" not in third["metadata"]
    versions = {page["metadata"]["resourceVersion"] for page in (first, second, third)}
    assert len(versions) == 1


async def list_at_an_old_version_shows_the_old_objects(api: Api, space: str) -> None:
    await api.post(maps(space), config_map("a", x="1"))
    old = await version_of(api, maps(space))
    patched = await api.patch(f"{maps(space)}/a", {"data": {"x": "2"}})
    # A real server may answer the last list from a cache, which gets to know of the patch a little later.
    known = patched["metadata"]["resourceVersion"]
    await api.get(maps(space), resourceVersion=known, resourceVersionMatch="NotOlderThan")
    exact = await api.get(maps(space), resourceVersion=old, resourceVersionMatch="Exact")
    assert [item["data"] for item in exact["items"] if "data" in item and "x" in item["data"]] == [{"x": "1"}]
    assert exact["metadata"]["resourceVersion"] == old
    newer = await api.get(maps(space), resourceVersion=old, resourceVersionMatch="NotOlderThan")
    assert [item["data"] for item in newer["items"] if item["metadata"]["name"] == "a"] == [{"x": "2"}]


async def list_of_a_version_to_come_times_out(api: Api, space: str) -> None:
    now = int(await version_of(api, maps(space)))
    with pytest.raises(ApiError) as caught:
        await api.get(maps(space), resourceVersion=str(now + 1_000_000))
    assert (caught.value.status, caught.value.reason) == (504, "Timeout")
    assert "Too large resource version" in caught.value.message


async def many_watchers_see_the_same(api: Api, space: str) -> None:
    start = await version_of(api, maps(space))
    watches = [asyncio.create_task(events(api, maps(space), 20, resourceVersion=start)) for _ in range(5)]
    for number in range(20):
        await api.post(maps(space), config_map(f"m{number}"))
    seen = [told(found) for found in await asyncio.gather(*watches)]
    assert all(one == [("ADDED", f"m{number}") for number in range(20)] for one in seen)


CASES = (
    watch_follows_every_change,
    watch_resumes_where_it_stopped,
    watch_without_version_begins_with_what_is_there,
    watch_list_ends_its_first_part_with_a_bookmark,
    selection_makes_additions_and_deletions,
    watch_ends_when_its_time_is_up,
    watch_from_no_version_is_refused,
    list_pages_are_of_one_version,
    list_at_an_old_version_shows_the_old_objects,
    list_of_a_version_to_come_times_out,
    many_watchers_see_the_same,
)
