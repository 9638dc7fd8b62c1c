"""``volcano-py scheduler``: the scheduler of a cluster, as a process."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from volcano_py.cli.component import Format, Level, LogFormat, LogLevel, address, fail, failed
from volcano_py.cli.option_groups import grouped
from volcano_py.client.access import AccessError
from volcano_py.crds.arguments import ConfigError
from volcano_py.crds.quantity import QuantityError, parse_quantity
from volcano_py.scheduler.cluster.writer import WriterSettings
from volcano_py.scheduler.engine import SCHEDULER_NAMES
from volcano_py.scheduler.model.kube.times import parse_duration
from volcano_py.scheduler.model.queues import DEFAULT_QUEUE
from volcano_py.scheduler.run.carry import EvictionStyle
from volcano_py.scheduler.run.logs import set_up_logs
from volcano_py.scheduler.run.loop import Pacing
from volcano_py.scheduler.run.process import Election, JournalSettings, Settings, run_scheduler

_DEFAULT_NAMES: Final = ", ".join(SCHEDULER_NAMES)


@dataclass(frozen=True, slots=True)
class Server:
    """Which API server."""

    kubeconfig: Annotated[
        str | None,
        typer.Option(help="Kubeconfig file; else $KUBECONFIG, the pod's service account, ~/.kube/config."),
    ] = None
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="The API server, whatever the kubeconfig says.")
    ] = None


@dataclass(frozen=True, slots=True)
class Leading:
    """Who of several processes decides."""

    leader_elect: Annotated[
        bool, typer.Option(help="Only one of several processes decides; the others stand by, informed.")
    ] = True
    leader_elect_lease_duration: Annotated[
        str, typer.Option(help="A standby takes over when the leader was silent for so long.")
    ] = "15s"
    leader_elect_renew_deadline: Annotated[
        str, typer.Option(help="A leader that could not renew for so long stops deciding.")
    ] = "10s"
    leader_elect_retry_period: Annotated[str, typer.Option(help="Between attempts to lead or renew.")] = "2s"
    lock_object_namespace: Annotated[str, typer.Option(help="Namespace of the Lease.")] = "volcano-system"
    lock_object_name: Annotated[str, typer.Option(help="Name of the Lease.")] = "volcano-py"

    def election(self) -> Election:
        """The settings that these say; ends the command where they can't be carried out."""
        texts = (
            self.leader_elect_lease_duration,
            self.leader_elect_renew_deadline,
            self.leader_elect_retry_period,
        )
        times = (
            _seconds("--leader-elect-lease-duration", texts[0]),
            _seconds("--leader-elect-renew-deadline", texts[1]),
            _seconds("--leader-elect-retry-period", texts[2]),
        )
        if not times[0] > times[1] > times[2] > 0:
            fail(
                "leader election needs lease-duration > renew-deadline > retry-period > 0, "
                f"not {', '.join(texts)}"
            )
        return Election(self.leader_elect, self.lock_object_namespace, self.lock_object_name, *times)


@dataclass(frozen=True, slots=True)
class Writing:
    """How decisions are carried out."""

    eviction_notice: Annotated[
        str, typer.Option(help="How long a pod is told before it is evicted, to save its work.")
    ] = "0s"
    evict_by_delete: Annotated[
        bool,
        typer.Option(
            "--evict-by-delete", help="Delete victims as Volcano does; disruption budgets are not asked."
        ),
    ] = False
    pod_events: Annotated[
        bool,
        typer.Option("--pod-events", help="An event for every pod that is bound, not one for its group."),
    ] = False
    binds_in_flight: Annotated[int, typer.Option(min=1, max=1000, help="Binds sent at a time.")] = 32

    def evictions(self) -> EvictionStyle:
        """How pods are made to go."""
        return EvictionStyle(_seconds("--eviction-notice", self.eviction_notice), self.evict_by_delete)


@dataclass(frozen=True, slots=True)
class Showing:
    """What people and programs see of the process."""

    listen_address: Annotated[
        str, typer.Option(help="Address of /metrics, /healthz and /readyz; 0 for none.")
    ] = ":8080"
    healthz_address: Annotated[
        str, typer.Option(help="A second address of the same, for probes; 0 for none.")
    ] = ":11251"
    journal: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a journal there, for volcano-py plan --replay.")
    ] = None
    journal_size: Annotated[str, typer.Option(help="Bound of the journal, such as 1Gi.")] = "256Mi"
    log_format: Format = LogFormat.json
    log_level: Level = LogLevel.info

    def kept(self) -> JournalSettings | None:
        """Where the journal is; None for nowhere."""
        return None if self.journal is None else JournalSettings(self.journal, _bytes(self.journal_size))


@grouped
def scheduler(
    server: Server,
    leading: Leading,
    writing: Writing,
    showing: Showing,
    scheduler_conf: Annotated[
        Path | None,
        typer.Option(help="Configuration file in Volcano's format, watched; the built-in one if left out."),
    ] = None,
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option(
            help=f"schedulerName of pods that are ours; may be repeated. [default: {_DEFAULT_NAMES}]"
        ),
    ] = None,
    default_queue: Annotated[
        str,
        typer.Option(help="Queue of PodGroups that name none; it is there even if no object defines it."),
    ] = DEFAULT_QUEUE,
    schedule_period: Annotated[
        str, typer.Option(help="Longest time between a change that matters and its cycle.")
    ] = "1s",
) -> None:
    """Schedule the pods of a cluster: queues, gangs, card slices.

    volcano-py scheduler --kubeconfig ~/.kube/config --no-leader-elect --log-format text
    volcano-py scheduler --scheduler-conf /etc/volcano/volcano-scheduler.conf --scheduler-name volcano
    volcano-py scheduler --eviction-notice 30s --journal /var/lib/volcano-py/journal --journal-size 1Gi

    Stops on SIGTERM: binds on their way are finished, then the lease is given back.
    Exit status is 2 if a setting or the configuration can't be carried out.
    """
    set_up_logs(level=showing.log_level.value, form=showing.log_format.value)
    settings = Settings(
        kubeconfig=server.kubeconfig,
        context=server.context,
        server=server.master,
        config=scheduler_conf,
        scheduler_names=tuple(scheduler_name or SCHEDULER_NAMES),
        default_queue=default_queue,
        pacing=Pacing(period_s=_seconds("--schedule-period", schedule_period, least=0.01)),
        election=leading.election(),
        evictions=writing.evictions(),
        writer=WriterSettings(in_flight=writing.binds_in_flight, pod_events=writing.pod_events),
        listen=address("--listen-address", showing.listen_address),
        health=address("--healthz-address", showing.healthz_address),
        journal=showing.kept(),
    )
    try:
        asyncio.run(run_scheduler(settings))
    except ConfigError as error:
        fail("--scheduler-conf: " + "\n  ".join(error.messages))
    except (AccessError, OSError) as error:
        failed(error, "--listen-address", "--healthz-address")


_GO_UNITS: Final = re.compile(r"[0-9.]+")


def _seconds(option: str, text: str, *, least: float = 0.0) -> float:
    try:
        seconds = float(text) if _GO_UNITS.fullmatch(text) else parse_duration(text)
    except ValueError:
        fail(f'{option}: "{text}" is no duration; write it like 500ms, 10s or 1m30s')
    if seconds < least:
        fail(f"{option}: {text} is less than {least:g}s")
    return seconds


def _bytes(text: str) -> int:
    try:
        size = int(parse_quantity(text))
    except QuantityError as error:
        fail(f"--journal-size: {error}")
    if size < 1 << 20:
        fail(f"--journal-size: {text} is less than 1Mi")
    return size
