"""Evidence for checks, made of documents as a server would list them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from volcano_py.cli.vcctl.doctor.checks import CHECKS
from volcano_py.cli.vcctl.doctor.finding import Denied, Evidence, Finding
from volcano_py.crds.schedulerconfig import DEFAULT_CONFIG, load_scheduler_config
from volcano_py.scheduler.engine import Engine

Document = dict[str, Any]
NOW = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""
NVIDIA = "nvcr.io/nvidia/k8s-device-plugin:v0.17"
HAMI = "projecthami/hami:v2.6"


def seen(
    *documents: Document,
    server_now: float | None = None,
    rights: Sequence[Denied] = (),
    unread: dict[str, str] | None = None,
) -> Evidence:
    """What checks see of *documents*; a cycle of the default configuration has run."""
    engine = Engine(load_scheduler_config(DEFAULT_CONFIG))
    by_kind: dict[str, list[Document]] = {}
    for document in documents:
        by_kind.setdefault(document["kind"], []).append(document)
        engine.apply(document)
    return Evidence(by_kind, engine, engine.cycle(NOW), NOW, server_now, rights, unread or {})


def found(check: str, evidence: Evidence) -> list[Finding]:
    """What *check* finds."""
    return list(CHECKS[check][1](evidence))


def only(check: str, evidence: Evidence) -> Finding:
    """The one thing that *check* finds."""
    findings = found(check, evidence)
    assert len(findings) == 1, findings
    return findings[0]
