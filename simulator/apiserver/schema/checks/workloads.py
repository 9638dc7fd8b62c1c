"""Jobs, deployments and what else makes pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from volcano_py.simulator.apiserver.schema.checks.causes import (
    at_least,
    immutable,
    invalid,
    one_of,
    required,
)
from volcano_py.simulator.apiserver.schema.checks.pods import template_faults
from volcano_py.simulator.apiserver.schema.checks.selectors import label_selector_faults
from volcano_py.simulator.apiserver.schema.kinds import Cause, Document

Part = Mapping[str, Any]

_JOB_NUMBERS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
)
_ANY_POLICY = ("Always", "OnFailure", "Never")
_MACROS = frozenset({"@annually", "@daily", "@hourly", "@midnight", "@monthly", "@weekly", "@yearly"})


def job_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """A job's numbers and template, which never change."""
    if subresource == "status":
        return
    spec = new.get("spec") or {}
    yield from _job_spec_faults(spec, "spec")
    if old is not None:
        before = old.get("spec") or {}
        for name in ("completionMode", "selector", "podFailurePolicy", "backoffLimitPerIndex"):
            yield from immutable(f"spec.{name}", spec.get(name), before.get(name))
        if spec.get("completionMode") != "Indexed" or spec.get("completions") != spec.get("parallelism"):
            yield from immutable("spec.completions", spec.get("completions"), before.get("completions"))
        # A suspended job's pods may still be told where to go.
        if not before.get("suspend"):
            yield from immutable("spec.template", spec.get("template"), before.get("template"))


def _job_spec_faults(spec: Part, field: str) -> Iterator[Cause]:
    for name in _JOB_NUMBERS:
        yield from at_least(f"{field}.{name}", spec.get(name))
    mode = spec.get("completionMode")
    yield from one_of(f"{field}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed" and spec.get("completions") is None:
        yield required(f"{field}.completions", "when completion mode is Indexed")
    template = spec.get("template") or {}
    yield from template_faults(template, f"{field}.template", _ANY_POLICY)
    if (template.get("spec") or {}).get("restartPolicy") in (None, "", "Always"):
        at = f"{field}.template.spec.restartPolicy"
        yield required(at, 'valid values: "OnFailure", "Never"')


def cron_job_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """When a cron job runs, and what."""
    spec = new.get("spec") or {}
    schedule = spec.get("schedule", "")
    fields = schedule.split()
    if not schedule:
        yield required("spec.schedule")
    elif schedule not in _MACROS and not schedule.startswith("@every ") and len(fields) != 5:
        detail = f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
        yield invalid("spec.schedule", schedule, detail)
    yield from one_of("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace"))
    yield from _job_spec_faults((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")


def replicated_faults(new: Document, old: Document | None, subresource: str) -> Iterator[Cause]:
    """Deployments and their like: a selector that fits the template, and never changes."""
    if subresource == "status":
        return
    spec = new.get("spec") or {}
    yield from at_least("spec.replicas", spec.get("replicas"))
    selector = spec.get("selector")
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or None
    if selector is None:
        yield required("spec.selector")
    else:
        yield from label_selector_faults(selector, "spec.selector")
        if not selector:
            yield invalid("spec.selector", selector, "empty selector is invalid for deployment")
    if not _selects(selector, labels):
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from template_faults(template, "spec.template", ("Always",))
    if old is not None:
        yield from immutable("spec.selector", selector, (old.get("spec") or {}).get("selector"))


def _selects(selector: Part | None, labels: Part | None) -> bool:
    """Whether exact labels of *selector* stand in *labels*; expressions are taken on trust."""
    if not selector or labels is None:
        return False
    return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
