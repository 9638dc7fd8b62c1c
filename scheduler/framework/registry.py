"""Which plugins and actions there are, by name.

The built-in ones are listed here by module, so that only configured ones are imported. A third party's
package adds more through the entry point groups ``volcano_py.plugins`` and ``volcano_py.actions``.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from volcano_py.crds.arguments import Arguments, ConfigError
from volcano_py.crds.schedulerconfig import PluginOption, SchedulerConfig
from volcano_py.scheduler.framework.action import Action
from volcano_py.scheduler.framework.plugin import Plugin

PLUGIN_GROUP: Final = "volcano_py.plugins"
ACTION_GROUP: Final = "volcano_py.actions"

BUILT_IN_PLUGINS: Final[Mapping[str, str]] = {
    "binpack": "volcano_py.plugins.binpack:BinpackPlugin",
    "capacity": "volcano_py.plugins.capacity:CapacityPlugin",
    "conformance": "volcano_py.plugins.conformance:ConformancePlugin",
    "deviceshare": "volcano_py.plugins.deviceshare:DeviceSharePlugin",
    "drf": "volcano_py.plugins.drf:DrfPlugin",
    "gang": "volcano_py.plugins.gang:GangPlugin",
    "nodeorder": "volcano_py.plugins.nodeorder:NodeOrderPlugin",
    "overcommit": "volcano_py.plugins.overcommit:OvercommitPlugin",
    "predicates": "volcano_py.plugins.predicates:PredicatesPlugin",
    "priority": "volcano_py.plugins.priority:PriorityPlugin",
    "proportion": "volcano_py.plugins.proportion:ProportionPlugin",
}
BUILT_IN_ACTIONS: Final[Mapping[str, str]] = {
    "allocate": "volcano_py.actions.allocate:AllocateAction",
    "backfill": "volcano_py.actions.backfill:BackfillAction",
    "enqueue": "volcano_py.actions.enqueue:EnqueueAction",
    "preempt": "volcano_py.actions.preempt:PreemptAction",
    "reclaim": "volcano_py.actions.reclaim:ReclaimAction",
}


def known_plugins() -> dict[str, str]:
    """Plugin name -> "module:Class"; installed packages may add names, not replace built-in ones."""
    return {**_installed(PLUGIN_GROUP), **BUILT_IN_PLUGINS}


def known_actions() -> dict[str, str]:
    """Action name -> "module:Class"."""
    return {**_installed(ACTION_GROUP), **BUILT_IN_ACTIONS}


def has_foreign_policies(config: SchedulerConfig) -> bool:
    """Whether *config* names plugins or actions that did not come with the scheduler."""
    plugins = {option.name for tier in config.tiers for option in tier.plugins}
    return bool(plugins - BUILT_IN_PLUGINS.keys() or set(config.actions) - BUILT_IN_ACTIONS.keys())


def make_plugins(config: SchedulerConfig) -> list[Plugin]:
    """The configured plugins in tier order; raises ``ConfigError`` with everything that is wrong."""
    made: list[Plugin] = []
    messages: list[str] = []
    known = known_plugins()
    for tier in config.tiers:
        for option in tier.plugins:
            try:
                plugin = _make(known[option.name], option.arguments)
                messages += _wrong_flags(plugin, option)
                made.append(plugin)
            except ConfigError as error:
                messages += error.messages
    if messages:
        raise ConfigError(messages)
    return made


def make_actions(config: SchedulerConfig) -> list[Action]:
    """The configured actions in order; raises ``ConfigError`` with everything that is wrong."""
    made: list[Action] = []
    messages: list[str] = []
    known = known_actions()
    for name in config.actions:
        try:
            made.append(_make(known[name], config.action_arguments(name)))
        except ConfigError as error:
            messages += error.messages
    if messages:
        raise ConfigError(messages)
    return made


@contextmanager
def naming_the_author() -> Iterator[None]:
    """What a third party's plugin or action raises becomes a ``ConfigError`` that names it."""
    try:
        yield
    except ConfigError:
        raise
    except Exception as error:
        author = _author(error)
        if not author:
            raise
        raise ConfigError(f"{author} of {type(error).__name__}: {error}") from error


def _author(error: Exception) -> str:
    """The third party whose code raised *error* or called what did, with file and line; else ""."""
    modules = {
        where.partition(":")[0].partition(".")[0]: f"{what} {name}"
        for what, group in (("plugin", PLUGIN_GROUP), ("action", ACTION_GROUP))
        for name, where in _installed(group).items()
    }
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        author = modules.get(str(frame.f_globals.get("__name__")).partition(".")[0])
        if author is not None:
            return f"{author}: breaks off at {Path(frame.f_code.co_filename).name}:{line} because"
    return ""


@lru_cache(maxsize=4)
def _installed(group: str) -> Mapping[str, str]:
    return {entry.name: entry.value for entry in entry_points(group=group)}


def _wrong_flags(plugin: Plugin, option: PluginOption) -> list[str]:
    """Flags that are on although *plugin* can't do what they stand for."""
    return [
        f"plugin {option.name}: {flag} is true, but {why}"
        for flag, why in plugin.UNAVAILABLE.items()
        if option.flags.get(flag)
    ]


def _make(where: str, arguments: Arguments) -> Any:
    module, _, name = where.partition(":")
    try:
        kind = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{arguments.owner}: {where} can't be loaded: {error}") from error
    faults = arguments.unknown(kind.ARGUMENTS)
    if faults:
        raise ConfigError(faults)
    return kind(arguments)
