"""Objects of built-in kinds that are refused, with what the real server says of them."""

from __future__ import annotations

from typing import Any, NamedTuple

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or "
    "'-', and must start and "
    "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
STANDARD = "must be a standard resource type or fully qualified"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODE_TERMS = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"


C = "spec.containers[0]"


class Case(NamedTuple):
    """An object, and its faults as ``field: message``."""

    name: str
    group: str
    plural: str
    document: dict[str, Any]
    causes: list[str]

    @property
    def path(self) -> str:
        """Where it is created; ``{ns}`` stands for a namespace."""
        version = "v2" if self.group == "autoscaling" else "v1"
        root = f"/apis/{self.group}/{version}" if self.group else "/api/v1"
        scope = "" if self.plural in CLUSTER else "/namespaces/{ns}"
        return f"{root}{scope}/{self.plural}"


CLUSTER = frozenset({"nodes", "priorityclasses", "storageclasses", "persistentvolumes", "clusterroles"})


def pod(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def with_container(**fields: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "c", "image": "i", **fields}])


def resources(requests: dict[str, Any], limits: dict[str, Any] | None = None) -> dict[str, Any]:
    return with_container(resources={"requests": requests, **({"limits": limits} if limits else {})})


def node_term(**expression: Any) -> dict[str, Any]:
    terms = [{"matchExpressions": [expression]}]
    return pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})


def spread(**fields: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", **fields}


_PODS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no containers": (pod(containers=[]), ["spec.containers: Required value"]),
    "container name": (
        pod(containers=[{"name": "A", "image": "i"}]),
        [f'{C}.name: Invalid value: "A": {LABEL}'],
    ),
    "no image": (pod(containers=[{"name": "c"}]), [f"{C}.image: Required value"]),
    "two of a name": (
        pod(containers=[{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]),
        ['spec.containers[1].name: Duplicate value: "c"'],
    ),
    "long name": (
        pod(containers=[{"name": "c" * 64, "image": "i"}]),
        [f'{C}.name: Invalid value: "{"c" * 64}": must be no more than 63 characters'],
    ),
    "request over limit": (
        resources({"cpu": "2"}, {"cpu": "1"}),
        [f'{C}.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
    ),
    "unknown resource": (
        resources({"foo": "1"}),
        [
            f'{C}.resources.requests[foo]: Invalid value: "foo": {STANDARD}',
            f'{C}.resources.requests[foo]: Invalid value: "foo": must be a standard resource for containers',
        ],
    ),
    "negative": (
        resources({"cpu": "-1"}),
        [
            f'{C}.resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ],
    ),
    "device without limit": (
        resources({"nvidia.com/gpu": "1"}),
        [f"{C}.resources.limits: Required value: Limit must be set for non overcommitable resources"],
    ),
    "device with another limit": (
        resources({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "2"}),
        [f'{C}.resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'],
    ),
    "port 0": (
        with_container(ports=[{"containerPort": 0}]),
        [f"{C}.ports[0].containerPort: Required value"],
    ),
    "port too large": (
        with_container(ports=[{"containerPort": 70000}]),
        [f"{C}.ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"],
    ),
    "protocol": (
        with_container(ports=[{"containerPort": 80, "protocol": "X"}]),
        [f'{C}.ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"'],
    ),
    "host port twice": (
        with_container(ports=[{"containerPort": 80, "hostPort": 1}, {"containerPort": 81, "hostPort": 1}]),
        [f'{C}.ports[1].hostPort: Duplicate value: "TCP//1"'],
    ),
    "variable": (
        with_container(env=[{"name": "a=b"}]),
        [
            f'{C}.env[0].name: Invalid value: "a=b": a valid environment variable name must consist '
            "only of printable ASCII characters other than '='"
        ],
    ),
    "mount of no volume": (
        with_container(volumeMounts=[{"name": "v", "mountPath": "/x"}]),
        [f'{C}.volumeMounts[0].name: Not found: "v"'],
    ),
    "probe": (
        with_container(livenessProbe={}),
        [f"{C}.livenessProbe: Required value: must specify a handler type"],
    ),
    "volumes of a name": (
        pod(volumes=[{"name": "v"}, {"name": "v"}]),
        ['spec.volumes[1].name: Duplicate value: "v"'],
    ),
    "two sources": (
        pod(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]),
        ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
    ),
    "claim without name": (
        pod(volumes=[{"name": "v", "persistentVolumeClaim": {}}]),
        ["spec.volumes[0].persistentVolumeClaim.claimName: Required value"],
    ),
    "restart policy": (
        pod(restartPolicy="x"),
        ['spec.restartPolicy: Unsupported value: "x": supported values: "Always", "OnFailure", "Never"'],
    ),
    "node selector": (pod(nodeSelector={"a b": "c"}), [f'spec.nodeSelector: Invalid value: "a b": {KEY}']),
    "deadline": (
        pod(activeDeadlineSeconds=0),
        ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
    ),
    "toleration of nothing": (
        pod(tolerations=[{"value": "v"}]),
        [
            'spec.tolerations[0].operator: Invalid value: "": operator must be '
            "Exists when `key` is empty, which "
            'means "match all values and all keys"'
        ],
    ),
    "toleration effect": (
        pod(tolerations=[{"key": "k", "effect": "x"}]),
        [
            'spec.tolerations[0].effect: Unsupported value: "x": supported values: "NoSchedule", '
            '"PreferNoSchedule", "NoExecute"'
        ],
    ),
    "toleration seconds": (
        pod(tolerations=[{"key": "k", "effect": "NoSchedule", "tolerationSeconds": 5, "operator": "Exists"}]),
        [
            "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when "
            "`tolerationSeconds` is set"
        ],
    ),
    "no node terms": (
        pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}),
        [f"{NODE_TERMS}: Required value: must have at least one node selector term"],
    ),
    "operator": (
        node_term(key="a", operator="X", values=["1"]),
        [f'{NODE_TERMS}[0].matchExpressions[0].operator: Invalid value: "X": not a valid selector operator'],
    ),
    "no values": (
        node_term(key="a", operator="In"),
        [
            f"{NODE_TERMS}[0].matchExpressions[0].values: Required value: "
            "must be specified when `operator` is "
            "'In' or 'NotIn'"
        ],
    ),
    "preference weight": (
        pod(
            affinity={
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": {}}]
                }
            }
        ),
        [
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
            "Invalid value: "
            "0: must be in the range 1-100"
        ],
    ),
    "spread": (
        pod(topologySpreadConstraints=[spread(maxSkew=0, topologyKey="", whenUnsatisfiable="x")]),
        [
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
            "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
            'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "x": supported values: '
            '"DoNotSchedule", "ScheduleAnyway"',
        ],
    ),
    "spread twice": (
        pod(topologySpreadConstraints=[spread(), spread()]),
        [
            "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "
            '"{a, DoNotSchedule}"'
        ],
    ),
    "gates": (
        pod(schedulingGates=[{"name": "a"}, {"name": "a"}, {"name": "A b"}]),
        [
            'spec.schedulingGates[1]: Duplicate value: "a"',
            f'spec.schedulingGates[2]: Invalid value: "A b": {KEY}',
        ],
    ),
    "gated and bound": (
        pod(schedulingGates=[{"name": "a"}], nodeName="n"),
        ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
    ),
}


def _object(kind: str, api_version: str = "v1", name: str = "x", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def _node(**fields: Any) -> dict[str, Any]:
    return _object("Node", **fields)


def _class(name: str = "x", **fields: Any) -> dict[str, Any]:
    return _object("PriorityClass", "scheduling.k8s.io/v1", name, **fields)


def _budget(**spec: Any) -> dict[str, Any]:
    return _object("PodDisruptionBudget", "policy/v1", spec=spec)


TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}


def _job(**spec: Any) -> dict[str, Any]:
    return _object("Job", "batch/v1", spec={"template": TEMPLATE, **spec})


_OTHERS = [
    Case(
        "taint",
        "",
        "nodes",
        _node(spec={"taints": [{"key": "a b", "effect": "x"}]}),
        [
            f'metadata.taints[0].key: Invalid value: "a b": {KEY}',
            'metadata.taints[0].effect: Unsupported value: "x": supported values: "NoSchedule", '
            '"PreferNoSchedule", "NoExecute"',
        ],
    ),
    Case(
        "node amounts",
        "",
        "nodes",
        _node(status={"allocatable": {"cpu": "-1", "nvidia.com/gpu": "1.5"}}),
        [
            'status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0',
            'status.allocatable.nvidia.com/gpu: Invalid value: "1500m": must be an integer',
        ],
    ),
    Case(
        "priority too large",
        "scheduling.k8s.io",
        "priorityclasses",
        _class(value=2 * 10**9),
        ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
    ),
    Case(
        "system priority",
        "scheduling.k8s.io",
        "priorityclasses",
        _class("system-foo", value=1),
        [
            "metadata.name: Forbidden: priority class names with 'system-' prefix are "
            "reserved for system use only. "
            "error: system-foo is not a known system priority class"
        ],
    ),
    Case(
        "budget of both",
        "policy",
        "poddisruptionbudgets",
        _budget(minAvailable=1, maxUnavailable=1),
        [
            'spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":1,'
            '"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set'
        ],
    ),
    Case(
        "budget over the whole",
        "policy",
        "poddisruptionbudgets",
        _budget(minAvailable="150%"),
        ['spec.minAvailable: Invalid value: "150%": must not be greater than 100%'],
    ),
    Case(
        "lease",
        "coordination.k8s.io",
        "leases",
        _object("Lease", "coordination.k8s.io/v1", spec={"leaseDurationSeconds": 0}),
        ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
    ),
    Case(
        "job numbers",
        "batch",
        "jobs",
        _job(parallelism=-1, completionMode="x"),
        [
            "spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
            'spec.completionMode: Unsupported value: "x": supported values: "NonIndexed", "Indexed"',
        ],
    ),
    Case(
        "job without restart policy",
        "batch",
        "jobs",
        _object(
            "Job", "batch/v1", spec={"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
        ),
        ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    ),
    Case(
        "ports without names",
        "",
        "services",
        _object("Service", spec={"ports": [{"port": 80}, {"port": 81}]}),
        ["spec.ports[0].name: Required value", "spec.ports[1].name: Required value"],
    ),
    Case(
        "claim",
        "",
        "persistentvolumeclaims",
        _object("PersistentVolumeClaim", spec={}),
        [
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value",
        ],
    ),
    Case(
        "volume",
        "",
        "persistentvolumes",
        _object("PersistentVolume", spec={}),
        [
            "spec.accessModes: Required value",
            "spec.capacity: Required value",
            'spec.capacity: Unsupported value: null: supported values: "storage"',
            "spec: Required value: must specify a volume type",
        ],
    ),
    Case(
        "storage class",
        "storage.k8s.io",
        "storageclasses",
        _object("StorageClass", "storage.k8s.io/v1"),
        ["provisioner: Required value"],
    ),
    Case(
        "quota",
        "",
        "resourcequotas",
        _object("ResourceQuota", spec={"hard": {"foo": "1", "cpu": "-1"}, "scopes": ["x"]}),
        [
            f'spec.hard[foo]: Invalid value: "foo": {STANDARD}',
            'spec.hard[foo]: Invalid value: "foo": must be a standard resource for quota',
            'spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0',
            'spec.scopes: Invalid value: ["x"]: unsupported scope',
        ],
    ),
    Case(
        "event elsewhere",
        "",
        "events",
        _object("Event", involvedObject={"namespace": "other"}),
        ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
    ),
    Case(
        "role",
        "rbac.authorization.k8s.io",
        "clusterroles",
        _object("ClusterRole", "rbac.authorization.k8s.io/v1", rules=[{"verbs": []}]),
        [
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
        ],
    ),
]

BAD = [Case(name, "", "pods", *case) for name, case in _PODS.items()] + _OTHERS
