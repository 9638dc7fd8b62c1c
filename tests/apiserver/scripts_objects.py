"""Any object: names, patches, refusals, replacements."""

from __future__ import annotations

from tests.apiserver.builders import APPS, MAPS, PODS, config_map, pod, workload
from tests.apiserver.transcripts import MERGE, PATCH, STRATEGIC, Step

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
