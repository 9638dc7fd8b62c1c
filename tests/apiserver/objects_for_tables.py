"""Objects in many states, for tables: what a user sees of them depends on their status."""

from __future__ import annotations

from typing import Any

STARTED = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
OOM = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-01T00:00:00Z"}}
READY = {"type": "Ready", "status": "True"}


def container(name: str = "c", **status: Any) -> dict[str, Any]:
    return {
        "name": name,
        "image": "i",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {},
        **status,
    }


def pod(name: str, status: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
        "status": status,
    }


COMPLETED = {"terminated": {"exitCode": 0, "reason": "Completed"}}
HALF = [container(state=COMPLETED), container("d", ready=True, state=STARTED)]
TWO = [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]
INITS = [{"name": "i", "image": "i"}, {"name": "s", "image": "i", "restartPolicy": "Always"}]
PODS = [
    pod("pending", {"phase": "Pending"}),
    pod("gated", {"phase": "Pending"}, schedulingGates=[{"name": "g"}]),
    pod("nominated", {"phase": "Pending", "nominatedNodeName": "n"}),
    pod(
        "running",
        {
            "phase": "Running",
            "conditions": [READY],
            "podIPs": [{"ip": "10.0.0.1"}],
            "podIP": "10.0.0.1",
            "containerStatuses": [container(ready=True, state=STARTED, restartCount=3, lastState=OOM)],
        },
        nodeName="n",
    ),
    pod(
        "waiting",
        {
            "phase": "Pending",
            "containerStatuses": [container(state={"waiting": {"reason": "ContainerCreating"}})],
        },
    ),
    pod(
        "crashed",
        {"phase": "Running", "containerStatuses": [container(state={"terminated": {"exitCode": 3}})]},
    ),
    pod(
        "signalled",
        {
            "phase": "Running",
            "containerStatuses": [container(state={"terminated": {"exitCode": 0, "signal": 9}})],
        },
    ),
    pod(
        "completed",
        {
            "phase": "Succeeded",
            "containerStatuses": [container(state={"terminated": {"exitCode": 0, "reason": "Completed"}})],
        },
    ),
    pod("half-done", {"phase": "Running", "containerStatuses": HALF}, containers=TWO),
    pod(
        "half-done-ready",
        {"phase": "Running", "conditions": [READY], "containerStatuses": HALF},
        containers=TWO,
    ),
    pod("evicted", {"phase": "Failed", "reason": "Evicted", "message": "gone"}),
    pod(
        "initializing",
        {
            "phase": "Pending",
            "initContainerStatuses": [container("i", state=STARTED), container("s")],
            "containerStatuses": [container(state={"waiting": {"reason": "PodInitializing"}})],
        },
        initContainers=INITS,
    ),
    pod(
        "init-failed",
        {
            "phase": "Pending",
            "initContainerStatuses": [container("i", state={"terminated": {"exitCode": 1}}, restartCount=2)],
        },
        initContainers=INITS,
    ),
    pod(
        "sidecar",
        {
            "phase": "Running",
            "conditions": [{"type": "Initialized", "status": "True"}, READY],
            "initContainerStatuses": [
                container("i", state={"terminated": {"exitCode": 0, "reason": "Completed"}}),
                container("s", state=STARTED, started=True, ready=True, restartCount=1),
            ],
            "containerStatuses": [container(ready=True, state=STARTED)],
        },
        initContainers=INITS,
    ),
    pod(
        "readiness",
        {"phase": "Running", "conditions": [{"type": "x.io/a", "status": "True"}]},
        readinessGates=[{"conditionType": "x.io/a"}, {"conditionType": "x.io/b"}],
    ),
]
NODES: list[dict[str, Any]] = [
    {
        "metadata": {
            "name": "ready",
            "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"},
        },
        "status": {
            "conditions": [READY],
            "addresses": [
                {"type": "InternalIP", "address": "10.0.0.2"},
                {"type": "Hostname", "address": "h"},
            ],
            "nodeInfo": {
                "kubeletVersion": "v1.36.1",
                "osImage": "Linux",
                "kernelVersion": "6",
                "containerRuntimeVersion": "containerd://2",
                **dict.fromkeys(
                    (
                        "architecture",
                        "bootID",
                        "kubeProxyVersion",
                        "machineID",
                        "operatingSystem",
                        "systemUUID",
                    ),
                    "x",
                ),
            },
        },
    },
    {
        "metadata": {"name": "cordoned"},
        "spec": {"unschedulable": True},
        "status": {"conditions": [{"type": "Ready", "status": "False"}]},
    },
    {"metadata": {"name": "silent"}},
]
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}],
    },
}
ALWAYS = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Always"}}
SELECTOR = {
    "matchLabels": {"a": "b"},
    "matchExpressions": [{"key": "x", "operator": "In", "values": ["2", "1"]}],
}
PLAIN_SELECTOR = {"matchLabels": {"a": "b"}}
JOBS: list[dict[str, Any]] = [
    {"metadata": {"name": "plain"}, "spec": {"template": TEMPLATE}},
    {"metadata": {"name": "parallel"}, "spec": {"template": TEMPLATE, "parallelism": 3}},
    {"metadata": {"name": "counted"}, "spec": {"template": TEMPLATE, "completions": 4, "suspend": True}},
]
VOLCANO = {"apiVersion": "scheduling.volcano.sh/v1beta1"}
PROBE = {"apiVersion": "test.volcano-py.io/v1", "kind": "Probe"}
# Path to objects that are made in that order; a status that is in them is written afterwards.
OBJECTS: dict[str, list[dict[str, Any]]] = {
    "/api/v1/nodes": NODES,
    "/api/v1/namespaces/{ns}/pods": PODS,
    "/apis/batch/v1/namespaces/{ns}/jobs": JOBS,
    "/apis/batch/v1/namespaces/{ns}/cronjobs": [
        {
            "metadata": {"name": "c"},
            "spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": TEMPLATE}}},
        },
    ],
    "/apis/apps/v1/namespaces/{ns}/deployments": [
        {"metadata": {"name": "d"}, "spec": {"selector": PLAIN_SELECTOR, "template": ALWAYS, "replicas": 2}},
    ],
    "/apis/apps/v1/namespaces/{ns}/statefulsets": [
        {
            "metadata": {"name": "s"},
            "spec": {"serviceName": "s", "selector": PLAIN_SELECTOR, "template": ALWAYS},
        },
    ],
    "/apis/apps/v1/namespaces/{ns}/daemonsets": [
        {"metadata": {"name": "d"}, "spec": {"selector": PLAIN_SELECTOR, "template": ALWAYS}},
    ],
    "/api/v1/namespaces/{ns}/services": [
        {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "selector": {"b": "2", "a": "1"}}},
        {
            "metadata": {"name": "headless"},
            "spec": {"clusterIP": "None", "ports": [{"port": 80, "protocol": "UDP"}]},
        },
        {
            "metadata": {"name": "balanced"},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30080}]},
        },
    ],
    "/api/v1/namespaces/{ns}/persistentvolumeclaims": [
        {
            "metadata": {"name": "waiting"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
        {
            "metadata": {"name": "bound"},
            "spec": {
                "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
                "storageClassName": "fast",
                "volumeName": "v",
                "resources": {"requests": {"storage": "1Gi"}},
            },
            "status": {
                "phase": "Bound",
                "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
                "capacity": {"storage": "2Gi"},
            },
        },
    ],
    "/api/v1/persistentvolumes": [
        {
            "metadata": {"name": "v"},
            "spec": {
                "accessModes": ["ReadWriteMany"],
                "capacity": {"storage": "2Gi"},
                "hostPath": {"path": "/x"},
                "claimRef": {"namespace": "n", "name": "c"},
                "storageClassName": "fast",
            },
        },
    ],
    "/apis/storage.k8s.io/v1/storageclasses": [
        {
            "metadata": {
                "name": "fast",
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
            "provisioner": "p.io/x",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {"metadata": {"name": "slow"}, "provisioner": "p.io/x", "allowVolumeExpansion": True},
    ],
    "/apis/storage.k8s.io/v1/csinodes": [
        {"metadata": {"name": "n"}, "spec": {"drivers": [{"name": "d", "nodeID": "n"}]}},
    ],
    "/apis/storage.k8s.io/v1/csidrivers": [{"metadata": {"name": "d"}, "spec": {"podInfoOnMount": True}}],
    "/apis/scheduling.k8s.io/v1/priorityclasses": [
        {"metadata": {"name": "high"}, "value": 10, "preemptionPolicy": "Never"},
    ],
    "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases": [
        {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}},
        {"metadata": {"name": "free"}},
    ],
    "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets": [
        {"metadata": {"name": "least"}, "spec": {"minAvailable": "50%", "selector": PLAIN_SELECTOR}},
        {"metadata": {"name": "most"}, "spec": {"maxUnavailable": 1}},
    ],
    "/api/v1/namespaces/{ns}/events": [
        {
            "metadata": {"name": "old"},
            "involvedObject": {
                "kind": "Pod",
                "name": "p",
                "namespace": "{ns}",
                "fieldPath": "spec.containers{c}",
            },
            "type": "Warning",
            "reason": "Failed",
            "message": " trimmed ",
            "source": {"component": "kubelet", "host": "n"},
            "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-02T00:00:00Z",
            "count": 5,
        },
        {
            "metadata": {"name": "new"},
            "involvedObject": {"kind": "Queue", "namespace": "{ns}"},
            "type": "Normal",
            "reason": "Opened",
            "action": "Open",
            "reportingComponent": "volcano-py",
            "reportingInstance": "volcano-py-1",
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "series": {"count": 7, "lastObservedTime": "2026-01-03T00:00:00.000000Z"},
        },
    ],
    "/api/v1/namespaces/{ns}/configmaps": [
        {"metadata": {"name": "m"}, "data": {"a": "1", "b": "2"}, "binaryData": {"c": "YQ=="}},
    ],
    "/api/v1/namespaces/{ns}/secrets": [{"metadata": {"name": "s"}, "data": {"a": "YQ=="}}],
    "/api/v1/namespaces/{ns}/serviceaccounts": [{"metadata": {"name": "robot"}}],
    "/api/v1/namespaces/{ns}/resourcequotas": [
        {
            "metadata": {"name": "q"},
            "spec": {"hard": {"pods": "3", "limits.cpu": "2", "requests.cpu": "1"}},
            "status": {"hard": {"pods": "3", "limits.cpu": "2", "requests.cpu": "1"}, "used": {"pods": "1"}},
        },
    ],
    "/api/v1/namespaces/{ns}/limitranges": [
        {"metadata": {"name": "r"}, "spec": {"limits": [{"type": "Pod"}]}}
    ],
    "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings": [
        {
            "metadata": {"name": "b"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [
                {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"},
                {"kind": "Group", "name": "g", "apiGroup": "rbac.authorization.k8s.io"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            ],
        },
    ],
    "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles": [{"metadata": {"name": "r"}, "rules": []}],
    "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies": [
        {"metadata": {"name": "p"}, "spec": {"podSelector": SELECTOR}},
    ],
    "/apis/node.k8s.io/v1/runtimeclasses": [{"metadata": {"name": "gvisor"}, "handler": "runsc"}],
    "/apis/scheduling.volcano.sh/v1beta1/queues": [
        {**VOLCANO, "kind": "Queue", "metadata": {"name": "parented"}, "spec": {"parent": "other"}},
        {**VOLCANO, "kind": "Queue", "metadata": {"name": "bare"}},
    ],
    "/apis/scheduling.volcano.sh/v1beta1/namespaces/{ns}/podgroups": [
        {
            **VOLCANO,
            "kind": "PodGroup",
            "metadata": {"name": "g"},
            "spec": {"minMember": 3, "queue": "q"},
            "status": {"phase": "Inqueue"},
        },
    ],
    "/apis/test.volcano-py.io/v1/namespaces/{ns}/probes": [
        {
            **PROBE,
            "metadata": {"name": "full"},
            "spec": {
                "text": "ab",
                "choice": 2,
                "list": ["x", "y"],
                "object": {"a": 1, "b": 2},
                "flag": True,
                "number": 2.5,
                "map": [{"name": "a", "value": 3}, {"name": "b", "value": 4}],
            },
        },
        {**PROBE, "metadata": {"name": "empty"}},
    ],
}
