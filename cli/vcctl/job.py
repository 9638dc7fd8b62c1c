"""``vcctl-py job``: run, look at, suspend, resume and delete Jobs of batch.volcano.sh."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Final

import typer

from volcano_py.cli.lazy import NearMissGroup
from volcano_py.cli.vcctl.basic import (
    Name,
    NameOption,
    Noun,
    columns_of,
    delete_verb,
    describe_verb,
    get_verb,
    in_order,
)
from volcano_py.cli.vcctl.cluster import Cluster, CommandError, Document, run
from volcano_py.cli.vcctl.commands import one_name, order
from volcano_py.cli.vcctl.flags import NAMESPACED, Flags, verb
from volcano_py.cli.vcctl.names import queue_names
from volcano_py.cli.vcctl.queue_orders import amounts, queue_of
from volcano_py.cli.vcctl.submitting import submit
from volcano_py.cli.vcctl.tables import Column, age, say, show
from volcano_py.client.api import ApiError

app = typer.Typer(cls=NearMissGroup, no_args_is_help=True, help="Jobs of batch.volcano.sh.")

SCHEDULER: Final = "volcano-py"
"""Scheduler of jobs that are made here without a manifest."""
TYPE: Final = "volcano.sh/job-type"


def _status(key: str) -> Column:
    return Column(key[0].upper() + key[1:], lambda job: (job.get("status") or {}).get(key, 0))


def phase(job: Document) -> str:
    """Phase of *job*; Pending before anybody has looked at it."""
    return ((job.get("status") or {}).get("state") or {}).get("phase") or "Pending"


def replicas(job: Document) -> int:
    """Pods of all tasks together."""
    return sum(task.get("replicas", 0) for task in (job.get("spec") or {}).get("tasks") or [])


JOB: Final = Noun(
    "job",
    "Job",
    (
        Column("Name", lambda job: job["metadata"]["name"]),
        Column("Creation", lambda job: str(job["metadata"].get("creationTimestamp", ""))[:10]),
        Column("Phase", phase),
        Column("JobType", lambda job: (job["metadata"].get("labels") or {}).get(TYPE, "Batch")),
        Column("Replicas", replicas),
        Column("Min", lambda job: (job.get("spec") or {}).get("minAvailable", 0)),
        *(_status(key) for key in ("pending", "running", "succeeded", "failed", "unknown", "retryCount")),
        Column("Queue", queue_of, wide=True),
        Column("Age", age, wide=True),
    ),
)
get_verb(app, JOB)
describe_verb(app, JOB, "view")
delete_verb(app, JOB)


@verb(app, "list", "output", "watch", *NAMESPACED, also=("ls",))
def list_jobs(
    flags: Flags,
    queue: Annotated[
        str | None, typer.Option("-q", "--queue", help="Only jobs of this queue.", autocompletion=queue_names)
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option("-S", "--scheduler", help="Only jobs of this scheduler.")
    ] = None,
    part: Annotated[
        str,
        typer.Option("--selector", metavar="TEXT", help="Only names that hold this, as vcctl has it."),
    ] = "",
    labels: Annotated[
        str, typer.Option("-l", "--label-selector", metavar="LABELS", help="Only jobs with these labels.")
    ] = "",
) -> None:
    """List jobs.

    vcctl-py job list -A -q ml

    vcctl-py job list -l team=vision --watch
    """

    async def work(cluster: Cluster) -> None:
        async def rows() -> list[Document]:
            jobs = in_order(await cluster.every("Job", cluster.listed, labelSelector=labels))
            return [
                job
                for job in jobs
                if part in job["metadata"]["name"]
                and queue in (None, queue_of(job))
                and scheduler in (None, (job.get("spec") or {}).get("schedulerName"))
            ]

        await show(cluster, columns_of(JOB, flags), rows, ("Job",))

    run(flags, work)


@verb(app, "run", "namespace")
def run_job(
    flags: Flags,
    filename: Annotated[
        list[str] | None,
        typer.Option("-f", "--filename", metavar="FILE", help="Manifest; - is standard input."),
    ] = None,
    name: Annotated[str, typer.Option("-N", "--name", help="Name of the job.")] = "test",
    image: Annotated[str, typer.Option("-i", "--image", help="Image of its one container.")] = "busybox",
    least: Annotated[int, typer.Option("-m", "--min", min=1, help="Pods that start together.")] = 1,
    pods: Annotated[int, typer.Option("-r", "--replicas", min=1, help="Pods in all.")] = 1,
    requests: Annotated[str, typer.Option("-R", "--requests", help="What each pod asks for.")] = (
        "cpu=1000m,memory=100Mi"
    ),
    limits: Annotated[str, typer.Option("-L", "--limits", help="What each pod may use at most.")] = "",
    scheduler: Annotated[str, typer.Option("-S", "--scheduler", help="Who places its pods.")] = SCHEDULER,
    queue: Annotated[
        str, typer.Option("-q", "--queue", help="Queue it waits in.", autocompletion=queue_names)
    ] = "default",
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND...]", help="What the container runs.")
    ] = None,
) -> None:
    """Submit a job, from a manifest or from flags.

    vcctl-py job run -f train.yaml

    vcctl-py job run -N train -r 4 -m 4 -R cpu=2,nvidia.com/gpu=1 -q ml -- sleep 600
    """

    async def work(cluster: Cluster) -> None:
        if filename:
            await submit(cluster, filename, ("Job",))
            return
        asked = amounts("requests", [requests])
        # Kubernetes wants extended resources, such as cards, to be limited by what is asked.
        most = {key: value for key, value in asked.items() if "/" in key}
        most |= amounts("limits", [limits]) if limits else {}
        resources = {"requests": asked, **({"limits": most} if most else {})}
        container: Document = {"name": name, "image": image, "resources": resources}
        if command:
            container["command"] = command
        pod = {"restartPolicy": "Never", "containers": [container]}
        task = {"name": "task", "replicas": pods, "template": {"spec": pod}}
        spec = {"minAvailable": least, "queue": queue, "schedulerName": scheduler, "tasks": [task]}
        await cluster.create("Job", _job(name, cluster.namespace, spec))
        say(f"job {name} created")
        await _note_queue(cluster, queue)

    run(flags, work)


async def _note_queue(cluster: Cluster, queue: str) -> None:
    """Say so if the job waits in a queue that is not there; who may not read queues is told nothing."""
    try:
        await cluster.get("Queue", queue)
    except CommandError as missing:
        sys.stderr.write(f"note: it waits for its queue: {missing}\n")
    except ApiError:
        return


def _job(name: str, namespace: str, spec: dict[str, Any]) -> Document:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


@verb(app, "suspend", "namespace")
def suspend_job(flags: Flags, name: Name = None, named: NameOption = None) -> None:
    """Stop a job so that it can be resumed: its pods go, the job stays.

    vcctl-py job suspend train
    """
    _order(flags, name, named, "AbortJob")


@verb(app, "resume", "namespace")
def resume_job(flags: Flags, name: Name = None, named: NameOption = None) -> None:
    """Let a suspended job start again.

    vcctl-py job resume train
    """
    _order(flags, name, named, "ResumeJob")


def _order(flags: Flags, name: str | None, named: str | None, action: str) -> None:
    async def work(cluster: Cluster) -> None:
        job = await cluster.get("Job", one_name(name, named, "job"))
        made = await order(cluster, job, action, job["metadata"]["namespace"])
        say(f"job {job['metadata']['name']}: {action} ordered ({made})")

    run(flags, work)
