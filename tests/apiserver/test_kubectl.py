"""Real kubectl against both servers: what people type works, and says the same."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.apiserver.spaces import new_namespace
from tests.e2e.programs import need
from tests.e2e.servers import KINDS
from volcano_py.client.api import Api

Kubectl = Callable[..., str]

POD = """
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: p}}
spec:
  containers: [{name: c, image: "a:1", resources: {requests: {cpu: 100m}}}]
"""


@pytest.fixture(params=KINDS)
def kubectl(request: pytest.FixtureRequest, configs: Callable[[str], Path]) -> Kubectl:
    """Runs kubectl in a namespace of its own; what it printed, errors included."""
    program, config = need("kubectl"), configs(request.param)

    async def space() -> str:
        async with await Api.connect(str(config)) as api:
            return await new_namespace(api)

    namespace = asyncio.run(space())

    def run(*words: str, text: str = "", fails: bool = False) -> str:
        command = [str(program), f"--kubeconfig={config}", f"--namespace={namespace}", *words]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=240, check=False)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return (done.stdout + done.stderr).replace(namespace, "NS")

    return run


def test_apply_get_describe_delete(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", text=POD) == "pod/p created\n"
    assert kubectl("apply", "-f", "-", text=POD) == "pod/p unchanged\n"
    changed = POD.replace("app: p", "app: q, more: yes-please")
    assert kubectl("apply", "-f", "-", text=changed) == "pod/p configured\n"
    assert (
        kubectl("get", "pod", "p", "-o", "jsonpath={.metadata.labels}") == '{"app":"q","more":"yes-please"}'
    )
    without = POD.replace("labels: {app: p}", "labels: {}")
    kubectl("apply", "-f", "-", text=without)
    assert kubectl("get", "pod", "p", "-o", "jsonpath={.metadata.labels}") == ""
    described = kubectl("describe", "pod", "p")
    assert "Node:             <none>" in described
    assert described.partition("QoS Class:")[2].split()[0] == "Burstable"
    assert kubectl("get", "pods").split()[5:9] == ["p", "0/1", "Pending", "0"]
    assert 'pod "p" deleted' in kubectl("delete", "pod", "p")
    assert kubectl("get", "pods") == "No resources found in NS namespace.\n"
    assert kubectl("get", "pod", "p", fails=True) == 'Error from server (NotFound): pods "p" not found\n'


def test_create_sends_protobuf(kubectl: Kubectl) -> None:
    assert kubectl("create", "configmap", "m", "--from-literal=a=b") == "configmap/m created\n"
    assert kubectl("get", "cm", "m", "-o", "jsonpath={.data}") == '{"a":"b"}'
    assert kubectl("create", "secret", "generic", "s", "--from-literal=a=b") == "secret/s created\n"
    assert kubectl("get", "secret", "s", "-o", "jsonpath={.data} {.type}") == '{"a":"Yg=="} Opaque'
    assert "created" in kubectl("create", "deployment", "d", "--image=a:1", "--replicas=0", "--port=80")
    shown = kubectl(
        "get", "deployment", "d", "-o", "jsonpath={.spec.replicas} {.spec.template.spec.containers[0]}"
    )
    assert shown.startswith('0 {"image":"a:1"')
    assert '"containerPort":80' in shown
    created = kubectl("create", "poddisruptionbudget", "b", "--selector=app=p", "--min-available=50%")
    assert created == "poddisruptionbudget.policy/b created\n"
    assert kubectl("get", "pdb", "b", "-o", "jsonpath={.spec.minAvailable}") == "50%"
    assert kubectl("create", "configmap", "m", fails=True) == (
        'error: failed to create configmap: configmaps "m" already exists\n'
    )
    assert kubectl("create", "token", "default").count(".") == 2
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"


def test_label_annotate_scale_patch(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "d", "--image=a:1", "--replicas=0")
    assert kubectl("label", "deployment", "d", "x=y") == "deployment.apps/d labeled\n"
    assert kubectl("annotate", "deployment", "d", "x=y") == "deployment.apps/d annotated\n"
    assert kubectl("label", "deployment", "d", "x=z", fails=True).startswith("error: 'x' already has a value")
    assert kubectl("scale", "deployment", "d", "--replicas=2") == "deployment.apps/d scaled\n"
    kubectl(
        "patch", "deployment", "d", "--type=json", '-p=[{"op":"replace","path":"/spec/replicas","value":1}]'
    )
    kubectl("set", "image", "deployment/d", "a=b:2")
    shown = kubectl(
        "get", "deploy", "d", "-o", "jsonpath={.spec.replicas} {.spec.template.spec.containers[0].image}"
    )
    assert shown == "1 b:2"


def test_server_side_apply_and_its_conflicts(kubectl: Kubectl) -> None:
    text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {a: one}}"
    apply = ("apply", "--server-side", "-f", "-")
    assert kubectl(*apply, text=text) == "configmap/m serverside-applied\n"
    refused = kubectl(*apply, "--field-manager=other", text=text.replace("one", "two"), fails=True)
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.a' in refused
    forced = kubectl(*apply, "--field-manager=other", "--force-conflicts", text=text.replace("one", "two"))
    assert forced == "configmap/m serverside-applied\n"
    assert kubectl("get", "cm", "m", "-o", "jsonpath={.data.a}") == "two"


def test_wait_diff_and_dry_run(kubectl: Kubectl) -> None:
    assert kubectl("apply", "--dry-run=server", "-f", "-", text=POD) == "pod/p created (server dry run)\n"
    kubectl("apply", "-f", "-", text=POD)
    diff = kubectl("diff", "-f", "-", text=POD.replace("a:1", "a:2"), fails=True)
    assert "-  - image: a:1" in diff
    assert "+  - image: a:2" in diff
    condition = '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
    kubectl("patch", "pod", "p", "--subresource=status", f"-p={condition}")
    assert kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=120s") == "pod/p condition met\n"
    kubectl("delete", "pod", "p", "--wait=false")
    kubectl("wait", "--for=delete", "pod/p", "--timeout=120s")


def test_explain_and_api_resources(kubectl: Kubectl) -> None:
    assert "FIELD: schedulerName <string>" in kubectl("explain", "pod.spec.schedulerName")
    resources = kubectl("api-resources", "--no-headers").splitlines()
    short = {line.split()[0]: line.split() for line in resources}
    assert short["pods"][1] == "po"
    assert short["namespaces"][-1] == "Namespace"


def test_unknown_fields_are_told(kubectl: Kubectl) -> None:
    wrong = POD.replace("containers:", "kontainers: []\n  containers:")
    said = kubectl("apply", "-f", "-", text=wrong, fails=True)
    assert 'strict decoding error: unknown field "spec.kontainers"' in said
    warned = kubectl("apply", "--validate=warn", "-f", "-", text=wrong)
    assert 'Warning: unknown field "spec.kontainers"' in warned


def test_a_node_is_drained(kubectl: Kubectl) -> None:
    node = "{apiVersion: v1, kind: Node, metadata: {generateName: drain-}}"
    name = kubectl("create", "-o", "name", "-f", "-", text=node).strip().removeprefix("node/")
    assert "cordoned" in kubectl("cordon", name)
    assert "SchedulingDisabled" in kubectl("get", "node", name)
    assert f"node/{name} drained" in kubectl("drain", name)
    assert "uncordoned" in kubectl("uncordon", name)
    kubectl("delete", "node", name)
