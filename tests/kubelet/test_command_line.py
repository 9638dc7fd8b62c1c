"""``volcano-py kubelets`` where it can't begin."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

PROGRAM = Path(__file__).parents[2] / ".venv" / "bin" / "volcano-py"


def refusal(kubeconfig: Path) -> str:
    command = [str(PROGRAM), "kubelets", "--nodes", "2", "--kubeconfig", str(kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1
    return done.stderr


def test_no_kubeconfig_is_told(tmp_path: Path) -> None:
    said = refusal(tmp_path / "none")
    assert said.startswith("error: ")
    assert str(tmp_path / "none") in said


@pytest.mark.parametrize("server", ["https://127.0.0.1:1"])
def test_a_server_that_does_not_answer_is_told(tmp_path: Path, server: str) -> None:
    names = {"cluster": "c", "user": "u"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": names}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    said = refusal(tmp_path / "config")
    assert said.startswith(f"error: {server}: POST /api/v1/nodes")
    assert "Traceback" not in said
