"""The whole playground as a process: what it leaves, what it survives, what it says."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.live import Live
from tests.playground.starting import UP_S, VOLCANO_PY, WAIT_S, processes_of, running, until

SMALL = (VOLCANO_PY, "playground", "--nodes", "1", "--gpus", "2")
PARTS = ("apiserver", "kubelets", "controller", "scheduler")
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {
        "schedulerName": "volcano-py",
        "containers": [{"name": "main", "image": "busybox"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    },
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


@pytest.fixture
def live(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path, Live]]:
    """A playground, its folder, and a client of it."""
    data = tmp_path / "data"
    with running([*SMALL, "--data", str(data)], tmp_path / "log") as process:
        client = Live(data / "kubeconfig")
        yield process, data, client
        client.close()


def phase(live: Live, key: str) -> str:
    return str((live.get("Pod", key) or {}).get("status", {}).get("phase", "gone"))


def test_parts_come_back_the_cluster_is_kept_and_nothing_is_left(
    live: tuple[subprocess.Popen[bytes], Path, Live], tmp_path: Path
) -> None:
    process, data, client = live
    client.create(CLAIM, POD)
    client.until(lambda: phase(client, "default/a") == "Running", what="the pod runs")
    assert stat.S_IMODE((data / "kubeconfig").stat().st_mode) == 0o600

    for part in PARTS[1:]:
        _kill(data, part)
    told = [f"{part} was started again" for part in PARTS[1:]]
    until(lambda: all(words in (tmp_path / "log").read_text() for words in told))
    client.create({**POD, "metadata": {"name": "b", "namespace": "default"}})
    client.until(lambda: phase(client, "default/b") == "Running", what="a pod runs on the new parts")

    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_S) == 0
    until(lambda: not processes_of(data))
    with running([*SMALL, "--data", str(data)], tmp_path / "log2"):
        again = Live(data / "kubeconfig")
        assert {phase(again, f"default/{name}") for name in "ab"} == {"Running"}
        (volume,) = again.list("PersistentVolume").values()
        assert volume["status"]["phase"] == "Bound"
        again.delete("PersistentVolumeClaim", "default/data")
        again.until_gone("PersistentVolume", volume["metadata"]["name"], within_s=WAIT_S)
        again.close()


def test_a_playground_that_is_killed_leaves_no_process(
    live: tuple[subprocess.Popen[bytes], Path, Live],
) -> None:
    process, data, _ = live
    children = set(processes_of(data)) - {process.pid}
    assert len(children) >= len(PARTS)
    process.kill()
    process.wait()
    until(lambda: not children & set(processes_of(data)))


def test_it_refuses_a_port_in_use_and_a_foreign_kubeconfig(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"port {port} on 127.0.0.1 is in use" in _refusal(tmp_path, "--port", port)
    foreign = tmp_path / "config"
    foreign.write_text("clusters: [{cluster: {server: https://prod.example.com}}]")
    assert "is another cluster's kubeconfig" in _refusal(tmp_path, "--kubeconfig", str(foreign))
    assert "prod.example.com" in foreign.read_text()


def test_it_stops_by_itself_and_takes_its_temporary_folder_away(tmp_path: Path) -> None:
    done = subprocess.run(
        [*SMALL, "--for", "0.1"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=UP_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "stopped" in done.stdout
    assert not list(tmp_path.glob("volcano-py-playground-*"))


def test_it_goes_on_where_nobody_reads_what_it_says(tmp_path: Path) -> None:
    words = [*SMALL, "--for", "0.1", "--data", str(tmp_path / "data")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read().decode()
    assert (process.returncode, said) == (0, "")
    assert "pretend nodes are played" in (tmp_path / "data" / "logs" / "kubelets.log").read_text()


def _refusal(place: Path, *words: str) -> str:
    env = {**os.environ, "TMPDIR": str(place)}
    done = subprocess.run(
        [*SMALL, *words], env=env, capture_output=True, text=True, timeout=UP_S, check=False
    )
    assert done.returncode == 1
    assert not list(place.glob("volcano-py-playground-*"))
    return done.stderr


def _kill(data: Path, part: str) -> None:
    lines = processes_of(data)
    word = f"volcano_py.cli.main {part} "
    (pid,) = [pid for pid, line in lines.items() if word in line and "tether" not in line]
    os.kill(pid, signal.SIGKILL)
