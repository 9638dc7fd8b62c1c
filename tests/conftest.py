"""How every test runs: property tests draw the same examples each time and print their seed.

What the machine's own terminal, cluster and proxy are decides nothing.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent

FOREIGN = (
    # How wide and how coloured our output is. Typer reads some of these when it is imported.
    *("COLUMNS", "LINES", "TERMINAL_WIDTH", "NO_COLOR", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"),
    *("TTY_COMPATIBLE", "TTY_INTERACTIVE", "TYPER_USE_RICH"),
    # Which cluster is asked where a test names none, and by what way servers on this machine are reached.
    *("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"),
    *("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"),
)
for word in FOREIGN:
    os.environ.pop(word, None)

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


def pytest_configure(config: pytest.Config) -> None:
    """Give kubectl a cache of its own: by address it would remember the kinds of an earlier server there."""
    folder = tempfile.mkdtemp(prefix="volcano-py-kubectl-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ |= {"KUBECACHEDIR": folder, "KUBERC": "off"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say what one process of ``-n 2 --dist loadgroup`` runs as a whole.

    All end-to-end tests: two live clusters at once would be too much for two cores. Every other file: its
    fixtures are made once a process.
    """
    for item in items:
        is_live = "e2e" in item.path.relative_to(TESTS).parts
        item.add_marker(pytest.mark.xdist_group("e2e" if is_live else str(item.path)))


def pytest_report_header() -> str:
    """Name the profile, so that a report says whether its examples can be drawn again."""
    return f"hypothesis profile: {PROFILE} (HYPOTHESIS_PROFILE=fixed|explore)"
