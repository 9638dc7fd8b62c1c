"""``kubectl apply`` on an empty server, then the processes as their Deployments run them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e import objects
from tests.e2e.cluster import CRDS, Cluster
from tests.e2e.programs import need
from tests.e2e.rights import Account
from tests.e2e.servers import KINDS, RealServer, Server, make

DEPLOY = Path(__file__).parents[2] / "deploy"
Kubectl = Callable[..., str]


@pytest.fixture(params=KINDS)
def fresh(request: pytest.FixtureRequest, memory_folder: Path) -> Iterator[Server]:
    """A server on which nobody has installed anything."""
    server = make(request.param, memory_folder / f"fresh-{request.param}")
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def kubectl(fresh: Server) -> Kubectl:
    """Runs kubectl; what it printed."""
    program = need("kubectl")

    def run(*arguments: str) -> str:
        command = [str(program), "--kubeconfig", str(fresh.kubeconfig), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def arguments(component: str, configuration: Path) -> list[str]:
    """The arguments in *component*'s Deployment, with its configuration at *configuration* and free ports."""
    found = yaml.safe_load((DEPLOY / "components" / f"{component}.yaml").read_text())
    (container,) = found["spec"]["template"]["spec"]["containers"]
    given = [each.replace("/etc/volcano-py", str(configuration)) for each in container["args"]]
    free = ["--listen-address", "127.0.0.1:0"]
    return given + free + (["--healthz-address", "127.0.0.1:0"] if component == "scheduler" else [])


def test_one_command_installs_all_and_a_pod_is_scheduled(
    fresh: Server, kubectl: Kubectl, tmp_path: Path
) -> None:
    first = kubectl("apply", "-f", str(DEPLOY / "install.yaml"))
    known = (
        0 if isinstance(fresh, RealServer) else len(list(CRDS.glob("*.yaml")))
    )  # the embedded one has them
    assert first.count(" created\n") == len(first.splitlines()) - known
    again = kubectl("apply", "-k", str(DEPLOY))
    assert again.count(" unchanged\n") + again.count(" configured\n") == len(first.splitlines())
    agent = kubectl("apply", "-f", str(DEPLOY / "agent.yaml"))
    assert agent.count(" created\n") == len(agent.splitlines()) > 0
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s")
    name = "volcano-scheduler.conf"
    stored = kubectl("get", "cm", "-n", "volcano-system", "volcano-py-scheduler", "-o", "yaml")
    (tmp_path / name).write_text(yaml.safe_load(stored)["data"][name])

    cluster = Cluster(fresh, tmp_path)
    try:
        for component in ("controller", "scheduler"):
            kubeconfig = fresh.kubeconfig
            if isinstance(fresh, RealServer):
                kubeconfig = Account(cluster, f"volcano-py-{component}", f"{component}.yaml").kubeconfig
            cluster.component(component, *arguments(component, tmp_path), kubeconfig=kubeconfig)
        cluster.nodes(1)
        cluster.create(objects.pod(cluster.space, "first"))
        assert cluster.wait_bound(1) == {"first": "n0"}
        leaders = kubectl("get", "lease", "-n", "volcano-system", "-o", "name").split()
        assert {each.rpartition("/")[2] for each in leaders} == {"volcano-py", "volcano-py-controller"}
    finally:
        cluster.close()
