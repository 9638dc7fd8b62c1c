"""The configuration file: read at the start, and again whenever its content has changed.

The content is compared, not the file's times, since a mounted ConfigMap is replaced by a symbolic link that
points elsewhere. A file that can't be carried out changes nothing: the last good one stays in force, and says
so until the file is mended.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from volcano_py.crds.arguments import ConfigError
from volcano_py.crds.schedulerconfig import DEFAULT_CONFIG, SchedulerConfig, load_scheduler_config
from volcano_py.scheduler.framework.registry import known_actions, known_plugins, make_actions, make_plugins

LARGEST: Final = 1 << 18
"""Characters of a file that is read: a larger one would hold up the lease while it is parsed."""


@dataclass(frozen=True, slots=True)
class Configured:
    """A configuration with the text it was read from."""

    text: str
    config: SchedulerConfig


def read_config(text: str) -> Configured:
    """*text* as a configuration that can be carried out; raises ``ConfigError`` with all that is wrong."""
    config = load_scheduler_config(text, known_plugins(), known_actions())
    make_plugins(config)
    make_actions(config)
    return Configured(text, config)


class ConfigFile:
    """See the module.

    Attributes:
        path: None where no file was named: the built-in configuration holds for good.
        trouble: what is wrong with the file as it is now; "" if nothing.
        reloads: how often another configuration was read since the start.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.trouble = ""
        self.reloads = 0
        self._seen: str | None = ""
        self._good = ""

    def first(self) -> Configured:
        """The configuration to start with; raises ``ConfigError`` naming the file and everything wrong."""
        text = self._text() if self.path is not None else DEFAULT_CONFIG
        self._seen = self._good = text
        return read_config(text)

    def changed(self) -> Configured | None:
        """Another configuration, if the file holds one now; what is wrong with it stands in ``trouble``.

        Reads the file only; nothing here blocks for longer than that.
        """
        if self.path is None:
            return None
        try:
            text = self._text()
            if text == self._seen:
                return None
            self._seen = text
            found = read_config(text)
        except ConfigError as error:
            self.trouble = str(error)
            return None
        self.trouble = ""
        if text == self._good:
            return None
        self._good = text
        self.reloads += 1
        return found

    def _text(self) -> str:
        if self.path is None:
            return DEFAULT_CONFIG
        try:
            with self.path.open(encoding="utf-8") as file:
                text = file.read(LARGEST + 1)
        except (OSError, UnicodeDecodeError) as error:
            self._seen = None  # whatever stands there counts as new when it can be read again
            raise ConfigError(f"{self.path} can't be read: {error}") from error
        if len(text) > LARGEST:
            self._seen = None
            raise ConfigError(f"{self.path} can't be read: it has more than {LARGEST} characters")
        return text
