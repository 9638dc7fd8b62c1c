"""The error of everything that is read here."""

from __future__ import annotations


class WireError(ValueError):
    """A text that does not say what it should; the message names the part that is wrong."""
