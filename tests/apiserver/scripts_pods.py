"""Pods: their life, strategic merges, server-side apply."""

from __future__ import annotations

from tests.apiserver.builders import APPS, MAPS, PODS, config_map, pod, workload
from tests.apiserver.transcripts import APPLY, MERGE, STRATEGIC, Step

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

APPLIED_PODS = [
    Step("PATCH", f"{PODS}/p", pod("p"), APPLY, {"fieldManager": "one"}),
    Step(
        "PATCH",
        f"{PODS}/p",
        pod("p", containers=[{"name": "c", "image": "b:2"}]),
        APPLY,
        {"fieldManager": "two"},
    ),
    Step(
        "PATCH",
        f"{PODS}/p",
        pod("p", containers=[{"name": "c", "image": "b:2"}]),
        APPLY,
        {"fieldManager": "two", "force": "true"},
    ),
    Step(
        "PATCH",
        f"{APPS}/deployments/d",
        workload("d") | {"apiVersion": "apps/v1", "kind": "Deployment"},
        APPLY,
        {"fieldManager": "one"},
    ),
    Step("PATCH", f"{APPS}/deployments/d", {"spec": {"replicas": 2}}, MERGE, {"fieldManager": "hpa"}),
    Step(
        "PATCH",
        f"{APPS}/deployments/d",
        workload("d", replicas=5) | {"apiVersion": "apps/v1", "kind": "Deployment"},
        APPLY,
        {"fieldManager": "one"},
    ),
    Step(
        "PATCH",
        f"{APPS}/deployments/d",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d", "labels": {"a": "b"}},
            "spec": {
                "template": {
                    "spec": {
                        "containers": [{"name": "side", "image": "s", "env": [{"name": "A", "value": "1"}]}],
                        "volumes": [{"name": "v", "emptyDir": {}}],
                    }
                }
            },
        },
        APPLY,
        {"fieldManager": "side"},
    ),
    Step(
        "PATCH",
        f"{APPS}/deployments/d",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s", "env": []}]}}},
        },
        APPLY,
        {"fieldManager": "side"},
    ),
    Step(
        "PATCH",
        f"{APPS}/deployments/d",
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}},
        APPLY,
        {"fieldManager": "side"},
    ),
]
