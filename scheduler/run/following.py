"""What of the server the engine reads: its kinds, and the one ConfigMap that the card plugin is told by."""

from __future__ import annotations

from volcano_py.client.api import Api
from volcano_py.crds.schedulerconfig import SchedulerConfig
from volcano_py.scheduler.cluster.feed import ENGINE_KINDS, Feed
from volcano_py.scheduler.framework.registry import make_plugins

CONFIG_MAP = "ConfigMap"


def feed_for(api: Api, config: SchedulerConfig) -> Feed:
    """A feed of what the engine reads under *config*; raises ``ConfigError``."""
    name = device_config(config).rpartition("/")[2]
    if not name:
        return Feed(api)
    # Of all ConfigMaps of that name: rights can be given on a name, and the card plugin knows its namespace.
    select = {CONFIG_MAP: {"fieldSelector": f"metadata.name={name}"}}
    return Feed(api, (CONFIG_MAP, *ENGINE_KINDS), select=select)


def device_config(config: SchedulerConfig) -> str:
    """The ConfigMap that tells of cards ("namespace/name"); empty where no plugin reads one."""
    sources = (plugin.card_source() for plugin in make_plugins(config))
    return next((source.config_map for source in sources if source is not None), "")
