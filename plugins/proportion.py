"""proportion: the cluster is shared among queues by weight.

Each queue deserves a weighted max-min share of what queues ask, at least its guarantee; it may reach
its ``max`` and what others' guarantees leave. What it is entitled to, and may not be denied, is its
guarantee plus its weight's share of the rest. How that limits, orders and makes victims is common to
all share plugins: ``scheduler/framework/queue_rules.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from volcano_py.crds.arguments import Arguments
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.queue_claims import queue_claims
from volcano_py.scheduler.framework.queue_rules import Owed, QueueRules
from volcano_py.scheduler.framework.quota import proportional_deserved, proportional_entitlement, reach
from volcano_py.scheduler.framework.shares import QueueShares
from volcano_py.scheduler.model.cluster import ClusterState

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session

FIRM_BORROW: Final = "proportion.nonInterruptibleBorrow"


class ProportionPlugin(Plugin):
    """See the module."""

    name: ClassVar = "proportion"
    ARGUMENTS: ClassVar = {
        FIRM_BORROW: "jobs that may not be interrupted may borrow too, as in Volcano; default false",
    }

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.firm_borrow = arguments.get_bool(FIRM_BORROW, False)

    def open(self, session: Session) -> None:
        """Work out this cycle's shares and hang the rules of sharing."""
        QueueRules(session, self.name, owed(session.state, self.firm_borrow)).hang(session)


def owed(state: ClusterState, firm_borrow: bool) -> Owed:
    """What queues are owed by weight, as *state* stands."""
    claims = queue_claims(state)
    _, limit = reach(claims, lent=True)
    real, firm_limit = reach(claims, lent=False)
    queues = state.queues
    request = queues.allocated - queues.releasing + queues.pipelined + state.awaited()
    shares = QueueShares(
        ProportionPlugin.name,
        proportional_deserved(claims, real, request),
        proportional_entitlement(claims, real),
        limit,
        firm_borrow,
    )
    return Owed(shares, firm_limit, claims.guarantee)
