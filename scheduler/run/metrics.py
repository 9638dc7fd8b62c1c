"""What the scheduler counts, under Volcano's names where these mean the same, for Prometheus to read.

Labels are bounded: queues, plugins, actions, stages, kinds and reasons; no metric is labelled with a pod or a
job. What others count already (reading, writing, leading) is read when somebody asks, not copied before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_MS: Final = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000)
_SECONDS: Final = tuple(ms / 1000 for ms in _MS)
_WAITS_S: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 7200, 86400)

Sample = tuple[str, str, tuple[str, ...], Iterable[tuple[tuple[str, ...], float]]]
"""Name, what it means, label names, and (label values, value)."""


class Metrics:
    """All of them, in a registry of their own.

    Attributes:
        refused: reason -> pods refused for it by the latest cycle; replaced as a whole, since metrics are
            asked for from another thread.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.refused: Mapping[str, int] = {}
        self.watch(self._refusals)
        self._name_as_volcano({"registry": self.registry})
        self._name_our_own({"registry": self.registry})

    def _name_as_volcano(self, made: dict[str, Any]) -> None:
        self.e2e_ms = Histogram(
            "volcano_e2e_scheduling_latency_milliseconds",
            "A whole cycle.",
            buckets=_MS,
            **made,
        )
        self.action_ms = Histogram(
            "volcano_action_scheduling_latency_milliseconds",
            "One action of a cycle.",
            ["action"],
            buckets=_MS,
            **made,
        )
        self.open_ms = Histogram(
            "volcano_open_session_duration_milliseconds", "Opening a session.", buckets=_MS, **made
        )
        self.close_ms = Histogram(
            "volcano_close_session_duration_milliseconds", "Closing a session.", buckets=_MS, **made
        )
        self.attempts = Counter(
            "volcano_schedule_attempts",
            "Pods decided about: scheduled, unschedulable, error.",
            ["result"],
            **made,
        )
        self.evictions = Counter(
            "volcano_eviction_transactions", "Evictions decided, by action.", ["action"], **made
        )
        self.victims = Gauge(
            "volcano_pod_preemption_victims", "Pods evicted by the latest cycle that evicted.", **made
        )
        self.preemptions = Counter("volcano_total_preemption_attempts", "Cycles that evicted.", **made)
        self.unschedulable_jobs = Gauge(
            "volcano_unschedule_job_count", "PodGroups that wait as a whole after the latest cycle.", **made
        )

    def _name_our_own(self, made: dict[str, Any]) -> None:
        self.cycles = Counter("volcano_py_cycles", "Cycles, by what made them due.", ["why"], **made)
        self.cycle_faults = Counter(
            "volcano_py_cycle_faults", "Cycles broken off by an exception, by step.", ["step"], **made
        )
        self.cycle_cpu_s = Counter("volcano_py_cycle_cpu_seconds", "Processor time of cycles.", **made)
        self.changes = Counter(
            "volcano_py_changes",
            "Changes taken in; moved: something that decisions depend on, with others of the batch.",
            ["effect"],
            **made,
        )
        self.change_cpu_s = Counter(
            "volcano_py_change_cpu_seconds", "Processor time of taking changes in.", **made
        )
        self.late_finds = Counter(
            "volcano_py_unannounced_decisions",
            "Decisions of cycles that nothing had announced: more than 0 is a fault of the triggers.",
            **made,
        )
        self.bind_s = Histogram(
            "volcano_py_bind_seconds", "From decision to the server's answer.", buckets=_SECONDS, **made
        )
        self.created_to_bound_s = Histogram(
            "volcano_py_created_to_bound_seconds",
            "From a pod's creation to its bind, to the second as the server writes times.",
            buckets=_WAITS_S,
            **made,
        )
        self.config_ok = Gauge(
            "volcano_py_config_last_reload_ok",
            "1 if the configuration file as it is now is in force.",
            **made,
        )
        self.config_reloads = Counter(
            "volcano_py_config_reloads", "Configurations that came into force since the start.", **made
        )
        self.journal_bytes = Counter("volcano_py_journal_bytes", "Bytes written to the journal.", **made)
        self.journal_ok = Gauge("volcano_py_journal_ok", "1 while the journal is written.", **made)

    def text(self) -> bytes:
        """Everything, in the form that Prometheus reads."""
        return generate_latest(self.registry)

    def _refusals(self) -> Iterable[Sample]:
        values = [((reason,), float(count)) for reason, count in self.refused.items()]
        meaning = "Pods refused by the latest cycle, by reason."
        yield "volcano_unschedule_task_count", meaning, ("reason",), values

    def watch(self, read: Callable[[], Iterable[Sample]]) -> None:
        """Let *read* be asked whenever somebody asks for the metrics; names in ``_total`` count up."""
        self.registry.register(_Asked(read))


class _Asked(Collector):
    """Metrics that stand elsewhere."""

    def __init__(self, read: Callable[[], Iterable[Sample]]) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: registering asks nobody."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Ask."""
        for name, meaning, labels, values in self._read():
            family: CounterMetricFamily | GaugeMetricFamily
            if name.endswith("_total"):
                family = CounterMetricFamily(name, meaning, labels=labels)
            else:
                family = GaugeMetricFamily(name, meaning, labels=labels)
            for label_values, value in values:
                family.add_metric(label_values, value)
            yield family
