"""How well the cards of a node are linked: ``hami.io/node-nvidia-score``, a list of peers a card.

A pair's score grows with the bandwidth between the two. Both directions are written; where they differ the
link is not trusted and counts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from volcano_py.crds.cards.errors import WireError

SCORES: Final = "hami.io/node-nvidia-score"
Scores = dict[tuple[str, str], int]
"""Score of each pair of cards, their identities in sorted order."""


class _Peers(msgspec.Struct, frozen=True):
    uuid: str = ""
    score: dict[str, int] | None = None


_read: Final = msgspec.json.Decoder(list[_Peers]).decode


def encode_scores(scores: Mapping[tuple[str, str], int]) -> str:
    """*scores* of pairs, in any order of the two, as JSON; cards and peers sorted by identity."""
    peers: dict[str, dict[str, int]] = {}
    for (one, other), score in scores.items():
        peers.setdefault(one, {})[other] = score
        peers.setdefault(other, {})[one] = score
    rows = [_Peers(uuid, dict(sorted(peers[uuid].items()))) for uuid in sorted(peers)]
    return msgspec.json.encode(rows).decode()


def decode_scores(text: str) -> Scores:
    """The pairs with a score above 0 that both of their cards state; raises ``WireError``."""
    try:
        rows = _read(text)
    except (msgspec.DecodeError, ValueError) as error:
        raise WireError(f"not a list of link scores: {error}") from error
    stated = {(row.uuid, peer): score for row in rows for peer, score in (row.score or {}).items()}
    return {
        (one, other): score
        for (one, other), score in stated.items()
        if one < other and score > 0 and stated.get((other, one)) == score
    }
