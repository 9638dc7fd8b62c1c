"""How every test runs: property tests draw the same examples each time and print their seed."""

import os

from hypothesis import HealthCheck, settings

# "fixed" draws the same examples on every run; "explore" draws new ones, repeatable with
# `pytest --hypothesis-seed=N`. Neither has a deadline: a slow machine is not a failing test.
settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", parent=settings.get_profile("fixed"), derandomize=False)

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fixed")
settings.load_profile(PROFILE)


def pytest_report_header() -> str:
    """Name the profile, so that a report says whether its examples can be drawn again."""
    return f"hypothesis profile: {PROFILE} (HYPOTHESIS_PROFILE=fixed|explore)"
