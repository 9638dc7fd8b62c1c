"""Each case on both servers: where the embedded one answers otherwise, it is wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.apiserver import cases_life, cases_storage, cases_watch
from tests.apiserver.conftest import Case


@pytest.mark.parametrize(
    "case",
    [*cases_watch.CASES, *cases_life.CASES, *cases_storage.CASES],
    ids=lambda case: str(getattr(case, "__name__", case)),
)
def test_case(case: Case, run: Callable[[Case], None]) -> None:
    run(case)
