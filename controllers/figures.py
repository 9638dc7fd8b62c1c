"""What the controllers count, for Prometheus to read; worked out when it is asked for.

``volcano_queue_pod_group_*_count`` are Volcano's names. No metric is labelled with a pod or a group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from volcano_py.controllers.intake import Intake
from volcano_py.controllers.observed import KINDS, Observed
from volcano_py.controllers.queue.reconcile import counted
from volcano_py.controllers.reconciler import Reconciler
from volcano_py.controllers.records import PHASES

__all__ = ["Counted", "Figures"]


class Counted(Protocol):
    """What there is to count while this process leads."""

    seen: Observed
    intake: Intake
    reconciler: Reconciler


class Figures(Collector):
    """All metrics, in a registry of their own.

    Attributes:
        term: None while another process leads.
        writes: requests that change something, by verb and kind.
        failures: of keys, by status, ``unreachable`` or ``fault``.
        terms: how often this process began to lead or began anew.
    """

    def __init__(self) -> None:
        self.term: Counted | None = None
        self.writes: Counter[tuple[str, str]] = Counter()
        self.failures: Counter[str] = Counter()
        self.terms = 0
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def begin(self, term: Counted) -> None:
        """This process leads from now on."""
        self.term = term
        self.terms += 1

    def end(self) -> None:
        """It doesn't any more."""
        self.term = None

    def count_write(self, verb: str, kind: str) -> None:
        """A request that changes something is sent."""
        self.writes[verb, kind] += 1

    def count_failure(self, reason: str) -> None:
        """A key has to be tried again."""
        self.failures[reason] += 1

    def text(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """For the registry."""
        yield from self._own()
        if self.term is not None:
            yield from _queues(self.term.seen)
            yield from _work(self.term)

    def _own(self) -> Iterator[Metric]:
        leading = 0.0 if self.term is None else 1.0
        yield GaugeMetricFamily("volcano_controller_leading", "Whether this process leads.", value=leading)
        yield CounterMetricFamily("volcano_controller_terms", "Times it began to lead.", value=self.terms)
        writes = CounterMetricFamily(
            "volcano_controller_writes", "Requests that change something.", labels=["verb", "kind"]
        )
        for labels, number in self.writes.items():
            writes.add_metric(labels, number)
        yield writes
        failures = CounterMetricFamily(
            "volcano_controller_failures", "Keys that had to be tried again later.", labels=["reason"]
        )
        for reason, number in self.failures.items():
            failures.add_metric([reason], number)
        yield failures


def _queues(seen: Observed) -> Iterator[Metric]:
    families = {
        phase: GaugeMetricFamily(
            f"volcano_queue_pod_group_{phase}_count",
            f"PodGroups of the queue that are {phase}.",
            labels=["queue_name"],
        )
        for phase in PHASES
    }
    for name in seen.queue_names():
        for phase, number in counted(seen, name).items():
            families[phase].add_metric([name], number)
    yield from families.values()


def _work(term: Counted) -> Iterator[Metric]:
    waiting = GaugeMetricFamily(
        "volcano_controller_waiting_keys", "Keys to be looked at.", labels=["controller"]
    )
    for controller, number in term.reconciler.waiting.items():
        waiting.add_metric([controller], number)
    yield waiting
    known = GaugeMetricFamily("volcano_controller_objects", "Objects known.", labels=["kind"])
    events = CounterMetricFamily("volcano_controller_watch_events", "Events taken.", labels=["kind"])
    lists = CounterMetricFamily("volcano_controller_lists", "Complete lists taken.", labels=["kind"])
    for kind in KINDS:
        known.add_metric([kind], term.seen.size(kind))
        events.add_metric([kind], term.intake.events[kind])
        lists.add_metric([kind], term.intake.lists[kind])
    yield from (known, events, lists)
