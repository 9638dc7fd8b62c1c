"""What of the server the engine reads, by its configuration, and how it follows another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import fault_server as fs
from tests.cluster.waiting import until
from volcano_py.client.api import RESOURCES, Api
from volcano_py.crds.schedulerconfig import (
    DEFAULT_CONFIG,
    SchedulerConfig,
    load_scheduler_config,
    parse_scheduler_config,
)
from volcano_py.scheduler.cluster.feed import ENGINE_KINDS, Feed
from volcano_py.scheduler.run.following import CONFIG_MAP, DeviceConfigs, device_config, feed_for

CONFIG_MAPS = RESOURCES[CONFIG_MAP].path()


def config(*plugins: dict[str, Any]) -> SchedulerConfig:
    return parse_scheduler_config({"actions": "allocate", "tiers": [{"plugins": list(plugins)}]})


def configured(*plugins: dict[str, Any]) -> str:
    return device_config(config(*plugins))


def naming(name: str) -> SchedulerConfig:
    """A configuration whose cards are told of by the ConfigMap *name*; "" has no cards."""
    if not name:
        return config({"name": "gang"})
    return config({"name": "deviceshare", "arguments": {"deviceshare.KnownGeometriesCMName": name}})


@asynccontextmanager
async def fed(server: fs.FaultServer, folder: Path, first: str) -> AsyncIterator[tuple[Feed, DeviceConfigs]]:
    async with await Api.connect(server.kubeconfig(folder)) as api:
        feed = feed_for(api, naming(first))
        task = asyncio.create_task(feed.run())
        try:
            await feed.synced()
            yield feed, DeviceConfigs(feed, naming(first))
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def asked(server: fs.FaultServer) -> list[str]:
    """Names by which ConfigMaps were watched."""
    found = [query for _, path, query in server.requests if path == CONFIG_MAPS and "watch" in query]
    return [query["fieldSelector"] for query in found]


def scenario(
    body: Callable[[fs.FaultServer, Feed, DeviceConfigs], Awaitable[None]], folder: Path, first: str
) -> None:
    async def run() -> None:
        async with fs.fault_server() as server, fed(server, folder, first) as (feed, configs):
            await body(server, feed, configs)

    asyncio.run(run())


def test_the_default_configuration_follows_volcanos_configmap() -> None:
    assert device_config(load_scheduler_config(DEFAULT_CONFIG)) == "kube-system/volcano-vgpu-device-config"


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({}, "kube-system/volcano-vgpu-device-config"),
        ({"deviceshare.KnownGeometriesCMName": "hami-scheduler-device"}, "kube-system/hami-scheduler-device"),
        ({"deviceshare.KnownGeometriesCMNamespace": "ml"}, "ml/volcano-vgpu-device-config"),
    ],
)
def test_the_arguments_name_it(arguments: dict[str, str], name: str) -> None:
    assert configured({"name": "gang"}, {"name": "deviceshare", "arguments": arguments}) == name


def test_without_cards_there_is_none() -> None:
    assert configured({"name": "gang"}) == ""


def test_another_name_is_read_before_it_counts(tmp_path: Path) -> None:
    async def body(server: fs.FaultServer, feed: Feed, configs: DeviceConfigs) -> None:
        configs.expect(naming("b"))
        assert not configs.is_read
        await until(lambda: configs.is_read, "the other one read")
        assert len(feed.of(CONFIG_MAP)) == 2, "the configuration in force still needs the old one"
        configs.turn()
        [left] = feed.of(CONFIG_MAP)
        assert feed.stats.kinds[CONFIG_MAP] is left.stats
        await until(lambda: "metadata.name=b" in asked(server), "the other one watched")
        server.put(CONFIG_MAPS, {"metadata": {"name": "b", "namespace": "kube-system"}, "data": {}})
        await until(lambda: left.stats.objects == 1, "what it says")
        assert [change.key for change in feed.take() if change.kind == CONFIG_MAP] == ["kube-system/b"]
        configs.expect(naming("b"))
        assert configs.is_read

    scenario(body, tmp_path, "a")


def test_what_the_old_name_said_is_gone(tmp_path: Path) -> None:
    async def body(server: fs.FaultServer, feed: Feed, configs: DeviceConfigs) -> None:
        server.put(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "kube-system"}, "data": {}})
        await until(lambda: feed.stats.kinds[CONFIG_MAP].objects == 1, "what it says")
        feed.take()
        configs.expect(naming(""))
        assert configs.is_read, "nothing has to be read"
        configs.turn()
        [gone] = feed.take()
        assert (gone.key, gone.is_deletion) == ("kube-system/a", True)
        assert feed.of(CONFIG_MAP) == []
        assert CONFIG_MAP not in feed.stats.kinds

    scenario(body, tmp_path, "a")


def test_from_no_cards_to_cards_and_a_change_of_mind(tmp_path: Path) -> None:
    async def body(server: fs.FaultServer, feed: Feed, configs: DeviceConfigs) -> None:
        assert feed.of(CONFIG_MAP) == []
        configs.expect(naming("b"))
        configs.expect(naming("c"))
        assert len(feed.of(CONFIG_MAP)) == 1
        await until(lambda: configs.is_read, "the last one read")
        configs.turn()
        await until(lambda: asked(server)[-1:] == ["metadata.name=c"], "the last one watched")
        configs.expect(naming("d"))
        configs.expect(naming("c"))
        assert configs.is_read, "as it is already"
        configs.turn()
        [left] = feed.of(CONFIG_MAP)
        assert left.stats.state == "watching"

    scenario(body, tmp_path, "")


def test_a_name_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    async def body(server: fs.FaultServer, feed: Feed, configs: DeviceConfigs) -> None:
        server.token = "nobody has it"
        configs.expect(naming("b"))
        await until(lambda: configs.trouble, "the trouble told")
        assert configs.trouble.startswith("the ConfigMap b that it names can't be read: ")
        assert not configs.is_read
        server.token = ""
        await until(lambda: configs.is_read, "read once the right is there")
        assert configs.trouble == ""

    scenario(body, tmp_path, "a")


def test_who_may_not_read_the_first_name_is_not_kept_waiting_for_it_by_another(tmp_path: Path) -> None:
    """As at a start with a ConfigMap that may not be read, until the configuration names another."""

    async def run() -> None:
        async with fs.fault_server() as server, await Api.connect(server.kubeconfig(tmp_path)) as api:
            server.token = "nobody has it"
            feed = feed_for(api, naming("a"))
            configs = DeviceConfigs(feed, naming("a"))
            task = asyncio.create_task(feed.run())
            synced = asyncio.create_task(feed.synced())
            await until(lambda: CONFIG_MAP in feed.stats.problems, "the first one refused")
            [first] = feed.of(CONFIG_MAP)
            configs.expect(naming(""))
            configs.turn()
            server.token = ""
            await until(synced.done, "all others read")
            assert first.stats.lists == 0
            assert all(feed.stats.kinds[kind].lists for kind in ENGINE_KINDS)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
