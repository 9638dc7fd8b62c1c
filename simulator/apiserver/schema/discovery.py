"""What clients read first: which groups, versions and kinds there are (``/api``, ``/apis``).

Documents come in the old form, one a group, and in the aggregated form that newer clients ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from volcano_py.simulator.apiserver.schema.kinds import ServedKind
from volcano_py.simulator.apiserver.schema.versions import version_order

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
# The order in which the real server names verbs of custom kinds; of built-in ones it is the alphabet's.
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


class Subresource(NamedTuple):
    """What a subresource takes and gives.

    Attributes:
        group: Of *kind*; "" together with an empty *version* where it is the object's own.
        kind: "" where it is the object's own.
    """

    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


_READ_WRITE = ("get", "patch", "update")
_SUBRESOURCES: Mapping[str, Subresource] = {
    "approval": Subresource("", "", "", _READ_WRITE),
    "binding": Subresource("", "", "Binding", ("create",)),
    "ephemeralcontainers": Subresource("", "", "", _READ_WRITE),
    "eviction": Subresource("policy", "v1", "Eviction", ("create",)),
    "finalize": Subresource("", "", "", ("update",)),
    "log": Subresource("", "", "", ("get",)),
    "resize": Subresource("", "", "", _READ_WRITE),
    "scale": Subresource("autoscaling", "v1", "Scale", _READ_WRITE),
    "status": Subresource("", "", "", _READ_WRITE),
    "token": Subresource("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
}


def verbs_of(kind: ServedKind) -> list[str]:
    """Verbs in the server's order."""
    return [verb for verb in (_CUSTOM_VERBS if kind.custom else sorted(kind.verbs)) if verb in kind.verbs]


def subresources_of(kind: ServedKind) -> list[str]:
    """Subresources in the server's order."""
    return sorted(kind.subresources, reverse=kind.custom)


def groups(kinds: Iterable[ServedKind]) -> dict[str, list[str]]:
    """Versions of each group except the core one, most preferred first."""
    found: dict[str, set[str]] = {}
    for kind in kinds:
        if kind.group:
            found.setdefault(kind.group, set()).add(kind.version)
    return {group: sorted(versions, key=version_order) for group, versions in found.items()}


def core_versions() -> dict[str, Any]:
    """``/api``."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def group_list(kinds: Iterable[ServedKind]) -> dict[str, Any]:
    """``/apis``."""
    listed = [_group(name, versions) for name, versions in groups(kinds).items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group_document(kinds: Iterable[ServedKind], group: str) -> dict[str, Any] | None:
    """``/apis/GROUP``; None where nothing of that group is served."""
    versions = groups(kinds).get(group)
    if versions is None:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)}


def _group(name: str, versions: Sequence[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list(kinds: Iterable[ServedKind], group: str, version: str) -> dict[str, Any] | None:
    """``/api/v1`` or ``/apis/GROUP/VERSION``; None where nothing of that version is served."""
    found = _of_version(kinds, group, version)
    if not found:
        return None
    name = f"{group}/{version}" if group else version
    resources = [resource for kind in found for resource in _resources(kind)]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources}


def _of_version(kinds: Iterable[ServedKind], group: str, version: str) -> list[ServedKind]:
    found = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    return sorted(found, key=lambda kind: kind.plural)


def _resources(kind: ServedKind) -> Iterator[dict[str, Any]]:
    yield {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs_of(kind),
        **_names(kind),
    }
    for name in subresources_of(kind):
        one = _SUBRESOURCES[name]
        foreign = {"group": one.group, "version": one.version} if one.version else {}
        yield {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **foreign,
            "kind": one.kind or kind.kind,
            "verbs": list(one.verbs),
        }


def _names(kind: ServedKind) -> dict[str, Any]:
    named = {"shortNames": list(kind.names.short), "categories": list(kind.names.categories)}
    return {key: value for key, value in named.items() if value}


def aggregated(kinds: Iterable[ServedKind], *, core: bool) -> dict[str, Any]:
    """``/api`` or ``/apis`` in one document with everything in it."""
    everything = list(kinds)
    listed = {"": ["v1"]} if core else groups(everything)
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [_aggregated_version(everything, name, version) for version in versions],
        }
        for name, versions in listed.items()
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _aggregated_version(kinds: Iterable[ServedKind], group: str, version: str) -> dict[str, Any]:
    resources = [_aggregated_resource(kind) for kind in _of_version(kinds, group, version)]
    return {"version": version, "resources": resources, "freshness": "Current"}


def _aggregated_resource(kind: ServedKind) -> dict[str, Any]:
    resource = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind, kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": verbs_of(kind),
        **_names(kind),
    }
    if kind.subresources:
        resource["subresources"] = [_aggregated_subresource(kind, name) for name in subresources_of(kind)]
    return resource


def _aggregated_subresource(kind: ServedKind, name: str) -> dict[str, Any]:
    one = _SUBRESOURCES[name]
    if one.version:
        response = {"group": one.group, "version": one.version, "kind": one.kind}
    else:
        response = _response_kind(kind, one.kind or kind.kind)
    return {"subresource": name, "responseKind": response, "verbs": list(one.verbs)}


def _response_kind(kind: ServedKind, name: str) -> dict[str, str]:
    # The real server leaves the group out where a built-in kind is its group's own.
    group, version = (kind.group, kind.version) if kind.custom else ("", "")
    return {"group": group, "version": version, "kind": name}
