"""Where claims are made: a starving job asks for the room its gang lacks, and gets all of it or nothing.

Everything happens in one statement (``attempt``): what fits on idle room or on room already being released
is placed first, then victims are taken for the rest, those not needed are given back, and only a gang that
will be whole is carried out. A job that holds a reservation from an earlier cycle makes no claim: its
victims are still leaving.

What was worked out for one claimant serves the next of the same kind: same queue, priority, class, and
holdings. A kind that could not be helped is not tried again until something was carried out.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from volcano_py.scheduler.framework.claim import Claim
from volcano_py.scheduler.framework.contract import PREEMPT, VICTIM_STATUSES
from volcano_py.scheduler.framework.eviction.attempt import NEVER, Attempt
from volcano_py.scheduler.framework.eviction.search import Search
from volcano_py.scheduler.framework.eviction.victims import Standing, make_offer
from volcano_py.scheduler.framework.filling import take_members, worksheet
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.resources import Mask


class Desk:
    """Takes the claims of one action in one cycle."""

    def __init__(self, session: Session, action: str) -> None:
        self.session, self.action = session, action
        self.carried_out = 0
        self._standing: Standing | None = None
        self._searches: dict[Hashable, Search] = {}
        self._kinds: dict[tuple[int, Hashable], int] = {}
        self._hopeless: dict[int, tuple[int, dict[tuple[int, bool], Refusal]]] = {}
        self._earlier: dict[int, Refusal] = {}
        self._worded: dict[tuple[int, str], tuple[Refusal, Refusal]] = {}

    def serve(self, job: Job) -> bool:
        """Make room for what the gang of *job* lacks, or for one more member of a whole gang.

        Returns:
            Whether it was carried out: members are placed, and the gang is whole or will be.
        """
        session = self.session
        attempt = Attempt(self, job, own_job=False)
        sheet = worksheet(session, job)
        kind = 0
        while members := take_members(session, job, sheet):
            # What was tried before is part of it: members placed then hold room that others may have.
            kind = self._kinds.setdefault((kind, self._kind(job, members)), len(self._kinds) + 1)
            if self._told_before(kind, members):
                sheet.fail(session, members)
                continue
            refusals = session.refusals
            self._earlier = {task: refusals[task] for task in members if task in refusals}
            left = attempt.place(members)
            sheet.fail(session, left)
            if attempt.succeeded():
                attempt.carry_out()
                return True
            self._remember(kind, left)
        attempt.give_up()
        return False

    def serve_inside(self, job: Job) -> bool:
        """Let one pending pod of *job* take the place of pods of the same job; whether it was done."""
        if not has_victims(job):
            return False
        task = worksheet(self.session, job).next(self.session)
        if task is None:
            return False
        attempt = Attempt(self, job, own_job=True)
        attempt.place([task])
        if attempt.succeeded():
            attempt.carry_out()
            return True
        attempt.give_up()
        return False

    def search(self, claim: Claim, allowed: Mask, *, firm: bool, own_job: bool) -> Search:
        """The search for claims like *claim*, in step with what has been carried out."""
        state = self.session.state
        stands = own_job or has_victims(claim.job)
        key = (
            claim.queue.row,
            claim.job.priority,
            claim.klass.row,
            firm,
            int(state.tasks.priority[claim.task]),
            claim.job.row if stands else -1,
            own_job,
            allowed.tobytes(),
        )
        known = self._searches.get(key)
        if known is not None:
            return known
        if self._standing is None:
            self._standing = Standing(self.session, self.action)
        offer = make_offer(self.session, self._standing, claim, own_job=own_job)
        search = self._searches[key] = Search(self.session, claim, offer, allowed, self.carried_out)
        return search

    def forget_searches(self) -> None:
        """What was worked out no longer holds (votes changed, victims came back): ask again."""
        self._searches.clear()

    def refuse(self, tasks: list[int], note: str) -> None:
        """Add *note* to why *tasks* wait, after what earlier actions had to say."""
        session = self.session
        for task in tasks:
            base = session.refusals.get(task)
            if base is None:
                session.refuse([task], Refusal("NoVictim", f"{self.action}: {note}"))
                continue
            earlier = self._earlier.get(task, base)
            if earlier.message.startswith(base.message.rstrip(".")):
                base = earlier
            known = self._worded.get((id(base), note))
            if known is None:
                text = f"{base.message.rstrip('.')}; {self.action}: {note}"
                known = self._worded[id(base), note] = (base, replace(base, message=text))
            session.refusals[task] = known[1]

    def _kind(self, job: Job, members: list[int]) -> Hashable:
        """What decides whether a claim can be helped."""
        tasks = self.session.state.tasks
        rows = np.array(members, np.int32)
        held = self.session.state.jobs.allocated[job.row]
        return (
            job.queue,
            job.priority,
            job.row if held.any() else -1,
            tasks.klass[rows].tobytes(),
            tasks.interruptible[rows].tobytes(),
            tasks.priority[rows].tobytes(),
            tuple(self.may_claim(task) for task in members),
        )

    def may_claim(self, task: int) -> bool:
        """*task* takes room from others at all."""
        pod = self.session.state.tasks.pods[task]
        return pod is None or pod.spec.preemption_policy != NEVER

    def _told_before(self, kind: int, members: list[int]) -> bool:
        """Nothing has been carried out since claims like this one failed: refuse *members* the same way."""
        known = self._hopeless.get(kind)
        if known is None or known[0] != self.carried_out:
            return False
        tasks, refusals = self.session.state.tasks, known[1]
        for task in members:
            refusal = refusals.get((int(tasks.klass[task]), bool(tasks.interruptible[task])))
            self.session.refusals[task] = refusal or next(iter(refusals.values()))
        return True

    def _remember(self, kind: int, left: list[int]) -> None:
        tasks, refusals = self.session.state.tasks, self.session.refusals
        if left:
            told = {(int(tasks.klass[t]), bool(tasks.interruptible[t])): refusals[t] for t in left}
            self._hopeless[kind] = (self.carried_out, told)


def has_victims(job: Job) -> bool:
    """*job* has pods that could go."""
    return any(job.counts[status] for status in VICTIM_STATUSES[PREEMPT])


def claimants(session: Session) -> list[Job]:
    """Admitted, sound jobs that starve and hold no reservation from an earlier cycle."""
    state, reserved = session.state, session.reservations.jobs()
    found = []
    for row in sorted(state.jobs.with_pending - reserved):
        job = state.jobs[row]
        if session.job_starving(job) and not session.waits_at_gate(job) and session.job_problem(job) is None:
            found.append(job)
    return found
