"""Clocks that are off: leases look expired or never end, minimum run times and cool-downs count wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from volcano_py.cli.vcctl.doctor.finding import Document, Evidence, Finding
from volcano_py.crds.times import parse_time_s

SKEW_S: Final = 5.0
"""The Date of an answer is whole seconds, and a network may take some more."""
KUBELETS_LEASE_S: Final = 40
SILENT: Final = 1.5
"""Of the time for which a lease holds; a kubelet renews after a quarter of it."""
TIME_SERVER: Final = "let the node follow a time server (chrony, systemd-timesyncd)"
NODE_LEASES: Final = "kube-node-lease"


def check(evidence: Evidence) -> Iterator[Finding]:
    """Of the server against ours, and of nodes against the server."""
    if evidence.server_now is not None and abs(evidence.now - evidence.server_now) > SKEW_S:
        ahead = evidence.server_now - evidence.now
        yield Finding(
            "warning",
            "API server",
            f"its clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the clock here",
            "let both follow a time server (chrony, systemd-timesyncd)",
        )
    ready = {node["metadata"]["name"] for node in evidence.of("Node") if _is_ready(node)}
    for lease in evidence.of("Lease"):
        meta, spec = lease["metadata"], lease.get("spec") or {}
        if meta.get("namespace") != NODE_LEASES or not spec.get("renewTime"):
            continue
        ahead = parse_time_s(spec["renewTime"]) - evidence.server_time
        name = meta["name"]
        holds_s = spec.get("leaseDurationSeconds") or KUBELETS_LEASE_S
        if -ahead > SILENT * holds_s and name in ready:
            yield Finding(
                "warning",
                f"Node {name}",
                f"renewed its lease {-ahead:.0f} s ago and counts as ready: its clock is behind, or its "
                "kubelet has just gone silent",
                TIME_SERVER,
            )
        if ahead > SKEW_S:
            yield Finding(
                "warning",
                f"Node {name}",
                f"renewed its lease {ahead:.0f} s in the future: its clock is ahead",
                TIME_SERVER,
            )


def _is_ready(node: Document) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
