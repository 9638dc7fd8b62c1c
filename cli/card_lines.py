"""One line where a report has two: queues are charged for cards under both spellings of each measure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from volcano_py.crds.quantity import to_base
from volcano_py.plugins.deviceshare.names import BOOKED, MEASURES
from volcano_py.scheduler.model.wording import NOUNS, card_figure

_TWIN: Final = {name: twin for first, second in BOOKED for name, twin in ((first, second), (second, first))}


def lines(resources: Iterable[str]) -> dict[str, str]:
    """What to call each of *resources*, one of two spellings left out.

    A resource whose twin is not there keeps its name: there the cluster counts devices, not slices.
    """
    known = list(dict.fromkeys(resources))
    told: dict[str, str] = {}
    for name in known:
        twin = _TWIN.get(name)
        if twin is None or twin not in known:
            told[name] = name
        elif twin not in told:
            told[name] = NOUNS[MEASURES[name]]
    return told


def amount(label: str, resource: str, text: str) -> str:
    """*text* of *resource* as Kubernetes writes it, for a line called *label*: with a unit for cards.

    Thousandths that arithmetic left over are rounded away.
    """
    base = to_base(resource, text)
    if label == resource and text.endswith("m") and abs(base) > 1000:
        return f"{base / 1000:.1f}".removesuffix(".0")
    return card_figure(MEASURES[resource] if label != resource else "", resource, base)
