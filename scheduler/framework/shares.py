"""What queues are owed and may reach, as the share plugin of the session computed it.

Either ``proportion`` or ``capacity`` sets ``session.shares``; actions, the interruption contract and
reports read it. Without such a plugin there are no entitlements: nobody is over, nothing is reclaimed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from volcano_py.scheduler.model.resources import UNLIMITED, Ints


@dataclass(frozen=True, slots=True, eq=False)
class QueueShares:
    """One row a queue row, one column a resource; int64 base units.

    Attributes:
        plugin: who computed this.
        deserved: (Q, R) what orders queues and makes victims.
        entitlement: (Q, R) what non-interruptible work may fill and what a claimant may take from
            others (decisions.md 6); ``UNLIMITED`` where nothing bounds it.
        limit: (Q, R) what the queue may never pass: max, and what others' guarantees leave of the
            cluster; ``UNLIMITED`` where nothing bounds it.
        firm_borrow: non-interruptible work may borrow too (``nonInterruptibleBorrow``).
    """

    plugin: str
    deserved: Ints
    entitlement: Ints
    limit: Ints
    firm_borrow: bool = False

    def over(self, queue: int, allocated: Ints) -> Ints:
        """(R,) how far *allocated* is above the entitlement of *queue*; 0 where it isn't.

        Resources that became known since, as a chosen card's own, are bounded by nothing yet.
        """
        bound = np.full(allocated.shape, UNLIMITED, np.int64)
        bound[: self.entitlement.shape[1]] = self.entitlement[queue]
        return np.where(bound >= UNLIMITED, 0, np.maximum(allocated - bound, 0))
