"""``volcano-py agent`` as a process on the stub driver, and the files that install it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.agent.kubelet import Kubelet
from tests.agent.node import GPU, NODE, VGPU, until
from tests.shim.stub import build
from tests.shim.stub.state import Card, Driver, card_uuid
from volcano_py.client.api import Api
from volcano_py.crds.cards.register import HAMI_REGISTER, decode_hami
from volcano_py.shim.agent.wire import services
from volcano_py.simulator.apiserver.serving import EmbeddedServer

ROOT = Path(__file__).parents[2]
DEADLINE_S = 60


def test_it_finds_the_cards_serves_them_and_ends_when_asked(tmp_path: Path) -> None:
    async def case() -> None:
        async with EmbeddedServer(crds=False) as apiserver:
            apiserver.write_kubeconfig(tmp_path / "config")
            async with await Api.connect(str(tmp_path / "config")) as api:
                await api.post(
                    "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
                )
                with tempfile.TemporaryDirectory(prefix="vpy-") as short:
                    await serves(api, Kubelet(Path(short)))

    async def serves(api: Api, kubelet: Kubelet) -> None:
        await kubelet.start()
        cards = [Card(memory_mib=8192), Card(memory_mib=4096)]
        with Driver.create(tmp_path / "state", cards) as state, agent(tmp_path, kubelet, state) as process:
            await kubelet.until_registered(GPU, VGPU, devices=20)

            async def register() -> str:
                node = await api.get(f"/api/v1/nodes/{NODE}")
                return str(node["metadata"].get("annotations", {}).get(HAMI_REGISTER, ""))

            found = decode_hami(await until(register, "published"))
            assert [(each.uuid, each.memory_mib) for each in found] == [
                (card_uuid(0), 8192),
                (card_uuid(1), 4096),
            ]
            state.raise_event(1, 79)
            drained = f"{card_uuid(1)}-0"
            await until(
                lambda: kubelet.endpoints[GPU].devices.get(drained) == services.UNHEALTHY,
                "drained by its XID",
            )
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, DEADLINE_S) == 0
            assert not list(kubelet.plugins.glob("volcano-py-*.sock"))
        await kubelet.stop()

    asyncio.run(case())


def test_probes_and_metrics(tmp_path: Path) -> None:
    async def case() -> None:
        async with EmbeddedServer(crds=False) as apiserver:
            apiserver.write_kubeconfig(tmp_path / "config")
            async with await Api.connect(str(tmp_path / "config")) as api:
                await api.post(
                    "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
                )
                with tempfile.TemporaryDirectory(prefix="vpy-") as short:
                    kubelet = Kubelet(Path(short))
                    await kubelet.start()
                    with (
                        Driver.create(tmp_path / "state", [Card()]) as state,
                        agent(tmp_path, kubelet, state),
                    ):
                        await kubelet.until_registered(GPU, VGPU)
                        await until(lambda: asyncio.to_thread(says, "/readyz", "ok"), "ready")
                        await until(lambda: asyncio.to_thread(says, "/healthz", "ok"), "healthy")
                        cards = "volcano_py_agent_cards 1.0"
                        await until(lambda: asyncio.to_thread(says, "/metrics", cards), "counted")
                    await kubelet.stop()

    def says(path: str, word: str) -> bool:
        try:
            with urllib.request.urlopen(f"{address(tmp_path)}{path}", timeout=5) as answer:
                return word in answer.read().decode()
        except OSError:
            return False

    asyncio.run(case())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--library", "/nowhere/libvgpu.so"], "the library /nowhere/libvgpu.so can't be put below"),
        (["--cgroup-dir", "/nowhere"], "Without cgroups: --no-keep"),
        (["--split", "0"], "--split"),
        (["--kubeconfig", "/nowhere/config"], "there is no kubeconfig at --kubeconfig /nowhere/config"),
    ],
)
def test_what_cannot_be_carried_out_ends_the_start(tmp_path: Path, options: list[str], says: str) -> None:
    (tmp_path / "libvgpu.so").write_bytes(b"quota")
    (tmp_path / "config").write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:9'}}]\nusers: [{name: a, user: {}}]\n"
    )
    usual = ["--kubeconfig", str(tmp_path / "config"), "--library", str(tmp_path / "libvgpu.so")]
    usual += ["--node-name", NODE, "--hook-path", str(tmp_path / "vgpu"), "--kubelet-dir", str(tmp_path)]
    done = subprocess.run(
        [*COMMAND, *usual, "--listen-address", "0", *options],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200"},
    )
    assert done.returncode == 2
    assert says in done.stderr


def test_the_daemon_set_names_what_is_there() -> None:
    (daemons,) = yaml.safe_load_all((ROOT / "deploy" / "components" / "agent.yaml").read_text())
    rights = list(yaml.safe_load_all((ROOT / "deploy" / "rbac" / "agent.yaml").read_text()))
    spec = daemons["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == rights[0]["metadata"]["name"]
    (container,) = spec["containers"]
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in spec["volumes"]}
    shown = subprocess.run(
        [*COMMAND, "--help"], capture_output=True, text=True, timeout=DEADLINE_S, check=True
    ).stdout
    for argument in container["args"]:
        assert argument.partition("=")[0] in shown
    for folder in ("/var/lib/kubelet/device-plugins", "/usr/local/vgpu", "/sys/fs/cgroup", "/var/run/cdi"):
        assert folder in {each["mountPath"] for each in container["volumeMounts"]}


COMMAND = [sys.executable, "-m", "volcano_py.cli.main", "agent"]


@contextmanager
def agent(place: Path, kubelet: Kubelet, state: Driver) -> Iterator[subprocess.Popen[bytes]]:
    """The agent as a process; it writes its log to *place*."""
    (place / "libvgpu.so").write_bytes(b"quota")
    options = ["--kubeconfig", str(place / "config"), "--node-name", NODE, "--no-keep"]
    options += ["--library", str(place / "libvgpu.so"), "--hook-path", str(place / "vgpu")]
    options += ["--kubelet-dir", str(kubelet.folder), "--listen-address", "127.0.0.1:0"]
    environment = {**os.environ, **state.environment(build.build())}
    with (place / "log").open("wb") as log:
        process = subprocess.Popen([*COMMAND, *options], env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def address(place: Path) -> str:
    """Where the agent answers probes, as its log says; its last line may be half written."""
    for line in (place / "log").read_text().rpartition("\n")[0].splitlines():
        if '"event": "started"' in line:
            return "http://" + str(json.loads(line)["addresses"][0])
    return "http://127.0.0.1:9"
