"""All kinds of ours, and how an object finds its model."""

from typing import Any, Final

from volcano_py.crds.base import CrdObject
from volcano_py.crds.command import Command
from volcano_py.crds.cronjob import CronJob
from volcano_py.crds.hypernode import HyperNode
from volcano_py.crds.job import Job
from volcano_py.crds.jobflow import JobFlow
from volcano_py.crds.jobtemplate import JobTemplate
from volcano_py.crds.numatopology import Numatopology
from volcano_py.crds.podgroup import PodGroup
from volcano_py.crds.queue import Queue

__all__ = ["KINDS", "parse_object"]

KINDS: Final[tuple[type[CrdObject], ...]] = (
    Queue, PodGroup, Job, CronJob, JobTemplate, JobFlow, HyperNode, Numatopology, Command,
)  # fmt: skip

_BY_KIND: Final = {(kind.info.api_version, kind.info.kind): kind for kind in KINDS}


def parse_object(doc: dict[str, Any]) -> CrdObject | None:
    """*doc* as the model of its apiVersion and kind; None where that is no kind of ours.

    Raises:
        pydantic.ValidationError: the object is at fault; ``base.validation_messages`` says it by field.
    """
    version, kind = doc.get("apiVersion"), doc.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return None
    model = _BY_KIND.get((version, kind))
    return None if model is None else model.model_validate(doc, by_alias=True, by_name=False)
