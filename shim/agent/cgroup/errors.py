"""What goes wrong with cgroups, for those who must tell it."""

from __future__ import annotations


class CgroupError(RuntimeError):
    """Something about a cgroup can't be done; the text says what and why."""


class CgroupGone(CgroupError):  # noqa: N818 - no fault: containers end at any moment
    """The container ended meanwhile; nothing is left to do."""
