"""Transcripts that both servers must answer alike."""

from __future__ import annotations

from typing import Any

from tests.apiserver.transcripts import APPLY, MERGE, PATCH, STRATEGIC, Step

MAPS = "/api/v1/namespaces/{ns}/configmaps"
PODS = "/api/v1/namespaces/{ns}/pods"


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"schedulerName": "volcano-py", "containers": [container], **spec},
    }


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


PLAIN = [
    Step("POST", MAPS, config_map("a", x="1")),
    Step("POST", MAPS, config_map("a", x="1")),
    Step("GET", f"{MAPS}/a"),
    Step("GET", f"{MAPS}/b"),
    Step("GET", "/api/v1/namespaces/nowhere/configmaps/b"),
    Step("POST", "/api/v1/namespaces/nowhere/configmaps", config_map("a")),
    Step("POST", MAPS, {"metadata": {}}),
    Step("POST", MAPS, {"metadata": {"name": "Bad_Name"}}),
    Step("POST", MAPS, {"metadata": {"name": "a.b", "labels": {"x": "not valid!", "y z": "a"}}}),
    Step("POST", MAPS, {"metadata": {"name": "f", "finalizers": ["bare"]}}),
    Step("POST", MAPS, {"metadata": {"name": "v", "resourceVersion": "5"}}),
    Step("POST", MAPS, {"metadata": {"name": "n", "namespace": "elsewhere"}}),
    Step("POST", MAPS, {"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "n"}}),
    Step("POST", MAPS, {"metadata": {"name": "u", "unknown": 1}, "dota": {}}),
    Step("POST", MAPS, {"metadata": {"name": "s"}, "dota": {}}, query={"fieldValidation": "Strict"}),
    Step("POST", MAPS, config_map("dry"), query={"dryRun": "All"}),
    Step("POST", MAPS, config_map("dry"), query={"dryRun": "Some"}),
    Step("GET", f"{MAPS}/dry"),
    Step("PUT", f"{MAPS}/a", config_map("a", x="2")),
    Step("PUT", f"{MAPS}/a", config_map("a", x="2")),
    Step("PUT", f"{MAPS}/a", config_map("b", x="2")),
    Step("PUT", f"{MAPS}/missing", config_map("missing")),
    Step("PUT", f"{MAPS}/a", {"metadata": {"name": "a", "resourceVersion": "1"}}),
    Step("PUT", f"{MAPS}/a", {"metadata": {"name": "a", "uid": "abc"}}),
    Step("DELETE", f"{MAPS}/a", {"preconditions": {"uid": "abc"}}),
    Step("DELETE", f"{MAPS}/a", {"preconditions": {"resourceVersion": "1"}}),
    Step("DELETE", f"{MAPS}/a", query={"dryRun": "All"}),
    Step("DELETE", f"{MAPS}/a"),
    Step("DELETE", f"{MAPS}/a"),
    Step("POST", f"{MAPS}/a", config_map("a")),
    Step("GET", "/api/v1/namespaces/{ns}/nothings"),
    Step("GET", "/apis/no.such.group/v1/things"),
    Step("GET", MAPS, query={"labelSelector": "a=b,c in (d"}),
    Step("GET", MAPS, query={"fieldSelector": "spec.x=1"}),
    Step("GET", MAPS, query={"fieldSelector": "metadata.name=u"}),
    Step("GET", MAPS, query={"limit": "1", "continue": "nonsense"}),
]

PATCHES = [
    Step("POST", MAPS, config_map("a", x="1", y="2")),
    Step("PATCH", f"{MAPS}/a", {"data": {"x": None, "z": "3"}}, MERGE),
    Step("PATCH", f"{MAPS}/a", {"data": {"x": "9"}, "metadata": {"labels": {"l": "m"}}}, STRATEGIC),
    Step("PATCH", f"{MAPS}/a", [{"op": "replace", "path": "/data/x", "value": "8"}], PATCH),
    Step("PATCH", f"{MAPS}/a", [{"op": "test", "path": "/data/x", "value": "7"}], PATCH),
    Step("PATCH", f"{MAPS}/a", [{"op": "remove", "path": "/data/none"}], PATCH),
    Step("PATCH", f"{MAPS}/a", {"metadata": {"resourceVersion": "1"}, "data": {"q": "1"}}, MERGE),
    Step("PATCH", f"{MAPS}/a", {"metadata": {"uid": "abc"}}, MERGE),
    Step("PATCH", f"{MAPS}/a", {"metadata": {"name": "other"}}, MERGE),
    Step("PATCH", f"{MAPS}/a", {"data": {"x": 5}}, MERGE),
    Step("PATCH", f"{MAPS}/a", {"kind": "Secret"}, MERGE),
    Step("PATCH", f"{MAPS}/a", {"dota": {"x": "5"}}, MERGE),
    Step("PATCH", f"{MAPS}/a", {"data": {}}, "application/json"),
    Step("PATCH", f"{MAPS}/none", {"data": {}}, MERGE),
    Step("PATCH", f"{MAPS}/a", {"metadata": {"managedFields": []}}, MERGE),
    Step("PATCH", f"{MAPS}/a", {"data": {"x": "9"}}, MERGE, {"dryRun": "All"}),
    Step("PATCH", f"{MAPS}/a", {"metadata": {"finalizers": ["a/b"]}}, MERGE),
    Step("DELETE", f"{MAPS}/a"),
    Step("PATCH", f"{MAPS}/a", {"metadata": {"finalizers": ["a/b", "c/d"]}}, MERGE),
    Step("PATCH", f"{MAPS}/a", {"data": {"still": "here"}}, MERGE),
    Step("DELETE", f"{MAPS}/a"),
    Step("PATCH", f"{MAPS}/a", {"metadata": {"finalizers": None}}, MERGE),
    Step("GET", f"{MAPS}/a"),
    Step("POST", MAPS, {"metadata": {"name": "fg"}}),
    Step("DELETE", f"{MAPS}/fg", query={"propagationPolicy": "Orphan"}),
    Step("POST", MAPS, {"metadata": {"name": "h"}}),
    Step("DELETE", f"{MAPS}/h", {"propagationPolicy": "Background"}),
]

POD_LIFE = [
    Step("POST", PODS, pod("a", terminationGracePeriodSeconds=5)),
    Step("POST", PODS, pod("empty", containers=[])),
    Step("POST", PODS, pod("noimage", containers=[{"name": "c"}])),
    Step("POST", PODS, pod("twice", containers=[{"name": "c", "image": "a"}, {"name": "c", "image": "a"}])),
    Step("POST", PODS, pod("badname", containers=[{"name": "C_", "image": "a"}])),
    Step("POST", PODS, pod("prio", priorityClassName="none")),
    Step("POST", PODS, pod("sysprio", priorityClassName="system-node-critical", priority=7)),
    Step("POST", PODS, pod("critical", priorityClassName="system-cluster-critical")),
    Step("POST", PODS, pod("account", serviceAccountName="nobody")),
    Step("POST", PODS, pod("gated", schedulingGates=[{"name": "x.io/y"}])),
    Step(
        "POST",
        PODS,
        pod(
            "sized",
            containers=[
                {
                    "name": "c",
                    "image": "a:1",
                    "ports": [{"containerPort": 80}],
                    "resources": {
                        "requests": {"cpu": "1000m", "memory": "1.5Gi"},
                        "limits": {"cpu": 2, "memory": "2048Mi", "nvidia.com/gpu": "1"},
                    },
                }
            ],
        ),
    ),
    Step(
        "POST",
        PODS,
        pod(
            "toomuch",
            containers=[
                {"name": "c", "image": "a", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}
            ],
        ),
    ),
    Step(
        "POST",
        PODS,
        pod(
            "extended",
            containers=[
                {"name": "c", "image": "a", "resources": {"requests": {"nvidia.com/gpu": "2"}}},
                {"name": "d", "image": "a", "resources": {"limits": {"nvidia.com/gpu": "0.5"}}},
            ],
        ),
    ),
    Step(
        "POST",
        PODS,
        pod(
            "firm",
            containers=[{"name": "c", "image": "a", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}],
        ),
    ),
    Step("PATCH", f"{PODS}/a", {"spec": {"schedulerName": "other"}}, MERGE),
    Step("PATCH", f"{PODS}/a", {"spec": {"containers": [{"name": "c", "image": "b:2"}]}}, STRATEGIC),
    Step(
        "PATCH", f"{PODS}/a/status", {"status": {"nominatedNodeName": "n9"}, "spec": {"nodeName": "x"}}, MERGE
    ),
    Step(
        "PATCH",
        f"{PODS}/a/status",
        {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}},
        STRATEGIC,
    ),
    Step("PATCH", f"{PODS}/a/status", {"metadata": {"annotations": {"p": "q"}, "labels": {"r": "s"}}}, MERGE),
    Step("POST", f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": {"kind": "Node"}}),
    Step("POST", f"{PODS}/a/binding", {"metadata": {"name": "a", "uid": "no"}, "target": {"name": "n1"}}),
    Step("POST", f"{PODS}/none/binding", {"metadata": {"name": "none"}, "target": {"name": "n1"}}),
    Step("POST", f"{PODS}/gated/binding", {"metadata": {"name": "gated"}, "target": {"name": "n1"}}),
    Step(
        "POST",
        f"{PODS}/a/binding",
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "a", "annotations": {"card": "0"}, "labels": {"x": "y"}},
            "target": {"kind": "Node", "name": "n1"},
        },
    ),
    Step("GET", f"{PODS}/a"),
    Step("POST", f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": {"name": "n1"}}),
    Step("PATCH", f"{PODS}/a/status", {"status": {"nominatedNodeName": "n2"}}, MERGE),
    Step(
        "PATCH",
        f"{PODS}/a/status",
        {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
        STRATEGIC,
    ),
    Step("GET", PODS, query={"fieldSelector": "spec.nodeName=n1,status.phase=Running"}),
    Step("GET", PODS, query={"fieldSelector": "spec.schedulerName!=volcano-py"}),
    Step("DELETE", f"{PODS}/a"),
    Step("DELETE", f"{PODS}/a"),
    Step("POST", f"{PODS}/gated/binding", {"metadata": {"name": "gated"}, "target": {"name": "n1"}}),
    Step("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 2}),
    Step("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0}),
    Step("GET", f"{PODS}/a"),
    Step("DELETE", f"{PODS}/gated"),
    Step("GET", f"{PODS}/gated"),
    Step("POST", f"{PODS}/firm/eviction", {"metadata": {"name": "firm"}}),
    Step("GET", f"{PODS}/firm"),
    Step("POST", f"{PODS}/none/eviction", {"metadata": {"name": "none"}}),
    Step("DELETE", PODS),
    Step("GET", PODS),
]

APPLIED = [
    Step("PATCH", f"{MAPS}/a", config_map("a", x="1", y="1"), APPLY, {"fieldManager": "one"}),
    Step("PATCH", f"{MAPS}/a", config_map("a", x="1", y="1"), APPLY),
    Step("PATCH", f"{MAPS}/a", config_map("a", x="2"), APPLY, {"fieldManager": "two"}),
    Step("PATCH", f"{MAPS}/a", config_map("a", x="1"), APPLY, {"fieldManager": "two"}),
    Step("PATCH", f"{MAPS}/a", config_map("a", x="2"), APPLY, {"fieldManager": "two", "force": "true"}),
    Step("PATCH", f"{MAPS}/a", config_map("a"), APPLY, {"fieldManager": "one"}),
    Step("PATCH", f"{MAPS}/a", {"data": {"x": "3", "z": "1"}}, MERGE, {"fieldManager": "editor"}),
    Step("PATCH", f"{MAPS}/a", config_map("a", x="4", z="5"), APPLY, {"fieldManager": "two"}),
    Step("GET", f"{MAPS}/a"),
    Step("PATCH", f"{MAPS}/a", config_map("b", x="4"), APPLY, {"fieldManager": "two", "force": "1"}),
    Step("PATCH", f"{PODS}/p", pod("p"), APPLY, {"fieldManager": "one"}),
    Step(
        "PATCH",
        f"{PODS}/p/status",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "status": {"conditions": [{"type": "Mine", "status": "True"}]},
        },
        APPLY,
        {"fieldManager": "cond"},
    ),
    Step(
        "PATCH",
        f"{PODS}/p/status",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "status": {"conditions": [{"type": "Other", "status": "True"}]},
        },
        APPLY,
        {"fieldManager": "cond"},
    ),
    Step("PATCH", f"{PODS}/none/status", pod("none"), APPLY, {"fieldManager": "cond"}),
]

STRATEGIC_MERGES = [
    Step("POST", PODS, pod("a", tolerations=[{"key": "k", "operator": "Exists"}])),
    Step(
        "PATCH",
        f"{PODS}/a",
        {"metadata": {"$retainKeys": ["name", "labels"], "labels": {"$patch": "replace", "only": "this"}}},
        STRATEGIC,
    ),
    Step("PATCH", f"{PODS}/a", {"metadata": {"finalizers": ["a/b", "c/d"]}}, STRATEGIC),
    Step("PATCH", f"{PODS}/a", {"metadata": {"finalizers": ["e/f"]}}, STRATEGIC),
    Step("PATCH", f"{PODS}/a", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["c/d"]}}, STRATEGIC),
    Step(
        "PATCH",
        f"{PODS}/a",
        {"metadata": {"finalizers": ["g/h"], "$setElementOrder/finalizers": ["g/h", "e/f", "a/b"]}},
        STRATEGIC,
    ),
    Step(
        "PATCH",
        f"{PODS}/a/status",
        {"status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]}},
        STRATEGIC,
    ),
    Step(
        "PATCH",
        f"{PODS}/a/status",
        {
            "status": {
                "$setElementOrder/conditions": [{"type": "B"}, {"type": "C"}, {"type": "A"}],
                "conditions": [{"type": "C", "status": "True"}, {"type": "A", "status": "False"}],
            }
        },
        STRATEGIC,
    ),
    Step(
        "PATCH",
        f"{PODS}/a/status",
        {"status": {"conditions": [{"type": "B", "$patch": "delete"}]}},
        STRATEGIC,
    ),
    Step(
        "PATCH",
        f"{PODS}/a/status",
        {"status": {"conditions": [{"$patch": "replace"}, {"type": "Z", "status": "True"}]}},
        STRATEGIC,
    ),
    Step("PATCH", f"{PODS}/a/status", {"status": {"conditions": [{"status": "True"}]}}, STRATEGIC),
    Step("PATCH", f"{PODS}/a/status", {"status": {"conditions": None}}, STRATEGIC),
    Step("PATCH", f"{PODS}/a", {"metadata": {"finalizers": None}}, STRATEGIC),
    Step(
        "PATCH",
        f"{PODS}/a",
        {"spec": {"tolerations": [{"key": "z", "operator": "Exists"}]}},
        STRATEGIC,
    ),
]

SCRIPTS = {
    "plain": PLAIN,
    "patches": PATCHES,
    "pod-life": POD_LIFE,
    "applied": APPLIED,
    "strategic": STRATEGIC_MERGES,
}
