"""The one file that installs everything is what its parts say, and its parts fit each other."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from volcano_py.crds.schedulerconfig import DEFAULT_CONFIG, load_scheduler_config
from volcano_py.deploy.generate import main, rendered

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
Document = dict[str, Any]


def documents() -> list[Document]:
    return list(yaml.safe_load_all((ROOT / "deploy" / "install.yaml").read_text()))


def of_kind(kind: str) -> list[Document]:
    return [each for each in documents() if each["kind"] == kind]


def test_the_file_is_what_its_parts_say() -> None:
    assert main(["--check"]) == 0, "run `make manifest`"


def test_a_stale_file_is_told_and_mended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "install.yaml").write_text("kind: Namespace\n")
    assert main(["--check"], tmp_path) == 1
    assert capsys.readouterr().err.count("make manifest") == 2
    assert main([], tmp_path) == 0
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == rendered()


def test_each_object_comes_after_what_it_needs() -> None:
    kinds = [each["kind"] for each in documents()]
    assert kinds[0] == "Namespace"
    order = ["CustomResourceDefinition", "ServiceAccount", "ConfigMap", "Deployment"]
    assert [kinds.index(kind) for kind in order] == sorted(kinds.index(kind) for kind in order)
    assert len({(d["kind"], d["metadata"]["name"]) for d in documents()}) == len(kinds)


def test_the_agent_is_installed_by_a_file_of_its_own() -> None:
    found = list(yaml.safe_load_all((ROOT / "deploy" / "agent.yaml").read_text()))
    assert found[0]["kind"] == "ServiceAccount"
    assert found[-1]["kind"] == "DaemonSet"
    assert "DaemonSet" not in [each["kind"] for each in documents()]
    assert {image(each) for each in (found[-1], *of_kind("Deployment"))} == {f"volcano-py:{VERSION}"}


def image(workload: Document) -> str:
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    return str(container["image"])


def test_the_configuration_is_the_built_in_one() -> None:
    (found,) = of_kind("ConfigMap")
    assert load_scheduler_config(found["data"]["volcano-scheduler.conf"]) == load_scheduler_config(
        DEFAULT_CONFIG
    )


def test_deployments_name_accounts_volumes_and_ports_that_are_there() -> None:
    accounts = {each["metadata"]["name"] for each in of_kind("ServiceAccount")}
    maps = {each["metadata"]["name"] for each in of_kind("ConfigMap")}
    for deployment in of_kind("Deployment"):
        assert deployment["spec"]["selector"]["matchLabels"].items() <= (
            deployment["spec"]["template"]["metadata"]["labels"].items()
        )
        spec = deployment["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        assert spec["serviceAccountName"] in accounts
        volumes = {each["name"]: each.get("configMap", {}).get("name") for each in spec["volumes"]}
        assert {each["name"] for each in container["volumeMounts"]} == volumes.keys()
        assert set(volumes.values()) - {None} <= maps
        ports = {each["name"] for each in container["ports"]}
        probes = [container[probe]["httpGet"] for probe in ("livenessProbe", "readinessProbe")]
        assert [probe["path"] for probe in probes] == ["/healthz", "/readyz"]
        assert {probe["port"] for probe in probes} <= ports
