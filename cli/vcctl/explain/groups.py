"""The story of a PodGroup, and of a pod as a member of one."""

from __future__ import annotations

from typing import Final

from volcano_py.cli.vcctl.explain.advice import changes
from volcano_py.cli.vcctl.explain.alone import behind_the_gate
from volcano_py.cli.vcctl.explain.estimate import Estimate
from volcano_py.cli.vcctl.explain.near_misses import near_misses
from volcano_py.cli.vcctl.explain.queues import called, limits
from volcano_py.cli.vcctl.explain.story import Story, reason
from volcano_py.cli.vcctl.snapshot import Outlook, Snapshot
from volcano_py.cli.vcctl.tables import counted, span
from volcano_py.crds.annotations import GROUP
from volcano_py.scheduler.engine import SCHEDULER_NAMES
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.kube.times import format_time
from volcano_py.scheduler.model.tasks import NOWHERE, Status
from volcano_py.simulator.reasons import waiting_reason

AHEAD: Final = 5
"""Groups before one that are named."""
_STANDS: Final = (Status.BINDING, Status.BOUND, Status.RUNNING)


def pod_story(seen: Snapshot, ahead: Outlook, pod: str, scheduler: str) -> Story:
    """Why *pod* ("namespace/name") is where it is; *scheduler* is the one it names."""
    state = seen.engine.state
    task = state.tasks.index.get(pod, NOWHERE)
    story = Story(f"Pod {pod}", configuration=seen.source.where)
    refusal = waiting_reason(seen.engine, ahead.result, pod)
    if scheduler not in SCHEDULER_NAMES:
        story.verdict = f"belongs to scheduler {scheduler}, not to ours ({', '.join(SCHEDULER_NAMES)})"
        if task == NOWHERE:
            story.changes.append(
                f"spec.schedulerName {SCHEDULER_NAMES[0]} in what makes it, if it is to be ours"
            )
        return story
    if task == NOWHERE:
        story.verdict = "its object can't be read"
        story.changes += [] if refusal is None else ["mend the field that is named"]
    else:
        story.verdict = _pod_verdict(seen, ahead, pod, task, waits=refusal is not None)
    if refusal is not None:
        story.reasons.append(reason(refusal))
    story.near_misses = near_misses(state, pod) if refusal is not None else []
    job = _job_of(seen, task)
    if job is not None:
        _add_group(story, seen, ahead, job, [refusal] if refusal else [])
    elif refusal is not None and task != NOWHERE:
        story.changes.append(
            f"a PodGroup: `volcano-py controller` makes one for a plain pod, if it runs (where the server "
            f"refused one, kubectl describe pod says why); or name one by {GROUP}"
        )
    return story


def group_story(seen: Snapshot, ahead: Outlook, job: Job) -> Story:
    """Why the PodGroup of *job* is as it is."""
    state = seen.engine.state
    story = Story(f"PodGroup {job.key}", _group_verdict(seen, ahead, job), configuration=seen.source.where)
    refusals = _refusals(seen, ahead, job)
    story.reasons = [reason(refusal, pods) for refusal, pods in refusals]
    whole = ahead.result.job_refusals.get(job.key)
    if whole is not None and not story.reasons:
        story.reasons.append(reason(whole))
    told = [refusal for refusal, _ in refusals] or ([whole] if whole is not None else [])
    if told and job.tasks:
        story.near_misses = near_misses(
            state, min(state.tasks.keys[task] for task in job.pending or job.tasks)
        )
    _add_group(story, seen, ahead, job, told)
    return story


def _add_group(story: Story, seen: Snapshot, ahead: Outlook, job: Job, refusals: list[Refusal]) -> None:
    """What the gate hides, and what the group's place in its queue has to do with it."""
    hidden = behind_the_gate(seen, job) if refusals else None
    if hidden is not None:
        story.reasons.append(reason(hidden))
        refusals = [*refusals, hidden]
    ways = [way for refusal in refusals for way in changes(seen.engine.state, job, refusal)]
    story.changes = list(dict.fromkeys(ways))
    if refusals:
        story.limits = limits(seen.engine, ahead, job.queue_name, job)
        story.line = _place(seen, ahead, job)


def add_estimate(story: Story, found: Estimate, now: float) -> None:
    """Say when it may start, as far as anybody knows."""
    if found.in_vain:
        story.estimate = {"text": "never by waiting alone: it would not start even if all that runs ended"}
        return
    others = _unknown_ends(found.endless)
    if found.start is None:
        why = "the time for an answer was over" if found.cut_short else "no work with a known end makes room"
        story.estimate = {"text": f"unknown: {why}{others}"}
        return
    wait = found.start - now
    when = "in the next cycle" if wait < 1 else f"about {format_time(found.start)} (in {span(wait)})"
    story.estimate = {
        "start": format_time(found.start),
        "inSeconds": int(wait),
        "text": f"{when}, if work ends when it says it does{others}",
    }


def _unknown_ends(endless: int) -> str:
    if not endless:
        return ""
    one = endless == 1
    say = "doesn't say how long it runs" if one else "don't say how long they run"
    return f"; {counted(endless, 'running pod')} {say}"


# -- verdicts -----------------------------------------------------------------------------------


def _pod_verdict(seen: Snapshot, ahead: Outlook, pod: str, task: int, *, waits: bool) -> str:
    state = seen.engine.state
    status = Status(int(state.tasks.status[task]))
    node = state.nodes.names[state.tasks.node[task]] if state.tasks.node[task] != NOWHERE else ""
    for decision in ahead.result.decisions:
        if decision.pod == pod and decision.kind == "bind":
            return f"starts on node {decision.node} in the next cycle ({decision.reason})"
        if decision.pod == pod and decision.kind == "evict":
            return f"runs on node {decision.node} and is evicted in the next cycle for {decision.for_whom}"
    if status in _STANDS:
        since = float(state.tasks.started[task])
        return f"has node {node}" + (f" since {span(seen.now - since)}" if since else "")
    if status is Status.RELEASING:
        return f"is leaving node {node}"
    if waits:
        return f"waits for {span(seen.now - float(state.tasks.created[task]))}"
    return f"is {status.name.lower()}"


def _group_verdict(seen: Snapshot, ahead: Outlook, job: Job) -> str:
    state = seen.engine.state
    if job.group is None:
        return "does not exist, but pods name it"
    starts = sum(
        decision.kind == "bind" and _job_of(seen, state.tasks.index.get(decision.pod, NOWHERE)) is job
        for decision in ahead.result.decisions
    )
    standing = job.standing - starts
    parts = [f"{job.phase}, needs {counted(job.min_member, 'pod')}, has {len(job.tasks)}"]
    for count, verb, when in (
        (standing, "run", ""),
        (starts, "start", " in the next cycle"),
        (len(job.pending), "wait", ""),
    ):
        if count:
            parts.append(f"{count} {verb}{'s' if count == 1 else ''}{when}")
    finished = job.count(Status.SUCCEEDED) + job.count(Status.FAILED)
    if finished:
        parts.append(f"{finished} finished")
    if job.boost:
        parts.append(f"boost {job.boost}")
    return ", ".join(parts)


def _refusals(seen: Snapshot, ahead: Outlook, job: Job) -> list[tuple[Refusal, list[str]]]:
    """Why its pods wait, each reason with the pods it was said of; in the order of their names."""
    keys = sorted(seen.engine.state.tasks.keys[task] for task in job.pending)
    by_message: dict[str, tuple[Refusal, list[str]]] = {}
    for key in keys:
        refusal = waiting_reason(seen.engine, ahead.result, key)
        if refusal is not None:
            by_message.setdefault(refusal.message, (refusal, []))[1].append(key)
    return list(by_message.values())


def _place(seen: Snapshot, ahead: Outlook, job: Job) -> dict[str, object]:
    line = ahead.lines.get(job.queue_name, [])
    if job.key not in line:
        return {}
    position = line.index(job.key)
    before = line[max(0, position - AHEAD) : position]
    return {
        "queue": job.queue_name,
        "position": position + 1,
        "of": len(line),
        "ahead": before,
        "aheadCalled": [called(seen.engine.state, key) for key in before],
    }


def _job_of(seen: Snapshot, task: int) -> Job | None:
    state = seen.engine.state
    row = NOWHERE if task == NOWHERE else int(state.tasks.job[task])
    return None if row == NOWHERE else state.jobs[row]
