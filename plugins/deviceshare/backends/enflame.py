"""Enflame: whole cards, which a node only counts."""

from __future__ import annotations

from typing import Final

from volcano_py.crds.cards.names import ResourceNames
from volcano_py.plugins.deviceshare.backend import Backend, Counted, hami_family

GCU: Final = Backend(
    vendor="enflame",
    word="GCU",
    names=ResourceNames(("enflame.com/gcu",)),
    families=hami_family("enflame-gcu"),
    counted=Counted("enflame.com/gcu", "GCU", memory_mib=100, slots=1),
    default_cores=100,
)
