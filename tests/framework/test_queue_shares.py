"""Who is over its entitlement, where resources became known after it was computed."""

from __future__ import annotations

import numpy as np

from volcano_py.scheduler.framework.shares import QueueShares
from volcano_py.scheduler.model.resources import UNLIMITED


def test_resources_that_became_known_since_bound_nobody() -> None:
    """A pod that asks for any vendor's card counts under the vendor's names once it has one."""
    owed = np.array([[10, UNLIMITED]], np.int64)
    shares = QueueShares("proportion", owed, owed, owed)
    assert shares.over(0, np.array([12, 7, 5], np.int64)).tolist() == [2, 0, 0]
    assert shares.over(0, np.array([12, 7], np.int64)).tolist() == [2, 0]
