"""What is wrong with the input of a plan, and where it is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from volcano_py.crds.annotations import GROUP_QUEUE, ROLE
from volcano_py.scheduler.model.kube.errors import Problem
from volcano_py.simulator.expand import MIN_MEMBER
from volcano_py.simulator.manifests import Document, Manifest, Unreadable, object_name
from volcano_py.simulator.present import identity, part
from volcano_py.simulator.workload_objects import is_workload

_NOTES: Final = "metadata.annotations["
_SAID_BY: Final = {"spec.queue": f"{_NOTES}{GROUP_QUEUE}]", "spec.minMember": f"{_NOTES}{MIN_MEMBER}]"}
"""Field of a PodGroup -> the annotation of a pod, or of its owner, that says it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, for people to find and mend.

    Attributes:
        file, line: where; line 0 is the whole file.
        object: ``Kind namespace/name``, "" where no object could be read.
        field: path of the field, "" for the object as a whole.
    """

    file: str
    line: int
    object: str
    field: str
    message: str

    def data(self) -> dict[str, Any]:
        """As it stands in a report."""
        return asdict(self)


def unreadable(fault: Unreadable) -> Fault:
    """What could not be read at all."""
    return Fault(fault.file, fault.line, fault.name, "", fault.message)


def fault_of(manifest: Manifest, problem: Problem) -> Fault:
    """*problem* of the object that *manifest* is, at the line of its field."""
    line = manifest.line_of(problem.field)
    return Fault(manifest.file, line, manifest.name, problem.field, problem.message)


class Origins:
    """Where objects were written; what controllers made goes back to what they made it of."""

    def __init__(self, manifests: Iterable[Manifest]) -> None:
        self._written = {identity(manifest.document): manifest for manifest in manifests}

    def fault(self, document: Document, problem: Problem) -> Fault:
        """*problem* of *document*, told of the manifest behind it."""
        manifest = self._written.get(identity(document))
        if manifest is not None:
            return fault_of(manifest, problem)
        job = self._job_of(document)
        if job is not None:
            return fault_of(
                job, Problem(_field_in_job(job.document, document, problem.field), problem.message)
            )
        return Fault("", 0, object_name(document), problem.field, problem.message)

    def named(self, kind: str, key: str) -> Manifest | None:
        """The manifest of *kind* ``namespace/name`` (or the name where there is no namespace)."""
        space, _, name = key.rpartition("/")
        return self._written.get((kind, space or "default", name)) or self._written.get((kind, "", name))

    def _job_of(self, document: Document) -> Manifest | None:
        owners: Any = part(document, "metadata").get("ownerReferences")
        namespace = identity(document)[1]
        for owner in owners if isinstance(owners, list) else []:
            found = self._written.get((str(owner.get("kind")), namespace, str(owner.get("name"))))
            if found is not None:
                return found
        return None


def _field_of_group(maker: Document, field: str) -> str:
    """The field of *maker* (a Job, a workload, a pod) that *field* of its PodGroup comes from; "": none."""
    template = "spec.template." if is_workload(maker) else ""
    if template or maker.get("kind") == "Pod":
        field = _SAID_BY.get(field, field)
    elif field == "spec.minMember":
        return ""
    if field.startswith(_NOTES):
        key = field.removeprefix(_NOTES).removesuffix("]")
        inside = key in part(maker, "spec", "template", "metadata", "annotations")
        return f"{template if inside else ''}{field}"
    return f"{template}{field}" if field.startswith(("spec.queue", "spec.priorityClassName")) else ""


def _field_in_job(job: Document, made: Document, field: str) -> str:
    """The field of *job* that *field* of an object made for it comes from."""
    if made.get("kind") != "Pod":
        return _field_of_group(job, field)
    role = part(made, "metadata", "annotations").get(ROLE)
    tasks: Any = part(job, "spec").get("tasks")
    if is_workload(job):
        return f"spec.template.{field}"
    for at, task in enumerate(tasks if isinstance(tasks, list) else []):
        name = str(part(made, "metadata").get("name"))
        if task.get("name", f"default{at}") == role or name.endswith(f"-{task.get('name')}-0"):
            return f"spec.tasks[{at}].template.{field}"
    return "spec.tasks"
