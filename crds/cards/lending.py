"""How far a node hands out more of its cards than they have, as people mark it.

The scheduler gives what is beyond a card to those who can be interrupted; the node's agent lets that much in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano_py.crds.cards.errors import WireError

LENDS: Final = "volcano-py.io/oversubscribe"
"""Of a node: percent of their memory and cores that its cards give to pods which can be interrupted."""
NOTHING: Final = 100
"""Percent that a card has."""
_MOST: Final = 1000


def lent_percent(notes: Mapping[str, str]) -> int:
    """Percent of its cards that a node with the annotations *notes* hands out; raises ``WireError``."""
    text = notes.get(LENDS)
    if text is None:
        return NOTHING
    if not text.isdecimal() or not NOTHING <= int(text) <= _MOST:
        raise WireError(f"must be percent from {NOTHING} to {_MOST}, not {text!r}")
    return int(text)
