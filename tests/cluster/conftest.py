from __future__ import annotations

import pytest

from volcano_py.client import api


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backoff as it is, a hundred times faster."""
    monkeypatch.setattr(api, "_FIRST_WAIT_S", 0.002)
    monkeypatch.setattr(api, "_LONGEST_WAIT_S", 0.05)
