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

TEMPLATE = {"metadata": {"labels": {"x": "z"}}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}}
SELECTOR = {"matchLabels": {"x": "z"}}
APPS = "/apis/apps/v1/namespaces/{ns}"


def workload(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"selector": SELECTOR, "template": TEMPLATE, **spec}}


WORKLOADS = [
    Step("POST", f"{APPS}/deployments", workload("d")),
    Step("POST", f"{APPS}/deployments", workload("r", strategy={"type": "Recreate"}, replicas=0)),
    Step("GET", f"{APPS}/deployments/d/scale"),
    Step("PATCH", f"{APPS}/deployments/d/scale", {"spec": {"replicas": 3}}, MERGE),
    Step("GET", f"{APPS}/deployments/d"),
    Step("PATCH", f"{APPS}/deployments/d/scale", {"spec": {"replicas": -1}}, MERGE),
    Step(
        "PATCH",
        f"{APPS}/deployments/d",
        {
            "spec": {
                "template": {
                    "spec": {"containers": [{"name": "c", "image": "a:2"}, {"name": "d", "image": "b"}]}
                }
            }
        },
        STRATEGIC,
    ),
    Step("PATCH", f"{APPS}/deployments/d/status", {"status": {"replicas": 1, "readyReplicas": 1}}, MERGE),
    Step("PATCH", f"{APPS}/deployments/d", {"status": {"replicas": 7}}, MERGE),
    Step("POST", f"{APPS}/deployments", {"metadata": {"name": "bad"}, "spec": {"template": TEMPLATE}}),
    Step("POST", f"{APPS}/replicasets", workload("rs")),
    Step("POST", f"{APPS}/statefulsets", workload("ss", serviceName="s")),
    Step("POST", f"{APPS}/daemonsets", workload("ds")),
    Step(
        "POST",
        "/apis/batch/v1/namespaces/{ns}/cronjobs",
        {
            "metadata": {"name": "cj"},
            "spec": {
                "schedule": "* * * * *",
                "jobTemplate": {
                    "spec": {
                        "template": {
                            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "a:1"}]}
                        }
                    }
                },
            },
        },
    ),
    Step(
        "POST",
        "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
        {"metadata": {"name": "pdb"}, "spec": {"minAvailable": "50%", "selector": SELECTOR}},
    ),
    Step("DELETE", f"{APPS}/deployments/d"),
    Step("DELETE", f"{APPS}/replicasets/rs", {"propagationPolicy": "Background"}),
]

REST = [
    Step("GET", "/api/v1/namespaces/{ns}"),
    Step(
        "POST", "/api/v1/namespaces", {"metadata": {"name": "{ns}-x"}, "spec": {}, "status": {"phase": "Odd"}}
    ),
    Step("PATCH", "/api/v1/namespaces/{ns}-x", {"spec": {"finalizers": None}}, MERGE),
    Step("DELETE", "/api/v1/namespaces/default"),
    Step(
        "POST",
        "/api/v1/namespaces/{ns}/services",
        {
            "metadata": {"name": "s"},
            "spec": {"clusterIP": "None", "ports": [{"port": 80}], "selector": {"x": "z"}},
        },
    ),
    Step("POST", "/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "s"}, "data": {"a": "Yg=="}}),
    Step("POST", "/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "t"}, "stringData": {"a": "b"}}),
    Step(
        "POST",
        "/api/v1/namespaces/{ns}/persistentvolumeclaims",
        {
            "metadata": {"name": "c"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "{ns}",
            },
        },
    ),
    Step(
        "POST",
        "/api/v1/persistentvolumes",
        {
            "metadata": {"name": "{ns}"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1024Mi"},
                "hostPath": {"path": "/x"},
            },
        },
    ),
    Step(
        "POST",
        "/apis/storage.k8s.io/v1/storageclasses",
        {"metadata": {"name": "{ns}"}, "provisioner": "x.io/y"},
    ),
    Step("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "{ns}"}, "value": 7}),
    Step("PATCH", "/apis/scheduling.k8s.io/v1/priorityclasses/{ns}", {"value": 8}, MERGE),
    Step("POST", PODS, pod("classy", priorityClassName="{ns}")),
    Step(
        "POST",
        "/api/v1/nodes",
        {"metadata": {"name": "{ns}"}, "status": {"capacity": {"cpu": "4000m", "pods": "110"}}},
    ),
    Step(
        "PATCH",
        "/api/v1/nodes/{ns}",
        {"spec": {"unschedulable": True}, "status": {"capacity": {"cpu": "9"}}},
        MERGE,
    ),
    Step("GET", "/api/v1/nodes", query={"fieldSelector": "spec.unschedulable=true,metadata.name={ns}"}),
    Step(
        "PATCH",
        "/api/v1/nodes/{ns}/status",
        {"status": {"allocatable": {"cpu": "3"}, "conditions": [{"type": "Ready", "status": "True"}]}},
        STRATEGIC,
    ),
    Step(
        "PATCH", "/api/v1/nodes/{ns}", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, STRATEGIC
    ),
    Step(
        "PATCH", "/api/v1/nodes/{ns}", {"spec": {"taints": [{"key": "a", "effect": "Sometimes"}]}}, STRATEGIC
    ),
    Step("DELETE", "/api/v1/nodes/{ns}"),
    Step("DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/{ns}"),
    Step("DELETE", "/apis/storage.k8s.io/v1/storageclasses/{ns}"),
    Step(
        "POST",
        "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
        {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}},
    ),
    Step("POST", "/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "sa"}}),
    Step("DELETE", "/api/v1/namespaces/{ns}/serviceaccounts/sa"),
    Step("DELETE", "/api/v1/namespaces/{ns}/services/s"),
    Step("DELETE", "/api/v1/namespaces/{ns}/secrets/s"),
    Step("GET", "/api/v1/namespaces/{ns}/pods/classy/nothing"),
    Step("GET", "/api/v1/namespaces/{ns}/pods/none/log"),
    Step("GET", "/api/v1/namespaces/{ns}/pods/classy/log", query={"container": "none"}),
    Step("DELETE", "/api/v1/namespaces/{ns}/pods"),
]

OWNED = [
    Step(
        "POST",
        MAPS,
        {"metadata": {"name": "o", "ownerReferences": [{"kind": "Pod", "name": "x", "uid": "1"}]}},
    ),
    Step(
        "POST",
        MAPS,
        {
            "metadata": {
                "name": "o",
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "1", "controller": True},
                    {"apiVersion": "v1", "kind": "Pod", "name": "y", "uid": "2", "controller": True},
                ],
            }
        },
    ),
    Step("POST", MAPS, {"metadata": {"name": "long", "annotations": {"a": "x" * 300_000}}}),
    Step("POST", MAPS, {"metadata": {"name": "x" * 254}}),
    Step("POST", MAPS, {"metadata": {"name": "l", "labels": {"a" * 64: "b", "ok": "c" * 64, "/x": ""}}}),
    Step("POST", MAPS, {"metadata": {"name": "noted", "annotations": {"Not ok": "b"}}}),
    Step("POST", MAPS, b"{not json"),
    Step("POST", MAPS, b"[]"),
    Step("POST", MAPS, {"metadata": {"name": "x", "labels": {"a": 5}}}),
    Step("POST", MAPS, b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: yam}\n", "application/yaml"),
    Step("POST", MAPS, b"x", "text/plain"),
]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/{ns}.example.com/v1/namespaces/{ns}/things"


def thing(name: str, **parts: Any) -> dict[str, Any]:
    return {"apiVersion": "{ns}.example.com/v1", "kind": "Thing", "metadata": {"name": name}, **parts}


def thing_definition(group: str) -> dict[str, Any]:
    item = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "value": {"type": "integer", "default": 7}},
    }
    spec = {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 1},
            "colour": {"type": "string", "default": "red"},
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "parts": {
                "type": "array",
                "items": item,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "free": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    status = {"type": "object", "properties": {"phase": {"type": "string"}, "size": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
    }
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


CUSTOM = [
    Step("QUIET", DEFINITIONS, thing_definition("{ns}.example.com")),
    Step("UNTIL", THINGS),
    Step(
        "POST", THINGS, thing("a", spec={"size": 2, "odd": True, "any": {"x": [1]}}, status={"phase": "No"})
    ),
    Step("POST", THINGS, thing("a", spec={"size": 2})),
    Step("POST", THINGS, thing("b", spec={"size": 0, "parts": [{"value": 1}]})),
    Step("POST", THINGS, thing("c", spec={"odd": 1}), query={"fieldValidation": "Strict"}),
    Step("POST", THINGS, {"kind": "Thing", "metadata": {"name": "d"}}),
    Step("POST", THINGS, {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "d"}}),
    Step("PATCH", f"{THINGS}/a", {"spec": {"size": 3, "colour": None}}, MERGE),
    Step("PATCH", f"{THINGS}/a", {"spec": {"size": 3}, "status": {"phase": "Up"}}, MERGE),
    Step("PATCH", f"{THINGS}/a/status", {"spec": {"size": 9}, "status": {"phase": "Up"}}, MERGE),
    Step("PATCH", f"{THINGS}/a", {"spec": {"size": 0}}, MERGE),
    Step("PATCH", f"{THINGS}/a", {"spec": {}}, STRATEGIC),
    Step("PATCH", f"{THINGS}/a", {"metadata": {"uid": "abc"}}, MERGE),
    Step("PUT", f"{THINGS}/a", thing("a", spec={"size": 4})),
    Step("GET", f"{THINGS}/a/scale"),
    Step("PATCH", f"{THINGS}/a/scale", {"spec": {"replicas": 6}}, MERGE),
    Step("GET", f"{THINGS}/a"),
    Step("GET", f"{THINGS}/a/nothing"),
    Step("GET", THINGS, query={"fieldSelector": "spec.size=6"}),
    Step(
        "PATCH",
        f"{THINGS}/s",
        thing("s", spec={"parts": [{"name": "x", "value": 1}, {"name": "y"}], "tags": ["p", "q"]}),
        APPLY,
        {"fieldManager": "one"},
    ),
    Step(
        "PATCH",
        f"{THINGS}/s",
        thing("s", spec={"parts": [{"name": "z"}, {"name": "x", "value": 2}], "tags": ["r"]}),
        APPLY,
        {"fieldManager": "two"},
    ),
    Step(
        "PATCH",
        f"{THINGS}/s",
        thing("s", spec={"parts": [{"name": "z"}, {"name": "x", "value": 2}], "tags": ["r"]}),
        APPLY,
        {"fieldManager": "two", "force": "true"},
    ),
    Step("PATCH", f"{THINGS}/s", thing("s", spec={"parts": [{"name": "y"}]}), APPLY, {"fieldManager": "one"}),
    Step("PATCH", f"{THINGS}/s", thing("s", spec={"free": {"a": "b"}}), APPLY, {"fieldManager": "three"}),
    Step("PATCH", f"{THINGS}/s", thing("s", spec={"free": {"c": "d"}}), APPLY, {"fieldManager": "three"}),
    Step("PATCH", f"{THINGS}/s", thing("s", spec={"parts": [{"name": "k"}, {"name": "k"}]}), MERGE),
    Step("PATCH", f"{THINGS}/s/status", thing("s", status={"phase": "A"}), APPLY, {"fieldManager": "st"}),
    Step("PATCH", f"{THINGS}/s/status", thing("s", status={"size": 3}), APPLY, {"fieldManager": "st"}),
    Step("DELETE", f"{THINGS}/s"),
    Step("DELETE", THINGS),
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

REPLACED = [
    Step("POST", f"{APPS}/deployments", workload("d")),
    Step("PUT", f"{APPS}/deployments/d", workload("d", replicas=4)),
    Step("PUT", f"{APPS}/deployments/d/status", workload("d") | {"status": {"replicas": 4}}),
    Step("POST", "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", {"metadata": {"name": "l"}}),
    Step(
        "PUT",
        "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l",
        {"metadata": {"name": "l"}, "spec": {"holderIdentity": "x"}},
    ),
    Step("PUT", "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/m", {"metadata": {"name": "m"}}),
    Step(
        "POST",
        "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
        {"metadata": {"name": "b"}, "spec": {}},
    ),
    Step(
        "PUT",
        "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets/b",
        {"metadata": {"name": "b"}, "spec": {}},
    ),
    Step("POST", PODS, pod("p")),
    Step("PUT", f"{PODS}/p", pod("p")),
    Step("PUT", f"{PODS}/p/status", pod("p") | {"status": {"phase": "Running", "podIP": "10.0.0.1"}}),
    Step("POST", "/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "s"}}),
    Step(
        "PUT", "/api/v1/namespaces/{ns}/serviceaccounts/s", {"metadata": {"name": "s", "labels": {"a": "b"}}}
    ),
    Step("PUT", "/api/v1/namespaces/{ns}", {"metadata": {"name": "{ns}", "labels": {"a": "b"}}}),
    Step(
        "PUT",
        "/api/v1/namespaces/{ns}/finalize",
        {"metadata": {"name": "{ns}"}, "spec": {"finalizers": ["kubernetes"]}},
    ),
    Step("POST", "/api/v1/nodes", {"metadata": {"name": "{ns}"}}),
    Step("PUT", "/api/v1/nodes/{ns}", {"metadata": {"name": "{ns}"}, "spec": {"unschedulable": True}}),
    Step(
        "PUT",
        "/api/v1/nodes/{ns}/status",
        {"metadata": {"name": "{ns}"}, "status": {"capacity": {"cpu": "1"}}},
    ),
    Step("DELETE", "/api/v1/nodes/{ns}"),
]

SCRIPTS = {
    "plain": PLAIN,
    "patches": PATCHES,
    "pod-life": POD_LIFE,
    "applied": APPLIED,
    "strategic": STRATEGIC_MERGES,
    "workloads": WORKLOADS,
    "rest": REST,
    "owned": OWNED,
    "custom": CUSTOM,
    "applied-pods": APPLIED_PODS,
    "replaced": REPLACED,
}
