"""What of the server the engine reads: its kinds, and the one ConfigMap that the card plugin is told by."""

from __future__ import annotations

from volcano_py.client.api import Api
from volcano_py.crds.schedulerconfig import SchedulerConfig
from volcano_py.scheduler.cluster.feed import ENGINE_KINDS, Feed
from volcano_py.scheduler.cluster.reflector import Reflector
from volcano_py.scheduler.framework.registry import make_plugins

CONFIG_MAP = "ConfigMap"


def feed_for(api: Api, config: SchedulerConfig) -> Feed:
    """A feed of what the engine reads under *config*; raises ``ConfigError``."""
    name = _name(config)
    if not name:
        return Feed(api)
    return Feed(api, (CONFIG_MAP, *ENGINE_KINDS), select={CONFIG_MAP: _select(name)})


class DeviceConfigs:
    """Which ConfigMap of cards a *feed* follows, by the configuration in force and the one to come.

    Another one is read before the configuration that names it comes into force, so that no cycle decides
    under names and templates that nobody wrote; until then the old one is followed as well.
    """

    def __init__(self, feed: Feed, config: SchedulerConfig) -> None:
        """*feed* follows what *config* names."""
        self._feed = feed
        self._old = self._new = _name(config)
        self._coming: Reflector | None = None

    @property
    def is_read(self) -> bool:
        """What the configuration to come names has been read, so that it can be turned to."""
        return self._coming is None or self._coming.listed.is_set()

    @property
    def trouble(self) -> str:
        """Why it can't be read; "" if nothing is wrong."""
        if self.is_read or self._coming is None or not self._coming.stats.problem:
            return ""
        return f"the ConfigMap {self._new} that it names can't be read: {self._coming.stats.problem}"

    def expect(self, config: SchedulerConfig) -> None:
        """*config* is to come into force: begin to read what it names."""
        name = _name(config)
        if name == self._new:
            return
        if self._coming is not None:
            self._feed.leave(self._coming)
            self._coming = None
        self._new = name
        if name and name != self._old:
            self._coming = self._feed.follow(CONFIG_MAP, _select(name))

    def turn(self) -> None:
        """The configuration to come is in force: what only the old one named is not followed any more."""
        if self._new != self._old:
            for one in self._feed.of(CONFIG_MAP):
                if one is not self._coming:
                    self._feed.leave(one)
        self._old, self._coming = self._new, None


def _name(config: SchedulerConfig) -> str:
    return device_config(config).rpartition("/")[2]


def _select(name: str) -> dict[str, str]:
    # Of all ConfigMaps of that name: rights can be given on a name, and the card plugin knows its namespace.
    return {"fieldSelector": f"metadata.name={name}"}


def device_config(config: SchedulerConfig) -> str:
    """The ConfigMap that tells of cards ("namespace/name"); empty where no plugin reads one."""
    sources = (plugin.card_source() for plugin in make_plugins(config))
    return next((source.config_map for source in sources if source is not None), "")
