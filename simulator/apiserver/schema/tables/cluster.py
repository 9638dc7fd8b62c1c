"""Rows of nodes, namespaces, events, leases and what else belongs to the cluster itself."""

from __future__ import annotations

from volcano_py.simulator.apiserver.schema.tables.ages import UNKNOWN, age
from volcano_py.simulator.apiserver.schema.tables.columns import (
    AGE,
    CREATED_AT,
    NAME,
    NONE,
    Cell,
    Column,
    Document,
    at,
    count,
    field,
    joined,
    selector,
    text,
    wide,
)

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def _node_state(node: Document, now: float) -> str:
    conditions = field(node, "status", "conditions", default=())
    ready = next((one for one in conditions if one.get("type") == "Ready"), None)
    word = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if field(node, "spec", "unschedulable") else word


def _roles(node: Document, now: float) -> str:
    marks = field(node, "metadata", "labels", default={})
    roles = {key.removeprefix(_ROLE_PREFIX) for key in marks if key.startswith(_ROLE_PREFIX)}
    if marks.get(_ROLE_LABEL):
        roles.add(marks[_ROLE_LABEL])
    return joined(sorted(roles - {""})) or NONE


def _node_address(kind: str) -> Cell:
    def cell(node: Document, now: float) -> str:
        addresses = field(node, "status", "addresses", default=())
        return next((one["address"] for one in addresses if one.get("type") == kind), NONE)

    return cell


def _node_info(name: str) -> Cell:
    return text("status", "nodeInfo", name, default=UNKNOWN)


def _kernel(node: Document, now: float) -> str:
    machine = field(node, "status", "nodeInfo", default={})
    version, architecture = machine.get("kernelVersion") or UNKNOWN, machine.get("architecture")
    return f"{version} ({architecture})" if architecture else version


def _first_seen(event: Document, now: float) -> str:
    return age(event.get("firstTimestamp") or event.get("eventTime"), now)


def _last_seen(event: Document, now: float) -> str:
    if series := event.get("series"):
        return age(series.get("lastObservedTime"), now)
    return age(event["lastTimestamp"], now) if event.get("lastTimestamp") else _first_seen(event, now)


def _event_count(event: Document, now: float) -> int:
    if series := event.get("series"):
        return int(series.get("count", 0))
    return int(event.get("count") or 1)


def _event_object(event: Document, now: float) -> str:
    about = event.get("involvedObject") or {}
    kind = about.get("kind", "").lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def _event_source(event: Document, now: float) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent", "")
    host = source.get("host") or event.get("reportingInstance", "")
    return f"{component}, {host}" if host else component


def _event_message(event: Document, now: float) -> str:
    return str(event.get("message", "")).strip()


def _usage(limits: bool) -> Cell:
    """Used and allowed amounts of a quota: of its limits, or of everything else."""

    def cell(quota: Document, now: float) -> str:
        hard = field(quota, "status", "hard", default={})
        used = field(quota, "status", "used", default={})
        names = [name for name in sorted(hard) if name.startswith("limits.") == limits]
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return cell


def _bounded(name: str) -> Cell:
    return lambda budget, now: str(field(budget, "spec", name, default="N/A"))


def _role(binding: Document, now: float) -> str:
    return f"{field(binding, 'roleRef', 'kind')}/{field(binding, 'roleRef', 'name')}"


def _subjects(kind: str) -> Cell:
    def cell(binding: Document, now: float) -> str:
        subjects = [one for one in binding.get("subjects") or () if one.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{one.get('namespace', '')}/{one['name']}" for one in subjects)
        return ", ".join(one["name"] for one in subjects)

    return cell


def _data_count(document: Document, now: float) -> int:
    return len(document.get("data") or ()) + len(document.get("binaryData") or ())


NODES = [
    NAME,
    Column("Status", _node_state),
    Column("Roles", _roles),
    AGE,
    Column("Version", text("status", "nodeInfo", "kubeletVersion")),
    wide("Internal-IP", _node_address("InternalIP")),
    wide("External-IP", _node_address("ExternalIP")),
    wide("OS-Image", _node_info("osImage")),
    wide("Kernel-Version", _kernel),
    wide("Container-Runtime", _node_info("containerRuntimeVersion")),
]
EVENTS = [
    Column("Last Seen", _last_seen),
    Column("Type", text("type")),
    Column("Reason", text("reason")),
    Column("Object", _event_object),
    wide("Subobject", text("involvedObject", "fieldPath")),
    wide("Source", _event_source),
    Column("Message", _event_message),
    wide("First Seen", _first_seen),
    wide("Count", _event_count),
    NAME._replace(priority=1),
]
NAMESPACES = [NAME, Column("Status", text("status", "phase")), AGE]
LEASES = [NAME, Column("Holder", text("spec", "holderIdentity")), AGE]
PRIORITY_CLASSES = [
    NAME,
    Column("Value", at("value", default=0), "integer"),
    Column("Global-Default", at("globalDefault", default=False), "boolean"),
    AGE,
    Column("PreemptionPolicy", text("preemptionPolicy")),
]
QUOTAS = [NAME, Column("Request", _usage(limits=False)), Column("Limit", _usage(limits=True)), AGE]
BUDGETS = [
    NAME,
    Column("Min Available", _bounded("minAvailable")),
    Column("Max Unavailable", _bounded("maxUnavailable")),
    Column("Allowed Disruptions", at("status", "disruptionsAllowed", default=0), "integer"),
    AGE,
]
BINDINGS = [
    NAME,
    Column("Role", _role),
    AGE,
    wide("Users", _subjects("User")),
    wide("Groups", _subjects("Group")),
    wide("ServiceAccounts", _subjects("ServiceAccount")),
]
CONFIG_MAPS = [NAME, Column("Data", _data_count), AGE]
SECRETS = [NAME, Column("Type", text("type")), Column("Data", _data_count), AGE]
AGED = [NAME, AGE]
DATED = [NAME, CREATED_AT]
WEBHOOKS = [NAME, Column("Webhooks", count("webhooks"), "integer"), AGE]
RUNTIME_CLASSES = [NAME, Column("Handler", text("handler")), AGE]
NETWORK_POLICIES = [
    NAME,
    Column("Pod-Selector", lambda policy, now: selector(field(policy, "spec", "podSelector"))),
    AGE,
]
