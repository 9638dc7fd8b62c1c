"""``vcctl-py explain pod|podgroup|queue NAME``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Final

import typer

from volcano_py.cli.lazy import NearMissGroup
from volcano_py.cli.vcctl.cluster import Cluster, CommandError, run
from volcano_py.cli.vcctl.explain.claims import (
    awaited,
    last_events,
    tell_claims,
    told_by_pod,
    told_of_members,
)
from volcano_py.cli.vcctl.explain.estimate import estimate, run_times
from volcano_py.cli.vcctl.explain.groups import add_estimate, group_story, pod_story
from volcano_py.cli.vcctl.explain.history import told_by_events, written_on
from volcano_py.cli.vcctl.explain.queues import queue_story
from volcano_py.cli.vcctl.explain.story import Story, tell
from volcano_py.cli.vcctl.flags import ONE, Flags, verb
from volcano_py.cli.vcctl.live_config import SchedulerConf
from volcano_py.cli.vcctl.names import object_names
from volcano_py.cli.vcctl.snapshot import Snapshot, outlook, snapshot
from volcano_py.cli.vcctl.tables import print_data
from volcano_py.scheduler.engine import Engine
from volcano_py.scheduler.model.tasks import NOWHERE, Status


class _Kinds(NearMissGroup):
    """The kinds, under their short names too, and as ``KIND/NAME``, which is what ``-o name`` prints."""

    spellings: ClassVar = {
        "po": "pod", "pods": "pod", "pg": "podgroup", "podgroups": "podgroup",
        "q": "queue", "queues": "queue",
    }  # fmt: skip

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The kind that *args* begin with."""
        kind, slash, name = args[0].partition("/") if args else ("", "", "")
        if slash:
            args = [kind.partition(".")[0], name, *args[1:]]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Kinds, no_args_is_help=True, help="Why a pod, PodGroup or queue is as it is, in numbers."
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The object.", autocompletion=object_names)]
DEFAULT: Final = "default-scheduler"
NoEstimate = Annotated[bool, typer.Option("--no-estimate", help="Don't work out when it may start.")]


@verb(app, "pod", *ONE, "namespace")
def explain_pod(
    flags: Flags, name: Name, scheduler_conf: SchedulerConf = None, no_estimate: NoEstimate = False
) -> None:
    """Say why a pod runs where it runs, or why it waits and what would have to change.

    vcctl-py explain pod train-0 -n ml, or pod/train-0

    vcctl-py explain pod train-0 -n ml -o json
    """

    async def work(cluster: Cluster) -> None:
        pod = await cluster.get("Pod", name)
        seen = await snapshot(cluster, scheduler_conf)
        key = f"{cluster.namespace}/{name}"
        scheduler = pod["spec"].get("schedulerName", DEFAULT)
        story = pod_story(seen, outlook(seen.engine, seen.now), key, scheduler)
        story.evictions = [*written_on(pod), *await told_by_events(cluster, cluster.namespace, "Pod", name)]
        if story.reasons and not no_estimate:
            await _estimate(cluster, seen, story, lambda engine: _runs(engine, key), _group_of(seen, key))
        if claims := awaited(seen, key).get(key):
            tell_claims(story, claims, await last_events(cluster, seen, claims))
            story.notes += told_by_pod(pod)
        _print(flags, story)

    run(flags, work)


@verb(app, "podgroup", *ONE, "namespace")
def explain_group(
    flags: Flags, name: Name, scheduler_conf: SchedulerConf = None, no_estimate: NoEstimate = False
) -> None:
    """Say why a gang runs or waits, who stands before it, and when it may start.

    vcctl-py explain podgroup train -n ml
    """

    async def work(cluster: Cluster) -> None:
        await cluster.get("PodGroup", name)
        seen = await snapshot(cluster, scheduler_conf)
        key = f"{cluster.namespace}/{name}"
        ahead = outlook(seen.engine, seen.now)
        job = seen.engine.state.jobs.named(key)
        if job is None:
            problems = seen.engine.state.problems.get(f"PodGroup {key}", [])
            raise CommandError(f"PodGroup {key} is not valid: {'; '.join(map(str, problems))}")
        story = group_story(seen, ahead, job)
        story.evictions = await told_by_events(cluster, cluster.namespace, "PodGroup", name)
        story.notes += told_of_members(seen, key)
        if story.reasons and not no_estimate:
            started = _nobody_waits if _whole(seen.engine, key) else _whole
            await _estimate(cluster, seen, story, lambda engine: started(engine, key), key)
        _print(flags, story)

    run(flags, work)


@verb(app, "queue", *ONE)
def explain_queue(flags: Flags, name: Name, scheduler_conf: SchedulerConf = None) -> None:
    """Say what a queue holds against what it may, who waits in it, what it lends and borrowed.

    vcctl-py explain queue ml
    """

    async def work(cluster: Cluster) -> None:
        await cluster.get("Queue", name)
        seen = await snapshot(cluster, scheduler_conf)
        ahead = outlook(seen.engine, seen.now)
        queue = seen.engine.state.queues.named(name)
        if queue is None:
            problems = seen.engine.state.problems.get(f"Queue {name}", [])
            raise CommandError(f"Queue {name} is not valid: {'; '.join(map(str, problems))}")
        _print(flags, queue_story(seen, ahead, queue))

    run(flags, work)


async def _estimate(
    cluster: Cluster, seen: Snapshot, story: Story, started: Callable[[Engine], bool], group: str
) -> None:
    seconds = await run_times(cluster)
    add_estimate(story, estimate(seen.again(), seen.now, seconds, started, group), seen.now)


def _group_of(seen: Snapshot, pod: str) -> str:
    """The PodGroup of *pod*, both "namespace/name"; "" where it is in none that is known."""
    state = seen.engine.state
    task = state.tasks.index.get(pod, NOWHERE)
    row = NOWHERE if task == NOWHERE else int(state.tasks.job[task])
    return "" if row == NOWHERE else state.jobs[row].key


def _runs(engine: Engine, pod: str) -> bool:
    tasks = engine.state.tasks
    task = tasks.index.get(pod, NOWHERE)
    return task != NOWHERE and tasks.status[task] in (Status.BINDING, Status.BOUND, Status.RUNNING)


def _whole(engine: Engine, group: str) -> bool:
    job = engine.state.jobs.named(group)
    return job is not None and job.ready() >= max(job.min_member, 1)


def _nobody_waits(engine: Engine, group: str) -> bool:
    """What is asked of a group that has started: when do the others of its pods?"""
    job = engine.state.jobs.named(group)
    return job is not None and not job.pending


def _print(flags: Flags, story: Story) -> None:
    if not print_data(flags, story.data()):
        tell(story)
