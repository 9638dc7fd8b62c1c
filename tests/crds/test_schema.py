"""The CRDs are what the models say, in the form the API server takes, with Volcano's names around them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from volcano_py.crds.generate import main, rendered, stale
from volcano_py.crds.objects import KINDS
from volcano_py.crds.schema import crd_manifest, structural_schema

Schema = dict[str, Any]

# apiextensions.k8s.io/v1: what a structural schema may not have.
FORBIDDEN = {
    "$ref", "$defs", "definitions", "dependencies", "deprecated", "discriminator", "id", "readOnly",
    "patternProperties", "writeOnly", "xml", "uniqueItems", "title", "const", "examples",
    "propertyNames", "prefixItems",
}  # fmt: skip


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every node of *schema* that describes a value, with its path."""
    yield path, schema
    for name, below in schema.get("properties", {}).items():
        yield from nodes(below, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key], f"{path}[]")


def test_the_committed_files_are_what_the_models_say() -> None:
    assert stale() == []
    assert main(["--check"]) == 0


def test_stale_files_are_named_and_mended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "yaml"
    assert len(stale(directory)) == len(KINDS)
    assert main([], directory) == 0
    assert stale(directory) == []
    (directory / "queues.scheduling.volcano.sh.yaml").write_text("edited by hand")
    (directory / "left.over.yaml").touch()
    (directory / "jobs.batch.volcano.sh.yaml").unlink()
    wrong = ["jobs.batch.volcano.sh.yaml", "left.over.yaml", "queues.scheduling.volcano.sh.yaml"]
    assert stale(directory) == wrong
    capsys.readouterr()
    assert main(["--check"], directory) == 1
    assert [line.split()[0] for line in capsys.readouterr().err.splitlines()] == wrong
    assert main([], directory) == 0
    assert stale(directory) == []


def test_the_same_bytes_on_every_run() -> None:
    assert rendered() == rendered()


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_structural(kind: type[Any]) -> None:
    for path, node in nodes(structural_schema(kind)):
        assert not FORBIDDEN & node.keys(), path
        if node.get("x-kubernetes-int-or-string"):
            assert "type" not in node, path
            assert node["anyOf"] == [{"type": "integer"}, {"type": "string"}], path
            continue
        assert node.get("type") in {"object", "array", "string", "integer", "boolean"}, path
        assert "anyOf" not in node, path
        assert not ("properties" in node and "additionalProperties" in node), path
        if node["type"] == "array":
            assert "items" in node, path
        if node["type"] == "object" and path != ".metadata":
            shape = {
                "properties",
                "additionalProperties",
                "x-kubernetes-preserve-unknown-fields",
            } & node.keys()
            assert len(shape) == 1, path


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_ours_is_described(kind: type[Any]) -> None:
    for path, node in nodes(structural_schema(kind)):
        last = path.rpartition(".")[2]
        if "metadata" not in path and not last.endswith("[]"):
            assert node.get("description"), path


@pytest.mark.parametrize("kind", KINDS)
def test_rules_use_declared_fields_only(kind: type[Any]) -> None:
    for _path, node in nodes(structural_schema(kind)):
        for entry in node.get("x-kubernetes-validations", ()):
            paths = re.findall(r"\bself((?:\.[A-Za-z]+)+)(?!\w*\()", entry["rule"])
            assert paths, entry
            for path in paths:
                assert_declared(node, path.split(".")[1:], entry["rule"])


def assert_declared(node: Schema, names: list[str], rule: str) -> None:
    for name in names:
        if node.get("type") == "object" and "properties" not in node:
            assert name in {"name", "generateName"}, rule  # metadata: the API server knows these two
            return
        assert name in node["properties"], rule
        node = node["properties"][name]


def test_rules_are_where_they_belong() -> None:
    found = {
        kind.info.kind: {
            path for path, node in nodes(structural_schema(kind)) if "x-kubernetes-validations" in node
        }
        for kind in KINDS
    }
    tasks = {
        ".spec.networkTopology", ".spec.policies[]", ".spec.tasks[].policies[]",
        ".spec.tasks[].partitionPolicy.networkTopology",
    }  # fmt: skip
    assert found == {
        "Queue": {"", ".spec"},
        "PodGroup": {".spec.networkTopology", ".spec.subGroupPolicy[].networkTopology"},
        "Job": tasks,
        "JobTemplate": tasks,
        "CronJob": {path.replace(".spec", ".spec.jobTemplate.spec", 1) for path in tasks},
        "JobFlow": {path.replace(".spec", ".spec.flows[].patch.jobSpec", 1) for path in tasks},
        "HyperNode": {".spec.members[].selector"},
        "Numatopology": set(),
        "Command": set(),
    }


# kind, group, version, plural, short names, scope, columns, status endpoint: as Volcano has them, but that a
# Queue shows more than its parent.
JOB_COLUMNS = "STATUS minAvailable RUNNINGS AGE QUEUE"
PUBLISHED = [
    ("Queue", "scheduling", "v1beta1", "queues", "q queue-v1beta1", "Cluster",
     "PARENT STATE WEIGHT AGE", True),
    ("PodGroup", "scheduling", "v1beta1", "podgroups", "pg podgroup-v1beta1", "Namespaced",
     "STATUS minMember RUNNINGS AGE QUEUE", False),
    ("Job", "batch", "v1alpha1", "jobs", "vcjob vj", "Namespaced", JOB_COLUMNS, True),
    ("CronJob", "batch", "v1alpha1", "cronjobs", "cronvcjob cronvj", "Namespaced", "", True),
    ("JobTemplate", "flow", "v1alpha1", "jobtemplates", "jt", "Namespaced", "", True),
    ("JobFlow", "flow", "v1alpha1", "jobflows", "jf", "Namespaced", "Status Age", True),
    ("HyperNode", "topology", "v1alpha1", "hypernodes", "hn", "Cluster", "Tier TierName NodeCount Age", True),
    ("Numatopology", "nodeinfo", "v1alpha1", "numatopologies", "numatopo", "Cluster", "", False),
    ("Command", "bus", "v1alpha1", "commands", "", "Namespaced", "", False),
]  # fmt: skip


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda published: published[0])
def test_the_names_are_volcanos(published: tuple[Any, ...]) -> None:
    name, group, version, plural, short, scope, columns, status = published
    manifest = crd_manifest(next(kind for kind in KINDS if kind.info.kind == name))
    spec = manifest["spec"]
    [served] = spec["versions"]
    assert manifest["metadata"]["name"] == f"{plural}.{group}.volcano.sh"
    assert (spec["group"], served["name"], spec["scope"]) == (f"{group}.volcano.sh", version, scope)
    assert spec["names"].get("shortNames", []) == short.split()
    assert [column["name"] for column in served.get("additionalPrinterColumns", [])] == columns.split()
    assert served["subresources"] == ({"status": {}} if status else {})


def test_only_defaults_of_the_api_are_written() -> None:
    defaults = {
        f"{kind.info.kind}{path}": node["default"]
        for kind in KINDS
        for path, node in nodes(structural_schema(kind))
        if "default" in node and kind.info.kind in {"Queue", "PodGroup", "CronJob"} and "tasks" not in path
    }
    assert defaults == {
        "Queue.spec.weight": 1,
        "Queue.spec.dequeueStrategy": "traverse",
        "Queue.spec.lendMin": False,
        "PodGroup.spec.queue": "default",
        "PodGroup.spec.networkTopology.mode": "hard",
        "PodGroup.spec.subGroupPolicy[].networkTopology.mode": "hard",
        "PodGroup.spec.subGroupPolicy[].subGroupSize": 1,
        "PodGroup.spec.subGroupPolicy[].minSubGroups": 0,
        "CronJob.spec.concurrencyPolicy": "Allow",
        "CronJob.spec.suspend": False,
        "CronJob.spec.successfulJobsHistoryLimit": 3,
        "CronJob.spec.failedJobsHistoryLimit": 1,
        "CronJob.spec.jobTemplate.spec.queue": "default",
        "CronJob.spec.jobTemplate.spec.maxRetry": 3,
        "CronJob.spec.jobTemplate.spec.networkTopology.mode": "hard",
    }


def test_limits_of_fields() -> None:
    queue = structural_schema(KINDS[0])["properties"]["spec"]["properties"]
    weight = {key: queue["weight"][key] for key in ("type", "minimum", "maximum")}
    assert weight == {"type": "integer", "minimum": 1, "maximum": 65535}
    assert (queue["priority"]["format"], queue["priority"]["minimum"]) == ("int32", 0)
    assert queue["parent"]["maxLength"] == 253
    assert queue["max"] == queue["capability"] | {"description": "Other spelling of capability."}


def test_pod_templates_are_carried_through() -> None:
    job = next(kind for kind in KINDS if kind.info.kind == "Job")
    task = structural_schema(job)["properties"]["spec"]["properties"]["tasks"]["items"]["properties"]
    assert task["template"]["x-kubernetes-preserve-unknown-fields"] is True
