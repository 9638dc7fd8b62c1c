"""Storage objects, who uses which claim where, and how many volumes each node has attached.

Claims are booked with the pods that use them; what a claim attaches (driver and handle) follows from
claim, volume and storage class and is booked again when one of these changes. What a node may attach
and which volume suits which claim is for the ``predicates`` plugin to judge.

Neighbours: ``storage`` (objects in checked form), ``tallies`` (counts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from volcano_py.scheduler.model.accounts import Batch
from volcano_py.scheduler.model.kube.constraints import EphemeralClaim, VolumeClaims
from volcano_py.scheduler.model.kube.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from volcano_py.scheduler.model.kube.podspec import ephemeral_claim_name
from volcano_py.scheduler.model.nodes import NodeTable
from volcano_py.scheduler.model.resources import Ints, Rows32
from volcano_py.scheduler.model.storage import (
    Attachment,
    CapacityReport,
    Claim,
    VolumeRecord,
    claim_of_template,
    driver_of,
    is_default,
    read_capacity,
    read_claim,
    read_volume,
)
from volcano_py.scheduler.model.tallies import NodeCounts, Tally, by_node
from volcano_py.scheduler.model.tasks import Status, TaskTable

_ONE = np.ones(1, np.int64)


class Volumes:
    """Storage of the cluster (an ``Observer``).

    Attributes:
        claims: "namespace/name" -> claim.
        volumes, classes, csi_nodes, drivers: name -> object.
        capacities: "namespace/name" -> free storage of a class in some nodes.
        objects_version: changes with every object.
        version: changes with every object and every booking.
        pinned: claims of pods that are being bound -> the free volume ordered for each, "" where one
            is made.
    """

    def __init__(self, tasks: TaskTable, nodes: NodeTable) -> None:
        self.tasks, self.nodes = tasks, nodes
        self.claims: dict[str, Claim] = {}
        self.volumes: dict[str, VolumeRecord] = {}
        self.classes: dict[str, StorageClass] = {}
        self.csi_nodes: dict[str, CSINode] = {}
        self.drivers: dict[str, CSIDriver] = {}
        self.capacities: dict[str, CapacityReport] = {}
        self.objects_version = 0
        self.version = 0
        self.pinned: dict[str, str] = {}
        self._pins: dict[str, tuple[str, ...]] = {}
        self._bound_to: dict[str, set[str]] = {}
        self._uses: dict[str, Tally] = {}
        self._templates: dict[str, EphemeralClaim] = {}
        self._attached_as: dict[str, Attachment | None] = {}
        self._attached: dict[Attachment, Tally] = {}
        self._distinct: dict[tuple[str, bool], NodeCounts] = {}

    # -- objects --------------------------------------------------------------------------------

    def upsert(self, item: Any) -> None:
        """Take in a storage object; other kinds are of no concern here.

        Raises ``ObjectError`` naming the field of what is wrong.
        """
        if isinstance(item, PersistentVolumeClaim):
            claim = read_claim(item)
            self._change(lambda: self._put_claim(claim.key, claim), [claim.key])
        elif isinstance(item, PersistentVolume):
            record = read_volume(item)
            self._change(lambda: self.volumes.__setitem__(record.name, record), self._users_of(record.name))
        elif isinstance(item, StorageClass):
            self._change(lambda: self.classes.__setitem__(item.name, item), list(self._uses))
        elif isinstance(item, CSIStorageCapacity):
            report = read_capacity(item)
            self._change(lambda: self.capacities.__setitem__(item.key, report), [])
        elif isinstance(item, CSINode):
            self._change(lambda: self.csi_nodes.__setitem__(item.name, item), [])
        elif isinstance(item, CSIDriver):
            self._change(lambda: self.drivers.__setitem__(item.name, item), [])

    def delete(self, kind: str, key: str) -> None:
        """The object is gone; unknown ones are fine."""
        if kind == "PersistentVolumeClaim":
            self._change(lambda: self._put_claim(key, None), [key])
        elif kind == "PersistentVolume":
            self._change(lambda: self.volumes.pop(key, None), self._users_of(key))
        elif kind == "StorageClass":
            self._change(lambda: self.classes.pop(key, None), list(self._uses))
        elif kind == "CSIStorageCapacity":
            self._change(lambda: self.capacities.pop(key, None), [])
        elif kind == "CSINode":
            self._change(lambda: self.csi_nodes.pop(key, None), [])
        elif kind == "CSIDriver":
            self._change(lambda: self.drivers.pop(key, None), [])

    # -- questions ------------------------------------------------------------------------------

    def storage_class(self, claim: Claim) -> StorageClass | None:
        """The class of *claim*: the one it names, else the default (of several, the last by name)."""
        if claim.storage_class is not None:
            return self.classes.get(claim.storage_class)
        defaults = sorted(name for name, found in self.classes.items() if is_default(found))
        return self.classes[defaults[-1]] if defaults else None

    def uses(self, claim: str) -> Tally | None:
        """Pods on nodes that use *claim* ("namespace/name"), None where none does."""
        return self._uses.get(claim)

    def claims_in_use(self) -> Iterator[tuple[str, Tally, EphemeralClaim | None]]:
        """Claims that pods on nodes use, by key; with the template of those made for a pod."""
        for key in sorted(self._uses):
            yield key, self._uses[key], self._templates.get(key)

    def attachment(self, claim: Claim) -> Attachment | None:
        """How *claim* is attached; one without a volume counts for the driver that will make it one."""
        if claim.volume:
            record = self.volumes.get(claim.volume)
            return None if record is None else record.attachment
        found = self.storage_class(claim)
        driver = "" if found is None else driver_of(found)
        return (driver, f"claim:{claim.key}") if driver else None

    def attached(self, driver: str, *, future: bool) -> Ints:
        """(capacity,) distinct volumes of *driver* attached to each node row. Read only."""
        capacity = len(self.nodes.version)
        counts = self._distinct.get((driver, future))
        return np.zeros(capacity, np.int64) if counts is None else counts.array(capacity)

    def attached_at(self, volume: Attachment, *, future: bool) -> Ints:
        """(capacity,) pods by node row that use *volume*. Read only."""
        capacity = len(self.nodes.version)
        tally = self._attached.get(volume)
        return np.zeros(capacity, np.int64) if tally is None else tally.present(capacity, future=future)

    # -- books ----------------------------------------------------------------------------------

    def booked(self, batch: Batch, sign: int) -> None:
        """*batch* entered (1) or left (-1) the accounts."""
        claims = batch.klass.constraints.claims
        if not (claims.named or claims.ephemeral) or batch.nodes[0] < 0:
            return
        self.version += 1
        rows, times = by_node(batch.nodes)
        for use in claims.named:
            self._use(f"{use.namespace}/{use.name}", None, batch.status, rows, times * sign)
        if claims.ephemeral:
            self._book_own(batch, claims, sign)

    def _book_own(self, batch: Batch, claims: VolumeClaims, sign: int) -> None:
        """Claims made for each pod of *batch*."""
        for position, task in enumerate(batch.tasks.tolist()):
            row = batch.nodes[position : position + 1]
            for template in claims.ephemeral:
                key = ephemeral_claim_name(self.tasks.keys[task], template.volume)
                self._use(key, template, batch.status, row, _ONE * sign)

    def _use(
        self, key: str, template: EphemeralClaim | None, status: Status, rows: Rows32, times: Ints
    ) -> None:
        tally = self._uses.get(key)
        if tally is None:
            tally = self._uses[key] = Tally()
            if template is not None:
                self._templates[key] = template
            self._attached_as[key] = self._resolve(key)
        tally.add(status, rows, times)
        volume = self._attached_as[key]
        if volume is not None:
            self._attach(volume, status, rows, times)
        if not tally:
            del self._uses[key], self._attached_as[key]
            self._templates.pop(key, None)

    def _resolve(self, key: str) -> Attachment | None:
        claim = self.claims.get(key)
        template = self._templates.get(key)
        if claim is None and template is not None:
            claim = claim_of_template(template, key)
        return None if claim is None else self.attachment(claim)

    def _attach(self, volume: Attachment, status: Status, rows: Rows32, times: Ints) -> None:
        """Pods that use *volume* come or go; the distinct volumes of its driver follow."""
        tally = self._attached.setdefault(volume, Tally())
        before = [self._present(tally, row) for row in rows.tolist()]
        tally.add(status, rows, times)
        for row, (was, would) in zip(rows.tolist(), before, strict=True):
            now, later = self._present(tally, row)
            for future, change in ((False, now - was), (True, later - would)):
                if change:
                    self._distinct.setdefault((volume[0], future), NodeCounts()).add(row, change)
        if not tally:
            del self._attached[volume]

    def _present(self, tally: Tally, row: int) -> tuple[bool, bool]:
        return tally.at(row) > 0, tally.at(row, future=True) > 0

    # -- choices that are being carried out -----------------------------------------------------

    def pin(self, pod: str, volumes: Mapping[str, str]) -> None:
        """*volumes* (claim -> volume) are ordered for the claims of *pod*: nobody chooses anew for them."""
        self.pinned.update(volumes)
        self._pins[pod] = tuple(volumes)
        self.version += 1

    def pins(self) -> dict[str, dict[str, str]]:
        """Pod -> what is pinned for its claims."""
        return {pod: {claim: self.pinned[claim] for claim in claims} for pod, claims in self._pins.items()}

    def unpin(self, pod: str) -> None:
        """The bind of *pod* has ended; what was not bound is free again."""
        for claim in self._pins.pop(pod, ()):
            self.pinned.pop(claim, None)
            self.version += 1

    # -- events ---------------------------------------------------------------------------------

    def _change(self, apply: Callable[[], object], users: Iterable[str]) -> None:
        """Do *apply*, and attach what the claims *users* stand for anew."""
        apply()
        self.objects_version += 1
        self.version += 1
        self.nodes.epoch += 1
        for key in users:
            tally = self._uses.get(key)
            before, after = self._attached_as.get(key), self._resolve(key)
            if tally is not None and before != after:
                self._rebook(tally, before, -1)
                self._rebook(tally, after, 1)
                self._attached_as[key] = after

    def _rebook(self, tally: Tally, volume: Attachment | None, sign: int) -> None:
        if volume is None:
            return
        for row in {*tally.holding.rows(), *tally.promised.rows()}:
            here, leaving = tally.holding.at(row), tally.leaving.at(row)
            where = np.array([row], np.int32)
            amounts = (
                (Status.RUNNING, here - leaving),
                (Status.RELEASING, leaving),
                (Status.PIPELINED, tally.promised.at(row)),
            )
            for status, amount in amounts:
                if amount:
                    self._attach(volume, status, where, _ONE * (sign * amount))

    def _put_claim(self, key: str, claim: Claim | None) -> None:
        """*claim* is what is known of *key* from now on (None: nothing)."""
        old = self.claims.pop(key, None)
        if old is not None and old.volume:
            self._bound_to[old.volume].discard(key)
        if claim is not None:
            self.claims[key] = claim
            if claim.volume:
                self._bound_to.setdefault(claim.volume, set()).add(key)

    def _users_of(self, volume: str) -> list[str]:
        """Claims that name *volume*."""
        return sorted(self._bound_to.get(volume, ()))
