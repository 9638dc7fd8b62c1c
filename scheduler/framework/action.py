"""What an action is: a name and one run over the session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from volcano_py.crds.schedulerconfig import Arguments

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session


class Action:
    """One step of a cycle.

    Attributes:
        name: the name in the configuration's ``actions``.
        ARGUMENTS: argument key -> one line with meaning, unit, default (``configurations`` in the file).
    """

    name: ClassVar[str]
    ARGUMENTS: ClassVar[Mapping[str, str]] = {}

    def __init__(self, arguments: Arguments) -> None:
        """Read *arguments*; raises ``ConfigError`` naming key and value of what is wrong."""
        self.arguments = arguments

    def run(self, session: Session) -> None:
        """Do the step."""
        raise NotImplementedError
