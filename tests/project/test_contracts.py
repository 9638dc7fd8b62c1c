"""Every import contract can fail: a small copy of the house with one forbidden import each."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.layout import ROOT, pyproject, rooms

CONTRACTS = {c["id"]: c["name"] for c in pyproject()["tool"]["importlinter"]["contracts"]}

ALLOWED = {
    "crds/queue.py": "",
    "scheduler/model/nodes.py": "import volcano_py.crds.queue",
    "scheduler/framework/session.py": "from volcano_py.scheduler.model import nodes",
    "plugins/gang.py": "from volcano_py.scheduler.framework import session",
    "plugins/drf.py": "from volcano_py.scheduler.model.nodes import __name__ as used",
    "actions/allocate.py": "import volcano_py.scheduler.framework.session",
    "scheduler/engine.py": "import volcano_py.actions.allocate, volcano_py.plugins.gang",
    "scheduler/decoding.py": "import volcano_py.crds.queue",
    "client/access.py": "import volcano_py.crds.queue, kubernetes",
    "client/api.py": "from volcano_py.client import access",
    "scheduler/cluster/feed.py": "import volcano_py.scheduler.model.nodes, volcano_py.client.api",
    "scheduler/run/loop.py": "import volcano_py.scheduler.engine, volcano_py.client.api",
    "controllers/queue.py": "import volcano_py.client.api, volcano_py.crds.queue",
    "controllers/watching.py": "import kopf",
    "simulator/apiserver/server.py": "import volcano_py.crds.queue, aiohttp",
    "simulator/replay.py": "import time\nimport volcano_py.scheduler.run.loop",
    "cli/main.py": "import volcano_py.simulator.replay",
    "shim/agent.py": "import volcano_py.crds.queue, volcano_py.client.api",
}

FORBIDDEN = [
    ("layers", "scheduler/model/nodes.py", "import volcano_py.scheduler.framework.session"),
    ("layers", "crds/queue.py", "import volcano_py.scheduler.model.nodes"),
    ("layers", "actions/allocate.py", "import volcano_py.plugins.gang"),
    ("layers", "plugins/gang.py", "import volcano_py.actions.allocate"),
    ("layers", "simulator/replay.py", "import volcano_py.cli.main"),
    ("layers", "client/api.py", "import volcano_py.scheduler.model.nodes"),
    ("layers", "scheduler/model/nodes.py", "import volcano_py.client.api"),
    ("outer-rooms", "client/api.py", "import volcano_py.shim.agent"),
    ("pure", "plugins/gang.py", "import volcano_py.client.access"),
    ("plugins", "plugins/drf.py", "from volcano_py.plugins import gang"),
    ("run-loop", "plugins/gang.py", "from volcano_py.scheduler.run import loop"),
    ("run-loop", "scheduler/framework/session.py", "import volcano_py.scheduler.run.loop"),
    ("outer-rooms", "scheduler/run/loop.py", "import volcano_py.simulator.replay"),
    ("outer-rooms", "crds/queue.py", "import volcano_py.cli.main"),
    ("cluster-room", "scheduler/cluster/feed.py", "import volcano_py.scheduler.engine"),
    ("cluster-room", "scheduler/cluster/feed.py", "from volcano_py.scheduler.framework import session"),
    ("controllers", "controllers/queue.py", "import volcano_py.scheduler.run.loop"),
    ("controllers", "controllers/queue.py", "from volcano_py.plugins import gang"),
    ("apiserver", "simulator/apiserver/server.py", "import volcano_py.client.api"),
    ("apiserver", "simulator/apiserver/server.py", "import volcano_py.controllers.queue"),
    ("clients", "scheduler/cluster/feed.py", "from kubernetes import client"),
    ("clients", "controllers/queue.py", "import kopf"),
    ("clients", "cli/main.py", "import kubernetes"),
    ("clients", "shim/agent.py", "from kubernetes.aio import client"),
    ("pure", "plugins/gang.py", "from kubernetes import client"),
    ("pure", "scheduler/framework/session.py", "import kopf"),
    ("pure", "actions/allocate.py", "import time"),
    ("shim-and-deploy", "shim/agent.py", "import volcano_py.scheduler.model.nodes"),
]


def check(folder: Path, files: dict[str, str]) -> str:
    """Lay *files* out as a house in *folder*, with every room present; what import-linter reports."""
    house = folder / "volcano_py"
    for name in [*(f"{room}/__init__.py" for room in rooms()), *files]:
        path = house / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(files.get(name, ""))
    linter = Path(sys.executable).with_name("lint-imports")
    command = [str(linter), str(ROOT / "pyproject.toml"), "--no-cache", "--no-logo"]
    env = os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "400"}
    return subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=False).stdout


def test_what_the_table_allows_is_allowed(tmp_path: Path) -> None:
    assert f"{len(CONTRACTS)} kept, 0 broken" in check(tmp_path, ALLOWED)


@pytest.mark.parametrize(("contract", "importer", "line"), FORBIDDEN)
def test_a_forbidden_import_is_seen(contract: str, importer: str, line: str, tmp_path: Path) -> None:
    report = check(tmp_path, ALLOWED | {importer: f"{ALLOWED[importer]}\n{line}"})
    assert f"{CONTRACTS[contract]} BROKEN" in report, report


def test_every_contract_has_a_forbidden_import() -> None:
    assert {contract for contract, _, _ in FORBIDDEN} == set(CONTRACTS)
