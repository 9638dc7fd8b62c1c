"""overcommit: the gate lets in a little more than fits.

Admits a group while its minimum, with what admitted groups still ask for, stays under the cluster's
amounts times a factor, less what is in use. A job inside its own queue's entitlement also passes when
others hold what it lacks beyond theirs: it will take that back. Limits of queues are looked at by the
share plugins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from volcano_py.crds.arguments import Arguments, ConfigError
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.points import Vote
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.model.jobs import Job
from volcano_py.scheduler.model.resources import Ints, pad
from volcano_py.scheduler.model.wording import absent_text, figure, noun

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session

FACTOR: Final = "overcommit-factor"
DEFAULT_FACTOR: Final = 1.2


class OvercommitPlugin(Plugin):
    """See the module."""

    name: ClassVar = "overcommit"
    ARGUMENTS: ClassVar = {
        FACTOR: f"how much of the cluster may be promised, 1 being all of it; default {DEFAULT_FACTOR}",
    }

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.factor = arguments.get_float(FACTOR, DEFAULT_FACTOR)
        if self.factor < 1:
            raise ConfigError(
                f'plugin overcommit: argument "{FACTOR}" must be 1 or more, not {self.factor:g}'
            )

    def open(self, session: Session) -> None:
        """Hang the vote; amounts are looked at when somebody asks."""
        self._session = session
        self._idle: tuple[int, Ints] | None = None
        self.books = session.gate
        self.books.attach(session)
        session.points.job_enqueueable.add(self.name, self.lets_in)

    def lets_in(self, job: Job) -> Vote | Refusal:
        """Whether the cluster could take the minimum of *job* besides those already admitted."""
        if job.min_resources is None:
            return Vote.PERMIT
        self.books.refresh()
        asked = pad(job.min_resources, self._session.state.vocabulary.width)
        idle = self.idle() - self.books.coming_total
        over = np.where(asked > 0, asked - idle, 0)
        if (over <= 0).all() or self._can_take_back(job, asked, over):
            return Vote.PERMIT
        return self._refusal(asked, idle, over)

    def _refusal(self, asked: Ints, idle: Ints, over: Ints) -> Refusal:
        """What is *over* (R,) when *asked* meets what is *idle*; a resource that nobody has says so."""
        state, nodes = self._session.state, self._session.state.nodes
        offered = nodes.allocatable[nodes.live].sum(axis=0)
        absent = (over > 0) & (offered == 0)
        at = int((absent if absent.any() else over).argmax())
        name = state.vocabulary.names[at]
        wanted, free, left, short = (
            figure(state, name, int(amount[at])) for amount in (asked, self._free(), idle, over)
        )
        missing = {name: int(over[at])}
        if offered[at] == 0:
            return Refusal("NotOffered", f"{absent_text(state, name)}; {wanted} asked", missing=missing)
        return Refusal(
            "ClusterFull",
            f"{wanted} {noun(state, name)} asked with {free} free in the cluster and {left} left to promise "
            f"(overcommit-factor {self.factor:g}), {short} over",
            missing=missing,
        )

    def idle(self) -> Ints:
        """(R,) the cluster times the factor, less what is used on the nodes that are counted."""
        nodes = self._session.state.nodes
        if self._idle is None or self._idle[0] != nodes.epoch:
            counted = nodes.live & ~nodes.unschedulable
            promised = (nodes.allocatable[counted].sum(axis=0) * self.factor).astype(np.int64)
            self._idle = (nodes.epoch, promised - nodes.used[counted].sum(axis=0))
        return self._idle[1]

    def _free(self) -> Ints:
        """(R,) what nobody holds on the nodes that are counted."""
        nodes = self._session.state.nodes
        counted = nodes.live & ~nodes.unschedulable
        free: Ints = (nodes.allocatable[counted] - nodes.used[counted]).sum(axis=0)
        return free

    def _can_take_back(self, job: Job, asked: Ints, over: Ints) -> bool:
        """What is missing is held by other queues above their entitlement, and *job* is inside its own."""
        shares, queues = self._session.shares, self._session.state.queues
        if shares is None:
            return False
        holds = queues.allocated - queues.releasing + queues.pipelined
        mine = holds[job.queue] + self.books.coming[job.queue] + asked
        if (np.where(asked > 0, mine - shares.entitlement[job.queue], 0) > 0).any():
            return False
        others = [q.row for q in queues.queues if q is not None and q.leaf and q.row != job.queue]
        borrowed = np.sum([shares.over(row, holds[row]) for row in others], axis=0, dtype=np.int64)
        return bool((over <= borrowed).all())
