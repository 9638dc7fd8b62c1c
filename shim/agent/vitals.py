"""What the agent counts of itself, for Prometheus; figures of slices and cards are not here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

PREFIX: Final = "volcano_py_agent_"
GAUGES: Final = {
    "cards": "Cards that are known.",
    "cards_unwell": "Cards that take no new slices.",
    "slices": "Slices on disk.",
}
COUNTERS: Final = {
    "registrations": "Registrations that a kubelet took.",
    "denials": "Requests of the kubelet that were denied.",
    "publications": "Writes of the node's annotations.",
    "publication_failures": "Such writes that failed.",
}


class Vitals(Collector):
    """A registry of the figures that *count* gives, by name without prefix.

    Attributes:
        registry: others may add collectors of their own.
    """

    def __init__(self, count: Callable[[], Mapping[str, float]]) -> None:
        self._count = count
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """The figures of now."""
        values = self._count()
        for name, line in GAUGES.items():
            yield GaugeMetricFamily(PREFIX + name, line, value=values[name])
        for name, line in COUNTERS.items():
            yield CounterMetricFamily(PREFIX + name, line, value=values[name])

    def describe(self) -> list[Metric]:
        """Names only: the figures may not be there yet."""
        return []

    def text(self) -> bytes:
        """All metrics of the registry."""
        return generate_latest(self.registry)
