"""Card slices one by one: which card takes a share, which cards a pod gets, how good a node is.

Loops over cards and tenants, straight from the rules (``spec`` of card sharing): a share needs its memory,
a slot, and some core of a healthy card of the right model; a full-core share needs an empty card; one
pod's shares lie on different cards.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]
REGISTER = "hami.io/node-nvidia-register"
NAMES = ("nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores")


@dataclass(frozen=True)
class Share:
    """One slice: which card of which node, MiB and percent."""

    node: str
    at: int
    memory: int
    cores: int


@dataclass(frozen=True)
class Ask:
    """Per share: memory in MiB, else percent of the card; cores in percent."""

    count: int
    memory: int
    percent: int
    cores: int
    model: str

    def need(self, card: Document) -> int:
        return self.memory or max(card["devmem"] * self.percent // 100, 1)


def ask_of(pod: Document) -> Ask | None:
    """What *pod* asks of cards."""
    asked = pod["spec"]["containers"][0].get("resources", {}).get("requests", {})
    count, memory, percent, cores = (int(asked.get(name, 0)) for name in NAMES)
    if not count:
        return None
    if not (memory or percent or cores):
        cores = 100
    model = pod["metadata"].get("annotations", {}).get("nvidia.com/use-gputype", "")
    return Ask(count, memory, 0 if memory else percent or 100, cores, model.lower())


def cards_on(node: Document) -> list[Document]:
    """The node's register."""
    found: list[Document] = json.loads(node["metadata"].get("annotations", {}).get(REGISTER, "[]"))
    return found


class CardShelf:
    """The cards of one node with who holds what."""

    def __init__(self, node: Document, held: list[Share]) -> None:
        self.cards = cards_on(node)
        self.held = [share for share in held if share.node == node["metadata"]["name"]]
        self.name = node["metadata"]["name"]

    def tenants(self, at: int) -> list[Share]:
        return [share for share in self.held if share.at == at]

    def free_memory(self, at: int) -> int:
        return int(self.cards[at]["devmem"]) - sum(share.memory for share in self.tenants(at))

    def free_cores(self, at: int) -> int:
        return int(self.cards[at]["devcore"]) - sum(share.cores for share in self.tenants(at))

    def takes(self, ask: Ask, at: int) -> bool:
        """Whether card *at* takes one share of *ask*."""
        card = self.cards[at]
        if not card["health"] or ask.model not in card["type"].lower():
            return False
        if len(self.tenants(at)) >= card["count"] or self.free_memory(at) < ask.need(card):
            return False
        if ask.cores >= 100 and self.tenants(at):
            return False
        return self.free_cores(at) >= max(ask.cores, 1)

    def choose(self, ask: Ask, order: str) -> list[Share] | None:
        """The shares that a pod gets here; None if they do not all fit."""
        fitting = [at for at in range(len(self.cards)) if self.takes(ask, at)]
        if len(fitting) < ask.count:
            return None
        if order == "spread":
            fitting.sort(
                key=lambda at: (len(self.tenants(at)), -self.free_memory(at), -self.free_cores(at), at)
            )
        else:
            fitting.sort(key=lambda at: (self.free_memory(at), self.free_cores(at), at))
        chosen = sorted(fitting[: ask.count])
        return [Share(self.name, at, ask.need(self.cards[at]), ask.cores) for at in chosen]

    def score(self, ask: Ask, order: str) -> float:
        """0 to 100: how full the chosen cards and the node's cards get; for spread, how empty they are."""
        chosen = self.choose(ask, order)
        if chosen is None:
            return 0.0
        extra = {share.at: 0 if order == "spread" else share.memory for share in chosen}
        used = [
            self.cards[at]["devmem"] - self.free_memory(at) + extra.get(at, 0)
            for at in range(len(self.cards))
        ]
        total = 0.0
        for share in chosen:
            total += min(used[share.at] / self.cards[share.at]["devmem"], 1.0)
        node = min(sum(used) / sum(card["devmem"] for card in self.cards), 1.0)
        score: float = 50.0 * (total / len(chosen) + node)
        return 100.0 - score if order == "spread" else score
