"""What is asked of a new object beyond its own words: its namespace, a pod's priority, a claim's class."""

from __future__ import annotations

from typing import Any, Final

from volcano_py.simulator.apiserver.requests import Target
from volcano_py.simulator.apiserver.schema.kinds import ServedKind
from volcano_py.simulator.apiserver.status import Document, Refused, forbidden
from volcano_py.simulator.apiserver.store import Store

PRIORITY_CLASSES: Final = "priorityclasses.scheduling.k8s.io"
STORAGE_CLASSES: Final = "storageclasses.storage.k8s.io"
NAMESPACES: Final = "namespaces"
IMMORTAL: Final = frozenset(["default", "kube-system", "kube-public"])
"""Namespaces that can't be deleted."""

_TOLERATED_S: Final = 300
_TOLERATED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_SET_ONCE: Final = "preemptionPolicy"
_CLASS_NOTE: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_NOTES: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def admit_new(store: Store, target: Target, document: Document) -> None:
    """Refuse or complete a new object.

    Raises:
        Refused: 404 for a namespace that isn't there, 403 for what a rule forbids.
    """
    if target.kind.namespaced:
        _admit_to_namespace(store, target, document)
    if target.kind.bucket == "pods":
        _admit_pod(store, target.kind, document)
    if target.kind.bucket == "persistentvolumeclaims":
        _admit_claim(store, document)


def _admit_to_namespace(store: Store, target: Target, document: Document) -> None:
    space = store.get(NAMESPACES, "", target.namespace)
    name = document["metadata"].get("name") or document["metadata"].get("generateName") or ""
    if space is None:
        message = f'namespaces "{target.namespace}" not found'
        details = {"name": target.namespace, "kind": "namespaces"}
        raise Refused(404, "NotFound", message, details=details)
    if space.ending:
        why = f"unable to create new content in namespace {target.namespace} because it is being terminated"
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {target.namespace} is being terminated",
            "field": "metadata.namespace",
        }
        raise forbidden(target.kind, name, why, [cause])


def _admit_pod(store: Store, kind: ServedKind, pod: Document) -> None:
    spec: Document = pod.get("spec") or {}
    name = pod["metadata"].get("name") or pod["metadata"].get("generateName") or ""
    _admit_account(store, kind, name, pod["metadata"]["namespace"], spec)
    _admit_priority(store, kind, name, spec)
    tolerate(spec)


def _admit_account(store: Store, kind: ServedKind, name: str, namespace: str, spec: Document) -> None:
    account = spec.get("serviceAccountName") or "default"
    if store.get("serviceaccounts", namespace, account) is None:
        why = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
        raise forbidden(kind, name, why)
    spec["serviceAccountName"] = spec["serviceAccount"] = account


def _admit_priority(store: Store, kind: ServedKind, name: str, spec: Document) -> None:
    wanted = spec.get("priorityClassName") or ""
    found = _priority_class(store, kind, name, wanted) if wanted else _global_default(store)
    if found is not None and not wanted:
        spec["priorityClassName"] = found["metadata"]["name"]
    priority: Any = found.get("value", 0) if found is not None else 0
    policy = (found or {}).get("preemptionPolicy") or "PreemptLowerPriority"
    if spec.get("priority") not in (None, priority):
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        )
        raise forbidden(kind, name, why)
    if spec.get(_SET_ONCE) not in (None, policy):
        why = (
            f"the string value of PreemptionPolicy ({spec[_SET_ONCE]}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise forbidden(kind, name, why)
    spec["priority"] = priority
    spec[_SET_ONCE] = policy


def _priority_class(store: Store, kind: ServedKind, pod: str, wanted: str) -> Document:
    found = store.get(PRIORITY_CLASSES, "", wanted)
    if found is None:
        raise forbidden(kind, pod, f"no PriorityClass with name {wanted} was found")
    return found.document()


def _global_default(store: Store) -> Document | None:
    """The class of pods that name none: of several, the one with the lowest value."""
    documents = [item.document() for item in store.items(PRIORITY_CLASSES)]
    defaults = [document for document in documents if document.get("globalDefault")]
    return min(defaults, key=lambda document: int(document.get("value", 0)), default=None)


def _admit_claim(store: Store, claim: Document) -> None:
    """A claim that names no class gets the newest of the default classes, if there is one."""
    notes = claim["metadata"].get("annotations") or {}
    if claim["spec"].get("storageClassName") is not None or _CLASS_NOTE in notes:
        return
    documents = [item.document() for item in store.items(STORAGE_CLASSES)]
    defaults = [document for document in documents if _is_default(document)]
    newest = max(defaults, key=lambda document: str(document["metadata"]["creationTimestamp"]), default=None)
    if newest is not None:
        claim["spec"]["storageClassName"] = newest["metadata"]["name"]


def _is_default(storage_class: Document) -> bool:
    notes = storage_class["metadata"].get("annotations") or {}
    return any(notes.get(name) == "true" for name in _DEFAULT_NOTES)


def tolerate(spec: Document) -> None:
    """A node that is not ready or unreachable is tolerated for five minutes, unless the pod says how long."""
    tolerations = spec.get("tolerations") or []
    for key in _TOLERATED:
        if not any(_covers(toleration, key) for toleration in tolerations):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATED_S,
                }
            )
    spec["tolerations"] = tolerations


def _covers(toleration: Document, key: str) -> bool:
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (None, "", "NoExecute")
