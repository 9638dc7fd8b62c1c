"""``vcctl-py pod``: pods by queue and job."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from volcano_py.cli.lazy import NearMissGroup
from volcano_py.cli.vcctl.basic import Noun, columns_of, describe_verb, get_verb, in_order
from volcano_py.cli.vcctl.cluster import Cluster, Document, run
from volcano_py.cli.vcctl.flags import LIST, NAMESPACED, Flags, verb
from volcano_py.cli.vcctl.names import queue_names
from volcano_py.cli.vcctl.queue_orders import queue_of
from volcano_py.cli.vcctl.tables import Column, age, show
from volcano_py.crds.annotations import GROUP, GROUP_QUEUE, JOB_QUEUE

app = typer.Typer(cls=NearMissGroup, no_args_is_help=True, help="Pods by queue and job.")

JOB: Final = "volcano.sh/job-name"
QUEUES: Final = (GROUP_QUEUE, JOB_QUEUE)


def _said(pod: Document, key: str) -> str:
    meta = pod["metadata"]
    return (meta.get("annotations") or {}).get(key) or (meta.get("labels") or {}).get(key) or ""


def _containers(pod: Document) -> list[Any]:
    return (pod.get("status") or {}).get("containerStatuses") or []


def ready(pod: Document) -> str:
    """Ready containers of all, as ``1/2``."""
    count = sum(bool(status.get("ready")) for status in _containers(pod))
    return f"{count}/{len((pod.get('spec') or {}).get('containers') or [])}"


def status(pod: Document) -> str:
    """What keeps the pod where it is: leaving, a container's reason, else its phase."""
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    told = pod.get("status") or {}
    for container in _containers(pod):
        state = container.get("state") or {}
        reason = (state.get("waiting") or state.get("terminated") or {}).get("reason")
        if reason:
            return str(reason)
    return str(told.get("reason") or told.get("phase") or "Pending")


def restarts(pod: Document) -> int:
    """Restarts of all containers."""
    return sum(container.get("restartCount", 0) for container in _containers(pod))


POD: Final = Noun(
    "pod",
    "Pod",
    (
        Column("Name", lambda pod: pod["metadata"]["name"]),
        Column("Ready", ready),
        Column("Status", status),
        Column("Restart", restarts),
        Column("Age", age),
        Column("Node", lambda pod: (pod.get("spec") or {}).get("nodeName") or "-", wide=True),
        Column("PodGroup", lambda pod: _said(pod, GROUP) or "-", wide=True),
    ),
)
get_verb(app, POD)
describe_verb(app, POD)


@verb(app, "list", *LIST, *NAMESPACED, also=("ls",))
def list_pods(
    flags: Flags,
    queue: Annotated[
        str | None, typer.Option("-q", "--queue", help="Only pods of this queue.", autocompletion=queue_names)
    ] = None,
    job: Annotated[str | None, typer.Option("-j", "--job", help="Only pods of this job.")] = None,
) -> None:
    """List pods by namespace and name.

    vcctl-py pod list -q ml -A

    vcctl-py pod list -j train -o wide
    """

    async def work(cluster: Cluster) -> None:
        async def rows() -> list[Document]:
            pods = in_order(await cluster.every("Pod", cluster.listed, labelSelector=flags.selector))
            if queue is not None:
                pods = await _of_queue(cluster, pods, queue)
            return [pod for pod in pods if job in (None, _said(pod, JOB))]

        await show(cluster, columns_of(POD, flags), rows, ("Pod",))

    run(flags, work)


async def _of_queue(cluster: Cluster, pods: list[Document], queue: str) -> list[Document]:
    """Those of *pods* that wait in *queue*: their PodGroup says so, or where they have none, they do."""
    groups = {
        (group["metadata"]["namespace"], group["metadata"]["name"]): queue_of(group)
        for group in await cluster.every("PodGroup", cluster.listed)
    }
    return [pod for pod in pods if _queue(pod, groups) == queue]


def _queue(pod: Document, groups: dict[tuple[str, str], str]) -> str:
    found = groups.get((pod["metadata"]["namespace"], _said(pod, GROUP)))
    return found or next((name for key in QUEUES if (name := _said(pod, key))), "")
