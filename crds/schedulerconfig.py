"""The scheduler's configuration file, in Volcano's format: which actions, which plugins, with what arguments.

An error here stops the start, so every message names the key, its value and the names that are known. This
file knows no plugin or action by itself: the caller says which there are, and each plugin checks its own
arguments through ``Arguments``. Neighbours: ``arguments``, ``messages``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import yaml

from volcano_py.crds.arguments import Arguments, ConfigError, as_flag, list_names
from volcano_py.crds.messages import did_you_mean, join_path, shown

__all__ = [
    "DEFAULT_CONFIG",
    "FLAGS",
    "SCENARIO_CONFIG",
    "Arguments",
    "ConfigError",
    "Configuration",
    "PluginOption",
    "SchedulerConfig",
    "Tier",
    "load_scheduler_config",
    "parse_scheduler_config",
]

# What a plugin may be asked at, and whether it is where the file says nothing. Some are spelled with a "d"
# in the format, some without.
_POINTS: Final = (
    "enableJobOrder", "enableJobReady", "enableJobPipelined", "enableJobEnqueued", "enableJobStarving",
    "enableTaskOrder", "enablePreemptable", "enableReclaimable", "enablePreemptive", "enableQueueOrder",
    "enablePredicate", "enableBestNode", "enableNodeOrder", "enableTargetJob", "enableReservedNodes",
    "enabledVictim", "enabledOverused", "enabledAllocatable", "enabledHyperNodeOrder",
    "enabledHyperNodeGradient", "enabledSubJobReady", "enabledSubJobPipelined", "enabledSubJobOrder",
)  # fmt: skip
FLAGS: Final[Mapping[str, bool]] = MappingProxyType(
    dict.fromkeys(_POINTS, True) | {"enableHierarchy": False, "enabledClusterOrder": False}
)

DEFAULT_CONFIG: Final = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
  - name: deviceshare
"""

SCENARIO_CONFIG: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""

_METRICS_TYPES: Final = ("prometheus", "prometheus_adaptor", "elasticsearch")


@dataclass(frozen=True)
class PluginOption:
    """One plugin of a tier.

    Attributes:
        flags: what the file says about ``FLAGS``; one that is left out has its default.
    """

    name: str
    flags: Mapping[str, bool]
    arguments: Arguments

    def enabled(self, flag: str) -> bool:
        """Whether the plugin is asked at the points that *flag* (a key of ``FLAGS``) switches."""
        return self.flags.get(flag, FLAGS[flag])


@dataclass(frozen=True)
class Tier:
    """Plugins that are asked together, in this order."""

    plugins: tuple[PluginOption, ...]


@dataclass(frozen=True)
class Configuration:
    """Arguments of one action."""

    name: str
    arguments: Arguments


@dataclass(frozen=True)
class SchedulerConfig:
    """A configuration file that was read without a fault.

    Attributes:
        metrics: where measured load is read from (type, address, interval, tls, ...); empty: nowhere.
    """

    actions: tuple[str, ...]
    tiers: tuple[Tier, ...]
    configurations: tuple[Configuration, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)

    @property
    def plugins(self) -> tuple[PluginOption, ...]:
        """All plugins, tier by tier."""
        return tuple(plugin for tier in self.tiers for plugin in tier.plugins)

    def plugin(self, name: str) -> PluginOption | None:
        """The plugin *name*, if it is configured."""
        return next((plugin for plugin in self.plugins if plugin.name == name), None)

    def action_arguments(self, name: str) -> Arguments:
        """The arguments of action *name*; empty where the file has none."""
        found = (entry.arguments for entry in self.configurations if entry.name == name)
        return next(found, Arguments(f"action {name}"))


def load_scheduler_config(
    text: str, known_plugins: Iterable[str] | None = None, known_actions: Iterable[str] | None = None
) -> SchedulerConfig:
    """Read a configuration file.

    Args:
        text: YAML.
        known_plugins: names that may stand in tiers; None allows any.
        known_actions: names that may stand in actions and configurations; None allows any.

    Raises:
        ConfigError: with all faults of the file.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"the configuration is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise ConfigError("the configuration is not YAML that can be read: it is nested too deep") from error
    except ValueError as error:  # a date or a number that is none: the parser lets Python's own error through
        raise ConfigError(f"the configuration is not YAML that can be read: {error}") from error
    return parse_scheduler_config(document, known_plugins, known_actions)


def parse_scheduler_config(
    document: object, known_plugins: Iterable[str] | None = None, known_actions: Iterable[str] | None = None
) -> SchedulerConfig:
    """:func:`load_scheduler_config` for what is already out of YAML, as in a scenario's ``config``."""
    reader = _Reader(
        None if known_plugins is None else sorted(known_plugins),
        None if known_actions is None else sorted(known_actions),
    )
    config = reader.config(document)
    if reader.faults:
        raise ConfigError(reader.faults)
    return config


class _Reader:
    """Walks the document and collects faults, so that one start names all of them."""

    def __init__(self, plugins: list[str] | None, actions: list[str] | None) -> None:
        self.plugins = plugins
        self.actions = actions
        self.faults: list[str] = []

    def config(self, document: object) -> SchedulerConfig:
        top = self._mapping(document, "", ("actions", "tiers", "configurations", "metrics"))
        actions = self._actions(top.get("actions"))
        tiers = tuple(self._tier(tier, path) for path, tier in self._list(top.get("tiers"), "tiers"))
        self._no_repeats([plugin.name for tier in tiers for plugin in tier.plugins], "tiers", "plugin")
        entries = self._list(top.get("configurations"), "configurations")
        configurations = tuple(self._configuration(entry, path) for path, entry in entries)
        self._no_repeats([entry.name for entry in configurations], "configurations", "action")
        return SchedulerConfig(actions, tiers, configurations, self._metrics(top.get("metrics")))

    def _actions(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, str) or not value.strip():
            rule = 'names with commas, such as "enqueue, allocate, backfill"'
            fault = f"is required: {rule}" if value is None else f"must be {rule}, not {shown(value)}"
            self.faults.append(f"actions: {fault}")
            return ()
        names = tuple(name.strip() for name in value.split(",") if name.strip())
        for name in names:
            self._known(name, "actions", "action", self.actions)
        return names

    def _tier(self, value: object, path: str) -> Tier:
        tier = self._mapping(value, path, ("plugins",))
        entries = self._list(tier.get("plugins"), join_path(path, "plugins"))
        return Tier(tuple(self._plugin(entry, below) for below, entry in entries))

    def _plugin(self, value: object, path: str) -> PluginOption:
        entry = self._mapping(value, path, ("name", "arguments", *FLAGS))
        name = self._name(entry, path, "plugin", self.plugins)
        flags = {
            key: self._switch(entry[key], join_path(path, key)) for key in FLAGS if entry.get(key) is not None
        }
        return PluginOption(name, MappingProxyType(flags), self._arguments(entry, path, f"plugin {name}"))

    def _configuration(self, value: object, path: str) -> Configuration:
        entry = self._mapping(value, path, ("name", "arguments"))
        name = self._name(entry, path, "action", self.actions)
        return Configuration(name, self._arguments(entry, path, f"action {name}"))

    def _metrics(self, value: object) -> Mapping[str, str]:
        if value is None:
            return MappingProxyType({})
        entry = self._mapping(value, "metrics", None)
        kind = entry.get("type")
        if kind not in (None, "", *_METRICS_TYPES):
            hint = did_you_mean(str(kind), _METRICS_TYPES)
            self.faults.append(
                f"metrics.type: unknown {shown(kind)}{hint}; {list_names('known are', _METRICS_TYPES)}"
            )
        # The format has texts only, yet `tls.insecureSkipVerify: true` is what people write.
        return MappingProxyType(
            {key: text if isinstance(text, str) else shown(text) for key, text in entry.items()}
        )

    def _name(self, entry: Mapping[str, Any], path: str, what: str, known: list[str] | None) -> str:
        name = entry.get("name")
        if not isinstance(name, str) or not name:
            self.faults.append(
                f"{join_path(path, 'name')}: must be the name of the {what}, not {shown(name)}"
            )
            return ""
        self._known(name, join_path(path, "name"), what, known)
        return name

    def _known(self, name: str, path: str, what: str, known: list[str] | None) -> None:
        if known is not None and name not in known:
            hint = did_you_mean(name, known)
            self.faults.append(
                f"{path}: unknown {what} {shown(name)}{hint}; {list_names('known are', known)}"
            )

    def _switch(self, value: object, path: str) -> bool:
        flag = as_flag(value)
        if flag is None:
            self.faults.append(f"{path}: must be true or false, not {shown(value)}")
        return bool(flag)

    def _arguments(self, entry: Mapping[str, Any], path: str, owner: str) -> Arguments:
        value = entry.get("arguments")
        return Arguments(
            owner, {} if value is None else self._mapping(value, join_path(path, "arguments"), None)
        )

    def _mapping(self, value: object, path: str, known: tuple[str, ...] | None) -> dict[str, Any]:
        """*value* as a mapping with *known* keys (None: any), or an empty one and a fault."""
        if not isinstance(value, dict):
            where = path or "the configuration"
            self.faults.append(f"{where}: must be a mapping, not {shown(value)}")
            return {}
        for key in value:
            if (known is not None and key not in known) or not isinstance(key, str):
                self._unknown_key(key, value[key], path, known or ())
        return {key: entry for key, entry in value.items() if isinstance(key, str)}

    def _unknown_key(self, key: object, value: object, path: str, known: tuple[str, ...]) -> None:
        where = join_path(path, str(key))
        names = f"; {list_names('known are', known)}" if known else ""
        self.faults.append(
            f"{where}: unknown key (its value is {shown(value)}){did_you_mean(str(key), known)}{names}"
        )

    def _list(self, value: object, path: str) -> list[tuple[str, Any]]:
        """The entries of *value* with their paths; none where it is absent, a fault where it is no list."""
        if value is None:
            return []
        if not isinstance(value, list):
            self.faults.append(f"{path}: must be a list, not {shown(value)}")
            return []
        return [(join_path(path, index), entry) for index, entry in enumerate(value)]

    def _no_repeats(self, names: Iterable[str], path: str, what: str) -> None:
        seen: set[str] = set()
        for name in names:
            if name and name in seen:
                self.faults.append(f"{path}: {what} {shown(name)} is named twice")
            seen.add(name)
