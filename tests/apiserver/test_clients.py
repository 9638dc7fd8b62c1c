"""The official Python client against both servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import kubernetes
import kubernetes.watch
import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from tests.apiserver.builders import pod
from tests.apiserver.spaces import WAIT_S, new_namespace
from tests.e2e.servers import KINDS
from volcano_py.client.api import Api

OFFICIAL: Any = kubernetes
"""These parts of it have no types."""


@pytest.fixture(params=KINDS)
def core(request: pytest.FixtureRequest, configs: Callable[[str], Path]) -> Iterator[tuple[Any, str]]:
    """The core API of the official client, and a namespace."""
    path = configs(request.param)

    async def space() -> str:
        async with await Api.connect(str(path)) as api:
            return await new_namespace(api)

    with OFFICIAL.config.new_client_from_config(str(path)) as loaded:
        yield client.CoreV1Api(loaded), asyncio.run(space())


def test_objects_go_through_its_models(core: tuple[Any, str]) -> None:
    api, space = core
    made = api.create_namespaced_pod(space, pod("a"))
    assert (made.status.phase, made.spec.scheduler_name) == ("Pending", "volcano-py")
    body = client.V1Binding(
        metadata=client.V1ObjectMeta(name="a"), target=client.V1ObjectReference(kind="Node", name="n")
    )
    api.create_namespaced_pod_binding("a", space, body, _preload_content=False).close()
    assert api.read_namespaced_pod("a", space).spec.node_name == "n"
    patched = api.patch_namespaced_pod_status("a", space, {"status": {"phase": "Running"}})
    assert patched.status.phase == "Running"
    listed = api.list_namespaced_pod(space, field_selector="spec.nodeName=n", limit=5)
    assert [item.metadata.name for item in listed.items] == ["a"]
    gone = api.delete_namespaced_pod("a", space, grace_period_seconds=0)
    assert gone.metadata.name == "a"
    with pytest.raises(ApiException) as caught:
        api.read_namespaced_pod("a", space)
    assert caught.value.status == 404


def test_its_watch_follows(core: tuple[Any, str]) -> None:
    api, space = core
    version = api.list_namespaced_config_map(space).metadata.resource_version
    for name in ("a", "b"):
        api.create_namespaced_config_map(space, client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name)))
    api.delete_namespaced_config_map("a", space)
    stream = OFFICIAL.watch.Watch().stream(
        api.list_namespaced_config_map, space, resource_version=version, timeout_seconds=int(WAIT_S)
    )
    found = []
    with closing(stream):
        for event in stream:
            found.append((event["type"], event["object"].metadata.name))
            if len(found) == 3:
                break
    assert found == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]
