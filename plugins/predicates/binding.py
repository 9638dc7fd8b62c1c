"""Volume binding: can the pod's claims be had on the node?

A bound volume must be reachable from the node. A claim that waits for its first pod needs a free volume
that suits it and reaches the node, or a provisioner that may make one there. Claims of pods placed but
not yet bound count as taken: they get the smallest volume that suits them, or one made on their node.

Source of the rules: kube-scheduler's VolumeBinding filter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.plugins.predicates.claims import Waiting, class_claims, has_claims
from volcano_py.scheduler.framework.points import Check, Scope
from volcano_py.scheduler.framework.refusal import Refusal
from volcano_py.scheduler.model.kept import kept
from volcano_py.scheduler.model.kube.selectors import Requirement
from volcano_py.scheduler.model.node_match import rows_labelled, rows_passing, rows_selected
from volcano_py.scheduler.model.storage import (
    Claim,
    VolumeRecord,
    claim_of_template,
    driver_of,
    waits_for_pod,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from volcano_py.scheduler.framework.view import NodeView
    from volcano_py.scheduler.model.classes import TaskClass
    from volcano_py.scheduler.model.cluster import ClusterState
    from volcano_py.scheduler.model.kube.objects import StorageClass
    from volcano_py.scheduler.model.resources import Mask, Rows32
    from volcano_py.scheduler.model.tallies import Tally

_REACHED: Final = "volumes.reached"
_CANDIDATES: Final = "volumes.candidates"
_PLACES: Final = "places"


class VolumeBinding:
    """The check of this module over *state*."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.volumes = state.volumes
        self._kept: dict[str, object] = {}
        self.check = Check("VolumeBinding", Scope.CLUSTER, self._mask, has_claims, self._explain)

    def refusal(self, klass: TaskClass) -> Refusal | None:
        """What is wrong with the claims themselves."""
        if not has_claims(klass):
            return None
        problem = class_claims(self.volumes, klass).problem
        return Refusal("VolumeClaims", problem) if problem else None

    def _mask(self, klass: TaskClass, view: NodeView) -> Mask:
        if class_claims(self.volumes, klass).problem:
            return np.zeros(len(view.rows), np.bool_)
        mask = self._reached(klass)[view.rows]
        if mask.any() and class_claims(self.volumes, klass).waiting:
            mask &= self._bindable(klass)[view.rows]
        return mask

    def _explain(self, klass: TaskClass, view: NodeView) -> str:
        problem = class_claims(self.volumes, klass).problem
        if problem:
            return f"node(s) could not be tried: {problem}"
        if not self._reached(klass)[view.rows].any():
            return "node(s) had volume node affinity conflict"
        return "node(s) didn't find available persistent volumes to bind"

    # -- bound volumes --------------------------------------------------------------------------

    def _version(self) -> tuple[int, int, int]:
        nodes = self.state.nodes
        return (self.volumes.objects_version, nodes.static_epoch, len(nodes.version))

    def _reached(self, klass: TaskClass) -> Mask:
        """(capacity,) rows from which every bound volume of the class can be reached."""

        def compute() -> Mask:
            mask = np.ones(len(self.state.nodes.version), np.bool_)
            for record in class_claims(self.volumes, klass).bound:
                if record.reach is not None:
                    mask &= rows_selected(self.state.nodes, record.reach)
            return mask

        return kept(klass.memo, _REACHED, self._version(), compute)

    # -- claims that wait -----------------------------------------------------------------------

    def _bindable(self, klass: TaskClass) -> Mask:
        """(capacity,) rows where every waiting claim of the class finds or gets a volume."""
        capacity = len(self.state.nodes.version)
        mask = np.ones(capacity, np.bool_)
        taken = self.taken()
        used: dict[str, Mask] = {name: np.ones(capacity, np.bool_) for name in taken.values()}
        for waiting in class_claims(self.volumes, klass).waiting:
            key = waiting.claim.key
            if key in taken:
                mask &= self._reach_mask(self.volumes.volumes[taken[key]])
                continue
            tally = self.volumes.uses(key)
            made_on = self._row_of(waiting.claim, tally)
            if made_on is not None:
                mask &= np.arange(capacity) == made_on
                continue
            mask &= self._static(klass, waiting, used) | self._makeable(waiting)
        return mask

    def _row_of(self, claim: Claim, tally: Tally | None) -> int | None:
        """The node row on which *claim* is being made, None where it is open; -1 for an unknown node."""
        if claim.selected_node:
            return self.state.nodes.index.get(claim.selected_node, -1)
        return None if tally is None else _first_row(tally)

    def _static(self, klass: TaskClass, waiting: Waiting, used: dict[str, Mask]) -> Mask:
        """(capacity,) rows where a free volume suits; it is noted in *used* as gone there."""
        found = np.zeros(len(self.state.nodes.version), np.bool_)
        for record, rows in self._candidates(klass, waiting):
            gone = used.get(record.name)
            here = rows[~found[rows]] if gone is None else rows[~(found[rows] | gone[rows])]
            if len(here) == 0:
                continue
            found[here] = True
            if gone is None:
                gone = used[record.name] = np.zeros(len(found), np.bool_)
            gone[here] = True
        return found

    def _candidates(self, klass: TaskClass, waiting: Waiting) -> list[tuple[VolumeRecord, Rows32]]:
        """Volumes that suit *waiting*, best first, with the live node rows that reach them."""

        def compute() -> list[tuple[VolumeRecord, Rows32]]:
            records = _suitable(self.volumes.volumes.values(), waiting.claim, waiting.storage_class.name)
            live = self.state.nodes.live
            return [(r, np.flatnonzero(self._reach_mask(r) & live).astype(np.int32)) for r in records]

        return kept(klass.memo, f"{_CANDIDATES} {waiting.claim.key}", self._version(), compute)

    def _reach_mask(self, record: VolumeRecord) -> Mask:
        if record.reach is None:
            return np.ones(len(self.state.nodes.version), np.bool_)
        return rows_selected(self.state.nodes, record.reach)

    def taken(self) -> dict[str, str]:
        """Waiting claims of pods that are placed -> the free volume each of them gets, where it gets one."""
        nodes = self.state.nodes
        version = (self.volumes.version, nodes.static_epoch)
        return kept(self._kept, "taken", version, self._assign)

    def _assign(self) -> dict[str, str]:
        taken = {claim: volume for claim, volume in self.volumes.pinned.items() if volume}
        gone = set(taken.values())
        nodes = self.state.nodes
        for key, tally, template in self.volumes.claims_in_use():
            if key in self.volumes.pinned:
                continue
            claim = self.volumes.claims.get(key)
            if claim is None and template is not None:
                claim = claim_of_template(template, key)
            found = None if claim is None or claim.bound else self.volumes.storage_class(claim)
            row = _first_row(tally)
            if claim is None or found is None or row is None or not waits_for_pod(found):
                continue
            for record in _suitable(self.volumes.volumes.values(), claim, found.name):
                near = record.reach is None or record.reach.matches(nodes.labels(row), nodes.names[row])
                if near and record.name not in gone:
                    taken[key] = record.name
                    gone.add(record.name)
                    break
        return taken

    # -- volumes that can be made ---------------------------------------------------------------

    def _makeable(self, waiting: Waiting) -> Mask:
        """(capacity,) rows where the class's provisioner may make a volume of the size asked."""
        found, size = waiting.storage_class, waiting.claim.storage
        places: dict[str, object] = kept(self._kept, _PLACES, self._version(), dict)
        return kept(places, f"{found.name} {size}", None, lambda: self._places(found, size))

    def _places(self, found: StorageClass, size: int) -> Mask:
        nodes = self.state.nodes
        driver = driver_of(found)
        if not driver:
            return np.zeros(len(nodes.version), np.bool_)
        mask = np.full(len(nodes.version), not found.allowed_topologies)
        for term in found.allowed_topologies:
            within = np.ones(len(nodes.version), np.bool_)
            for label in term.match_label_expressions:
                within &= rows_passing(nodes, Requirement(label.key, "In", label.values))
            mask |= within
        known = self.volumes.drivers.get(driver)
        if known is not None and known.spec.storage_capacity:
            mask &= self._with_capacity(found, size)
        return mask

    def _with_capacity(self, found: StorageClass, size: int) -> Mask:
        """(capacity,) rows in a topology that reports room for a volume of *size* bytes."""
        nodes = self.state.nodes
        mask = np.zeros(len(nodes.version), np.bool_)
        for report in self.volumes.capacities.values():
            if report.storage_class == found.name and report.largest >= size:
                mask |= rows_labelled(nodes, report.topology)
        return mask


def _suitable(records: Iterable[VolumeRecord], claim: Claim, storage_class: str) -> list[VolumeRecord]:
    """Those of *records* that suit *claim*: kept for it first, then the smallest, then by name."""
    found = [record for record in records if record.suits(claim, storage_class)]
    return sorted(found, key=lambda record: (not record.claim, record.capacity, record.name))


def _first_row(tally: Tally) -> int | None:
    rows = tally.holding.rows() or tally.promised.rows()
    return rows[0] if rows else None
