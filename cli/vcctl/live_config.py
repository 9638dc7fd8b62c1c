"""The scheduler's configuration as the cluster has it: from a file that is named, or from its ConfigMap.

What that configuration leaves to a second ConfigMap, how cards are called and cut, is read as well: an answer
under other names than the scheduler's would be none.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from volcano_py.cli.vcctl.cluster import USAGE, Cluster, CommandError, Document
from volcano_py.client.api import ApiError
from volcano_py.client.resources import RESOURCES
from volcano_py.crds.arguments import ConfigError
from volcano_py.crds.schedulerconfig import DEFAULT_CONFIG, SchedulerConfig, load_scheduler_config
from volcano_py.scheduler.framework.registry import known_actions, known_plugins
from volcano_py.scheduler.run.following import CONFIG_MAP, device_config

NAMESPACE: Final = "volcano-system"
CONFIG_MAPS: Final = ("volcano-py-scheduler", "volcano-scheduler-configmap")
"""Names that are looked for there: ours, then Volcano's."""
SUFFIX: Final = ".conf"
"""What the key of a scheduler's configuration ends with, in a ConfigMap of several files."""

SchedulerConf = Annotated[
    Path | None,
    typer.Option("--scheduler-conf", metavar="FILE", help="Scheduler configuration; else its ConfigMap."),
]


@dataclass(frozen=True, slots=True)
class Source:
    """A configuration and where it was found.

    Attributes:
        cards: the ConfigMap by which cards are called and cut; None where the built-in names hold.
    """

    config: SchedulerConfig
    where: str
    cards: Document | None = None


async def scheduler_config(cluster: Cluster, file: Path | None) -> Source:
    """The configuration in force. Raises ``CommandError`` where it can't be read or carried out."""
    where, text = _file(file) if file is not None else await _config_map(cluster)
    try:
        config = load_scheduler_config(text, known_plugins(), known_actions())
        cards = device_config(config)
    except ConfigError as error:
        raise CommandError(f"{where}: {'; '.join(error.messages)}", code=USAGE) from error
    return Source(config, where, await _cards(cluster, cards) if cards else None)


async def _cards(cluster: Cluster, name: str) -> Document | None:
    """The ConfigMap *name* ("namespace/name"); None, with a note, without the right to read it."""
    namespace, _, own = name.partition("/")
    resource = RESOURCES[CONFIG_MAP]
    try:
        found: Document = await cluster.read(resource.path(namespace, own))
    except ApiError as error:
        if error.status == 404:
            return None
        if error.status != 403:
            raise
        told = f"note: ConfigMap {name} may not be read, so cards have their built-in names: {error.message}"
        sys.stderr.write(f"{told}\n")
        return None
    return {**found, "apiVersion": resource.api_version, "kind": CONFIG_MAP}


def _file(file: Path) -> tuple[str, str]:
    try:
        return str(file), file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--scheduler-conf: {file} can't be read: {error}", code=USAGE) from error


async def _config_map(cluster: Cluster) -> tuple[str, str]:
    for name in CONFIG_MAPS:
        try:
            found = await cluster.read(RESOURCES[CONFIG_MAP].path(NAMESPACE, name))
        except ApiError as error:
            if error.status in (403, 404):
                continue
            raise
        for key, text in sorted((found.get("data") or {}).items()):
            if key.endswith(SUFFIX):
                return f"ConfigMap {NAMESPACE}/{name}, {key}", str(text)
    return "the built-in defaults (no ConfigMap of the scheduler was found)", DEFAULT_CONFIG
