"""Rights that the shipped roles give to a component and the server refuses to its service account."""

from __future__ import annotations

from collections.abc import Iterator

from volcano_py.cli.vcctl.doctor.finding import Denied, Evidence, Finding, some


def check(evidence: Evidence) -> Iterator[Finding]:
    """One finding a service account."""
    if "rights" in evidence.unread:
        yield Finding(
            "warning",
            "RBAC",
            f"rights can't be asked for: {evidence.unread['rights']}",
            "run it as an administrator",
        )
    by_account: dict[str, list[Denied]] = {}
    for denied in evidence.rights:
        by_account.setdefault(denied.account, []).append(denied)
    for account, lacking in sorted(by_account.items()):
        rights = [f"{one.verb} {one.resource}" for one in lacking]
        yield Finding(
            "error",
            f"ServiceAccount {account}",
            f"may not {some(rights, 6)}",
            "apply the roles and bindings of deploy/ again",
        )
