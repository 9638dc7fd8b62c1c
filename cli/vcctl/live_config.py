"""The scheduler's configuration as the cluster has it: from a file that is named, or from its ConfigMap."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from volcano_py.cli.vcctl.cluster import USAGE, Cluster, CommandError
from volcano_py.client.api import ApiError
from volcano_py.client.resources import RESOURCES
from volcano_py.crds.arguments import ConfigError
from volcano_py.crds.schedulerconfig import DEFAULT_CONFIG, SchedulerConfig, load_scheduler_config
from volcano_py.scheduler.framework.registry import known_actions, known_plugins

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
    """A configuration and where it was found."""

    config: SchedulerConfig
    where: str


async def scheduler_config(cluster: Cluster, file: Path | None) -> Source:
    """The configuration in force. Raises ``CommandError`` where it can't be read or carried out."""
    where, text = _file(file) if file is not None else await _config_map(cluster)
    try:
        return Source(load_scheduler_config(text, known_plugins(), known_actions()), where)
    except ConfigError as error:
        raise CommandError(f"{where}: {'; '.join(error.messages)}", code=USAGE) from error


def _file(file: Path) -> tuple[str, str]:
    try:
        return str(file), file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--scheduler-conf: {file} can't be read: {error}", code=USAGE) from error


async def _config_map(cluster: Cluster) -> tuple[str, str]:
    for name in CONFIG_MAPS:
        try:
            found = await cluster.read(RESOURCES["ConfigMap"].path(NAMESPACE, name))
        except ApiError as error:
            if error.status in (403, 404):
                continue
            raise
        for key, text in sorted((found.get("data") or {}).items()):
            if key.endswith(SUFFIX):
                return f"ConfigMap {NAMESPACE}/{name}, {key}", str(text)
    return "the built-in defaults (no ConfigMap of the scheduler was found)", DEFAULT_CONFIG
