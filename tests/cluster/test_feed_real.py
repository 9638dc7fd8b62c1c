"""The feed on servers that are none of ours: etcd and kube-apiserver, and beside them the embedded one."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.waiting import until
from tests.e2e.servers import KINDS, Server, make
from volcano_py.client.api import RESOURCES, Api, ApiError
from volcano_py.crds.objects import KINDS as CRD_KINDS
from volcano_py.scheduler.cluster.feed import Change, Feed, Pace

CRDS = Path(__file__).parents[2] / "crds" / "yaml"
pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as place:
        server = make(request.param, Path(place) / "server")
        try:
            server.start()
            yield server
        finally:
            server.stop()


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


async def put(api: Api, kind: str, doc: dict[str, Any]) -> None:
    resource = RESOURCES[kind]
    try:
        await api.post(resource.path(doc["metadata"].get("namespace")), doc)
    except ApiError as error:
        if not error.is_exists:
            raise


class View:
    """What the feed told, by kind and key."""

    def __init__(self, api: Api, feed: Feed) -> None:
        self.api = api
        self.feed = feed
        self.objects: dict[tuple[str, str], Change] = {}
        self.told: list[Change] = []

    def take(self) -> View:
        for change in self.feed.take():
            self.told.append(change)
            if change.is_deletion:
                self.objects.pop((change.kind, change.key), None)
            else:
                self.objects[change.kind, change.key] = change
        return self

    def item(self, kind: str, key: str) -> Any:
        return self.objects[kind, key].item

    def versions(self, kind: str) -> dict[str, tuple[str, str]]:
        self.take()
        found = {key: change for (of, key), change in self.objects.items() if of == kind}
        return {key: (change.uid, change.version) for key, change in found.items()}

    async def truth(self, kind: str) -> dict[str, tuple[str, str]]:
        listed = await self.api.get(RESOURCES[kind].path())
        metas = [item["metadata"] for item in listed["items"]]
        return {
            f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]: (
                meta["uid"],
                meta["resourceVersion"],
            )
            for meta in metas
        }

    async def agrees(self, *kinds: str) -> None:
        for kind in kinds:
            truth = await self.truth(kind)
            await until(partial(self.has, kind, truth), f"all of {kind}")

    def has(self, kind: str, truth: dict[str, tuple[str, str]]) -> bool:
        return self.versions(kind) == truth


@asynccontextmanager
async def following(server: Server, *kinds: str, pace: Pace | None = None) -> AsyncIterator[View]:
    async with await Api.connect(str(server.kubeconfig)) as api:
        feed = Feed(api, kinds, pace=pace or Pace(page=7, wait_scale=0.2, absent_s=1.0))
        task = asyncio.create_task(feed.run())
        try:
            await asyncio.wait_for(feed.synced(), 60)
            yield View(api, feed)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def test_lists_in_pages_and_every_change_after_it(server: Server) -> None:
    async def body() -> None:
        async with await Api.connect(str(server.kubeconfig)) as api:
            for number in range(30):
                await put(api, "ConfigMap", config_map(f"paged-{number}", a="0"))
        async with following(server, "ConfigMap", "Namespace") as view:
            await view.agrees("ConfigMap", "Namespace")
            path = RESOURCES["ConfigMap"].path("default")
            await view.api.patch(f"{path}/paged-3", {"data": {"a": "1"}})
            await view.api.delete(f"{path}/paged-4")
            await view.agrees("ConfigMap")
            assert view.item("ConfigMap", "default/paged-3").data == {"a": "1"}
            view.told.clear()
            await view.api.delete(f"{path}/paged-5")
            await put(view.api, "ConfigMap", config_map("paged-5", again="yes"))
            await view.agrees("ConfigMap")
            again = [change for change in view.told if change.key == "default/paged-5"]
            assert [change.is_deletion for change in again][:1] == [True]
            assert not again[-1].is_deletion
            assert view.feed.stats.kinds["ConfigMap"].lists == 1

    asyncio.run(body())


def test_pods_and_nodes_are_read_the_fast_way(server: Server) -> None:
    async def body() -> None:
        async with following(server, "Node", "Pod") as view:
            await put(view.api, "ServiceAccount", {"metadata": {"name": "default", "namespace": "default"}})
            capacity = {"cpu": "8", "memory": "16Gi", "pods": "110"}
            status = {"capacity": capacity, "allocatable": capacity}
            await put(
                view.api, "Node", {"metadata": {"name": "n1", "labels": {"zone": "z"}}, "status": status}
            )
            requests = {"requests": {"cpu": "2"}}
            spec = {
                "schedulerName": "volcano-py",
                "containers": [{"name": "c", "image": "i", "resources": requests}],
            }
            await put(view.api, "Pod", {"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
            binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
            pod = RESOURCES["Pod"].path("default", "p")
            await view.agrees("Node", "Pod")
            await view.api.post(f"{pod}/binding", binding)
            await view.agrees("Node", "Pod")
            seen = view.item("Pod", "default/p")
            assert (seen.spec.node_name, seen.spec.scheduler_name) == ("n1", "volcano-py")
            assert seen.spec.containers[0].resources.requests == {"cpu": "2"}
            assert seen.metadata.creation_timestamp > 1e9
            assert view.item("Node", "n1").status.allocatable == capacity
            await view.api.delete(pod, {"gracePeriodSeconds": 0})
            await view.agrees("Pod")

    asyncio.run(body())


def test_a_server_that_is_killed_and_comes_back_loses_us_nothing(server: Server) -> None:
    async def body() -> None:
        async with following(server, "ConfigMap") as view:
            await put(view.api, "ConfigMap", config_map("before"))
            await view.agrees("ConfigMap")
            await asyncio.to_thread(server.crash)
            await until(lambda: "ConfigMap" in view.feed.stats.problems, "the loss is noticed")
            await asyncio.to_thread(server.revive)
            async with await Api.connect(str(server.kubeconfig)) as api:
                await api.call("GET", RESOURCES["ConfigMap"].path(), tries=20)
                await put(api, "ConfigMap", config_map("after"))
            await until(lambda: "default/after" in view.versions("ConfigMap"), "what came after", within_s=60)
            await view.agrees("ConfigMap")
            await until(lambda: not view.feed.stats.problems, "no problem is left")

    asyncio.run(body())


def test_kinds_that_are_installed_later_come_later(server: Server) -> None:
    async def body() -> None:
        infos = {kind.info.kind: kind.info for kind in CRD_KINDS}
        async with following(server, "HyperNode", "ConfigMap") as view:
            info = infos["HyperNode"]
            crd = yaml.safe_load((CRDS / f"{info.plural}.{info.group}.yaml").read_text())
            await put(view.api, "CustomResourceDefinition", crd)
            await until(
                lambda: "HyperNode" not in view.feed.stats.problems, "the kind is served", within_s=60
            )
            assert view.feed.stats.kinds["HyperNode"].state == "watching"

    asyncio.run(body())


def test_a_watch_that_the_server_ends_in_time_costs_no_list(server: Server) -> None:
    async def body() -> None:
        pace = Pace(watch_s=1.0)
        async with following(server, "ConfigMap", pace=pace) as view:
            stats = view.feed.stats.kinds["ConfigMap"]
            await until(lambda: stats.watches >= 3, "a third watch")
            await put(view.api, "ConfigMap", config_map("much-later"))
            await view.agrees("ConfigMap")
            assert (stats.lists, stats.drops) == (1, 0)

    asyncio.run(body())


def test_a_new_pod_is_heard_of_while_the_feed_rests(server: Server) -> None:
    async def body() -> None:
        async with following(server, "Pod") as view:
            await put(view.api, "ServiceAccount", {"metadata": {"name": "default", "namespace": "default"}})
            view.feed.rest(3600.0, listen=True)
            await until(lambda: view.feed.listens, "it listens")
            spec = {"containers": [{"name": "c", "image": "i"}]}
            for name in ("first", "second"):  # the first may be what is read before the rest
                await put(view.api, "Pod", {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
            await view.agrees("Pod")
            assert view.feed.rang

    asyncio.run(body())
