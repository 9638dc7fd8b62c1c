"""Which Kubernetes the server says it is."""

from __future__ import annotations

import platform
from typing import Final

from volcano_py.simulator.apiserver.status import Document

VERSION: Final[Document] = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.1+volcano-py",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": f"Python {platform.python_version()}",
    "platform": f"{platform.system().lower()}/{platform.machine()}",
}
"""``/version``."""
