"""capacity: queues are owed what their objects state.

A queue is entitled to its ``deserved``, at least its guarantee; what nobody states of a resource is
shared by weight among the queues that state nothing of it. With ``enableHierarchy`` queues form a
tree, and a claim is answered by the nearest relatives first. How all that limits, orders and makes
victims is common to all share plugins: ``scheduler/framework/queue_rules.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from volcano_py.crds.arguments import Arguments, ConfigError
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.queue_claims import queue_claims
from volcano_py.scheduler.framework.queue_rules import Owed, QueueRules
from volcano_py.scheduler.framework.quota import reach, stated_entitlement
from volcano_py.scheduler.framework.shares import QueueShares
from volcano_py.scheduler.model.cluster import ClusterState

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session

FIRM_BORROW: Final = "capacity.nonInterruptibleBorrow"
RECLAIM_LEVEL: Final = "ancestorReclaimLevel"


class CapacityPlugin(Plugin):
    """See the module."""

    name: ClassVar = "capacity"
    ARGUMENTS: ClassVar = {
        FIRM_BORROW: "jobs that may not be interrupted may borrow too, as in Volcano; default false",
        RECLAIM_LEVEL: "levels above its leaf at which a claim on others may be measured; default 0",
    }

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.firm_borrow = arguments.get_bool(FIRM_BORROW, False)
        self.reclaim_level = arguments.get_int(RECLAIM_LEVEL, 0)
        if self.reclaim_level < 0:
            raise ConfigError(
                f'plugin capacity: argument "{RECLAIM_LEVEL}" must be 0 or more, not {self.reclaim_level}'
            )

    def open(self, session: Session) -> None:
        """Work out this cycle's shares and hang the rules of sharing."""
        what = owed(session.state, self.firm_borrow, self.reclaim_level)
        QueueRules(session, self.name, what).hang(session)


def owed(state: ClusterState, firm_borrow: bool, reclaim_level: int) -> Owed:
    """What queues are owed by what they state, as *state* stands."""
    claims = queue_claims(state)
    _, limit = reach(claims, lent=True)
    real, firm_limit = reach(claims, lent=False)
    queues = state.queues
    stated = np.where((queues.deserved < 0) & (queues.guarantee > 0), queues.guarantee, queues.deserved)
    entitlement = stated_entitlement(claims, real, stated)
    deserved = np.where(claims.in_use[:, None], entitlement, np.maximum(entitlement, stated))
    shares = QueueShares(CapacityPlugin.name, deserved, entitlement, limit, firm_borrow)
    return Owed(shares, firm_limit, claims.guarantee, reclaim_level)
