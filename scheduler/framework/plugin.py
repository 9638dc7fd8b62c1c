"""What a plugin is: a name, its arguments, and functions it hangs on extension points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from volcano_py.crds.schedulerconfig import Arguments

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session
    from volcano_py.scheduler.model.cards import CardSource


class Plugin:
    """One policy.

    A plugin lives as long as its configuration; ``open`` is called at the start of every cycle with
    that cycle's session and hangs functions on ``session.points``. What must survive cycles belongs to
    the cluster state; what a plugin keeps is a cache it can always rebuild.

    Attributes:
        name: the name in the configuration file.
        ARGUMENTS: argument key -> one line with its meaning, unit and default. A key that ends in
            ``*`` allows every key with that beginning. Anything else in the file is an error.
        UNAVAILABLE: flag (``enableXxx``) that may not be switched on -> why not.
    """

    name: ClassVar[str]
    ARGUMENTS: ClassVar[Mapping[str, str]] = {}
    UNAVAILABLE: ClassVar[Mapping[str, str]] = {}

    def __init__(self, arguments: Arguments) -> None:
        """Read *arguments*; raises ``ConfigError`` naming key and value of what is wrong."""
        self.arguments = arguments

    def open(self, session: Session) -> None:
        """Hang this plugin's functions on *session*'s points."""
        raise NotImplementedError

    def volumes_taken(self) -> Mapping[str, str]:
        """Claims that wait for their pod, which now has a node -> the free volume kept for each.

        Keys are "namespace/name"; a claim that is left out gets a volume made. Asked after a cycle.
        """
        return {}

    def card_source(self) -> CardSource | None:
        """How pods and nodes speak of cards, if this plugin knows (at most one configured does)."""
        return None
