"""Kinds: workloads, custom ones, and one of each of the rest."""

from __future__ import annotations

from tests.apiserver.builders import (
    APPS,
    DEFINITIONS,
    PODS,
    SELECTOR,
    TEMPLATE,
    THINGS,
    pod,
    thing,
    thing_definition,
    workload,
)
from tests.apiserver.transcripts import APPLY, MERGE, STRATEGIC, Step

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
    Step("UNTIL", PODS, pod("classy", priorityClassName="{ns}")),
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
