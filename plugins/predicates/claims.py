"""The claims behind a class's volumes, looked up once while the storage objects stand.

Claims made for each pod (ephemeral volumes) are taken as their template says: pods of a class share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from volcano_py.scheduler.model.kept import kept
from volcano_py.scheduler.model.storage import (
    Claim,
    VolumeRecord,
    claim_of_template,
    waits_for_pod,
)

if TYPE_CHECKING:
    from volcano_py.scheduler.model.classes import TaskClass
    from volcano_py.scheduler.model.kube.objects import StorageClass
    from volcano_py.scheduler.model.volumes import Volumes

_CLAIMS: Final = "claims"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A claim that is bound only when a pod that uses it is placed."""

    claim: Claim
    storage_class: StorageClass


@dataclass(frozen=True, slots=True)
class ClassClaims:
    """What the claims of a class are.

    Attributes:
        problem: why no pod of the class can start anywhere, "" if nothing stands in the way.
        bound: volumes that are bound to claims of the class.
        waiting: claims still to be bound, the smallest first.
        claims: all that exist, those made for each pod included.
        own: of these, those made for each pod.
    """

    problem: str = ""
    bound: tuple[VolumeRecord, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    claims: tuple[Claim, ...] = ()
    own: tuple[Claim, ...] = ()


def has_claims(klass: TaskClass) -> bool:
    """Whether the class has any volume behind a claim."""
    claims = klass.constraints.claims
    return bool(claims.named or claims.ephemeral)


def class_claims(volumes: Volumes, klass: TaskClass) -> ClassClaims:
    """The claims of *klass* as they are now."""
    return kept(klass.memo, _CLAIMS, volumes.objects_version, lambda: _read(volumes, klass))


def _read(volumes: Volumes, klass: TaskClass) -> ClassClaims:
    said = klass.constraints.claims
    keys = [f"{use.namespace}/{use.name}" for use in said.named]
    missing = [key for key in keys if key not in volumes.claims]
    named = [volumes.claims[key] for key in keys if key in volumes.claims]
    own = [claim_of_template(template, template.volume) for template in said.ephemeral]
    problems = [f'persistentvolumeclaim "{_name(key)}" not found' for key in missing]
    bound: list[VolumeRecord] = []
    waiting: list[Waiting] = []
    for claim in (*named, *own):
        problem = _sort_in(volumes, claim, bound, waiting)
        if problem:
            problems.append(problem)
    waiting.sort(key=lambda each: (each.claim.storage, each.claim.key))
    return ClassClaims("; ".join(problems), tuple(bound), tuple(waiting), (*named, *own), tuple(own))


def _sort_in(volumes: Volumes, claim: Claim, bound: list[VolumeRecord], waiting: list[Waiting]) -> str:
    """Put *claim* where it belongs; returns what is wrong with it."""
    name = _name(claim.key)
    if claim.deleting:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if claim.lost or (claim.bound and claim.volume not in volumes.volumes):
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.volume}"'
    if claim.bound:
        bound.append(volumes.volumes[claim.volume])
        return ""
    found = volumes.storage_class(claim)
    if found is None and claim.storage_class:
        return f'storageclass "{claim.storage_class}" of persistentvolumeclaim "{name}" not found'
    if found is None or not waits_for_pod(found) or claim.volume:
        return f'pod has unbound immediate PersistentVolumeClaims: "{name}"'
    waiting.append(Waiting(claim, found))
    return ""


def _name(key: str) -> str:
    return key.rpartition("/")[2]
