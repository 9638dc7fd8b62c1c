"""What the doctor finds where a node has cards and no device plugin selects it."""

from __future__ import annotations

import pytest
import yaml

from tests.clusters import node
from tests.vcctl.evidence import HAMI, NVIDIA, Document, found, only, seen
from volcano_py.deploy.generate import rendered


def daemon_set(selector: dict[str, str], image: str = HAMI, terms: list[Document] | None = None) -> Document:
    pods: Document = {
        "nodeSelector": selector,
        "containers": [{"name": "device-plugin", "image": image}],
    }
    if terms is not None:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        pods["affinity"] = {"nodeAffinity": required}
    spec = {"template": {"spec": pods}}
    meta = {"name": "hami-device-plugin", "namespace": "kube-system"}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": spec}


def test_a_gpu_node_without_the_label_that_the_plugin_selects_is_told() -> None:
    bare = node("n1", labels={"nvidia.com/gpu.present": "true"})
    good = node("n2", labels={"nvidia.com/gpu.present": "true", "gpu": "on"})
    one = only("gpu-labels", seen(bare, good, node("n3"), daemon_set({"gpu": "on"})))
    assert one.object == "Node n1"
    assert one.fix == "kubectl label node n1 gpu=on --overwrite"


def test_a_gpu_node_without_the_label_that_our_agent_selects_is_told() -> None:
    [agent] = (d for d in yaml.safe_load_all(rendered()["agent.yaml"]) if d["kind"] == "DaemonSet")
    bare = node("n1", labels={"nvidia.com/gpu.present": "true"})
    one = only("gpu-labels", seen(bare, agent))
    assert "DaemonSet volcano-system/volcano-py-agent selects: gpu=on" in one.evidence


def labelled(name: str = "n1", **labels: str) -> Document:
    return node(name, labels={"nvidia.com/gpu.present": "true", **labels})


def wish(key: str, operator: str, *values: str) -> Document:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("asked", "labels", "wanted", "fix"),
    [
        (wish("gpu", "In", "on", "yes"), {}, "gpu in (on,yes)", "gpu=on"),
        (wish("gpu", "In", "yes"), {"gpu": "no"}, "gpu=yes", "gpu=yes"),
        (wish("gpu", "NotIn", "off"), {"gpu": "off"}, "gpu notin (off)", "gpu-"),
        (wish("gpu", "Exists"), {}, "gpu", "gpu=true"),
        (wish("gpu", "DoesNotExist"), {"gpu": "on"}, "!gpu", "gpu-"),
        (wish("gpus", "Gt", "3"), {"gpus": "3"}, "gpus>3", "gpus=4"),
        (wish("gpus", "Lt", "3"), {"gpus": "3"}, "gpus<3", "gpus=2"),
    ],
)
def test_a_gpu_node_that_the_affinity_of_the_plugin_leaves_out_is_told(
    asked: Document, labels: dict[str, str], wanted: str, fix: str
) -> None:
    """The labels that are told are enough: with them nothing is found."""
    plugin = daemon_set({}, terms=[{"matchExpressions": [asked]}])
    one = only("gpu-labels", seen(labelled(**labels), plugin))
    assert one.evidence.endswith(f"is not what DaemonSet kube-system/hami-device-plugin selects: {wanted}")
    assert one.fix == f"kubectl label node n1 {fix} --overwrite"
    key, _, value = fix.rstrip("-").partition("=")
    mended = {**labels, key: value} if value else {}
    assert found("gpu-labels", seen(labelled(**mended), plugin)) == []


def test_of_an_affinity_one_term_is_enough_and_the_nearest_one_is_told() -> None:
    far = {"matchExpressions": [wish("a", "Exists"), wish("b", "Exists")]}
    near = {"matchExpressions": [wish("c", "Exists"), wish("d", "Exists")]}
    plugin = daemon_set({"gpu": "on"}, terms=[far, near])
    one = only("gpu-labels", seen(labelled(c="1"), labelled("n2", gpu="on", a="1", b="1"), plugin))
    assert one.object == "Node n1"
    assert one.fix == "kubectl label node n1 gpu=on d=true --overwrite"


def test_labels_that_would_not_help_are_not_advised() -> None:
    plugin = daemon_set({}, terms=[{"matchFields": [wish("metadata.name", "In", "n2")]}])
    one = only("gpu-labels", seen(labelled(), labelled("n2"), plugin))
    assert (one.object, one.evidence.rpartition(": ")[2]) == ("Node n1", "metadata.name=n2")
    assert one.fix.endswith("kubectl edit daemonset hami-device-plugin -n kube-system")
    at_odds = daemon_set({"gpu": "on"}, terms=[{"matchExpressions": [wish("gpu", "In", "off")]}])
    assert "edit daemonset" in only("gpu-labels", seen(labelled(), at_odds)).fix
    nobody = only("gpu-labels", seen(labelled(), daemon_set({}, terms=[])))
    assert nobody.evidence.endswith("selects: no node at all")


def test_a_plugin_whose_affinity_cannot_be_read_is_told_and_nothing_said_of_nodes() -> None:
    plugin = daemon_set({}, terms=[{"matchExpressions": [wish("gpu", "Near", "on")]}])
    one = only("gpu-labels", seen(labelled(), plugin, daemon_set({"gpu": "on"})))
    assert (one.severity, one.object) == ("warning", "DaemonSet kube-system/hami-device-plugin")
    assert "unknown operator 'Near'" in one.evidence


def test_a_node_that_another_plugin_selects_is_fine() -> None:
    gpu = node("n1", labels={"nvidia.com/gpu.present": "true"})
    assert found("gpu-labels", seen(gpu, daemon_set({"gpu": "on"}), daemon_set({}, NVIDIA))) == []
