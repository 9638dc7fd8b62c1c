"""OpenAPI: what kubectl reads to explain kinds, to check manifests and to make patches."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.definitions import every_keyword, registry
from tests.apiserver.spaces import WAIT_S
from tests.e2e import programs
from tests.e2e.servers import KINDS
from volcano_py.simulator.apiserver.schema.registry import Registry

PODS = "/api/v1/namespaces/{namespace}/pods/{name}"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues/{name}"


def document(made: Registry, path: str) -> Any:
    answer = made.answer(path, "application/json", "")
    assert answer is not None
    return json.loads(answer.body)


def test_a_kind_is_found_by_its_path() -> None:
    core = document(registry(), "/openapi/v3/api/v1")
    get = core["paths"][PODS]["get"]
    assert get["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    reference = get["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
    pod = core["components"]["schemas"][reference.rsplit("/", 1)[1]]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "version": "v1", "kind": "Pod"}]


def test_every_reference_leads_somewhere() -> None:
    made = registry(every_keyword())
    for name in document(made, "/openapi/v3")["paths"]:
        whole = document(made, f"/openapi/v3/{name}")
        wanted = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(whole)))
        assert wanted <= set(whole["components"]["schemas"]), name


def test_a_patch_says_which_parameters_it_takes() -> None:
    queues = document(registry(), "/openapi/v3/apis/scheduling.volcano.sh/v1beta1")["paths"][QUEUES]
    patch = queues["patch"]
    assert {"dryRun", "fieldManager", "fieldValidation", "force"} <= {
        one["name"] for one in patch["parameters"]
    }
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    pods = document(registry(), "/openapi/v3/api/v1")["paths"][PODS]
    assert "application/strategic-merge-patch+json" in pods["patch"]["requestBody"]["content"]


def test_a_custom_schema_is_told_as_it_was_declared() -> None:
    schemas = document(registry(), "/openapi/v3/apis/scheduling.volcano.sh/v1beta1")["components"]["schemas"]
    queue = schemas["sh.volcano.scheduling.v1beta1.Queue"]
    weight = queue["properties"]["spec"]["properties"]["weight"]
    assert (weight["default"], weight["maximum"]) == (1, 65535)
    assert "apiVersion" in queue["properties"]
    assert "ObjectMeta" in json.dumps(queue["properties"]["metadata"])


def test_the_index_changes_with_a_definition_and_only_there() -> None:
    made = registry()
    before = document(made, "/openapi/v3")["paths"]
    made.set_crd(every_keyword())
    after = document(made, "/openapi/v3")["paths"]
    assert set(after) - set(before) == {"apis/test.volcano-py.io/v1"}
    assert {name: after[name] for name in before} == before
    changed = every_keyword()
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "other"
    made.set_crd(changed)
    name = "apis/test.volcano-py.io/v1"
    assert document(made, "/openapi/v3")["paths"][name] != after[name]


def test_the_old_form_is_whole() -> None:
    whole = document(registry(), "/openapi/v2")
    assert whole["swagger"] == "2.0"
    wanted = set(re.findall(r'"#/definitions/([^"]+)"', json.dumps(whole["definitions"])))
    assert wanted <= set(whole["definitions"])
    containers = whole["definitions"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["items"] == {"$ref": "#/definitions/io.k8s.api.core.v1.Container"}


Configs = Callable[[str], Path]


def kubectl(config: Path, cache: Path, *arguments: str, text: str | None = None) -> str:
    """What kubectl prints, errors included."""
    program = str(programs.need("kubectl"))
    command = [program, "--kubeconfig", str(config), "--cache-dir", str(cache), *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=240, check=False)
    return done.stdout + done.stderr


def explained(configs: Configs, kind: str, tmp_path: Path, what: str) -> str:
    return kubectl(configs(kind), tmp_path / kind, "explain", what)


@pytest.mark.parametrize(
    "what", ["pod.spec.tolerations", "pod.spec.containers.ports", "deployment.spec.strategy"]
)
def test_kubectl_explains_built_in_kinds_alike(configs: Configs, tmp_path: Path, what: str) -> None:
    embedded, real = (explained(configs, kind, tmp_path, what) for kind in KINDS)
    assert "FIELDS:" in embedded
    assert field_lines(embedded) == field_lines(real)


def field_lines(text: str) -> list[str]:
    """Names, types and choices; descriptions may be worded anew from one release to the next."""
    return [line for line in text.splitlines() if re.match(r"  \S+\t<|  enum: |[A-Z]+:? ", line)]


@pytest.mark.parametrize("what", ["queue.spec", "podgroup.spec.networkTopology", "vcjob.spec.tasks"])
def test_kubectl_explains_custom_kinds_alike(configs: Configs, tmp_path: Path, what: str) -> None:
    config = configs("real")
    kubectl(config, tmp_path / "real", "apply", "-f", str(Path(__file__).parents[2] / "crds" / "yaml"))
    kubectl(config, tmp_path / "real", "wait", "--for=condition=Established", "crd", "--all", "--timeout=90s")
    said = explained(configs, "embedded", tmp_path, what)
    assert "FIELDS:" in said
    # The real server publishes a new kind's document a moment later.
    until = time.monotonic() + WAIT_S
    while (real := explained(configs, "real", tmp_path, what)) != said and time.monotonic() < until:
        time.sleep(0.1)
    assert real == said


POD = """
apiVersion: v1
kind: Pod
metadata: {name: checked}
spec:
  colour: blue
  containers: [{name: c, image: i}]
"""


@pytest.mark.parametrize("kind", KINDS)
def test_kubectl_refuses_unknown_fields(configs: Configs, kind: str, tmp_path: Path) -> None:
    said = kubectl(configs(kind), tmp_path, "apply", "--dry-run=server", "-f", "-", text=POD)
    assert 'strict decoding error: unknown field "spec.colour"' in said
    warned = kubectl(
        configs(kind), tmp_path, "apply", "--dry-run=server", "--validate=warn", "-f", "-", text=POD
    )
    assert 'Warning: unknown field "spec.colour"' in warned
