"""Host ports in use, by node: two pods that want the same one cannot share a node."""

from __future__ import annotations

import numpy as np

from volcano_py.scheduler.model.accounts import Batch
from volcano_py.scheduler.model.kube.constraints import ANY_ADDRESS, HostPort
from volcano_py.scheduler.model.nodes import NodeTable
from volcano_py.scheduler.model.resources import Mask
from volcano_py.scheduler.model.tallies import Tally, by_node


class HostPorts:
    """Pods by host port and node (an ``Observer``)."""

    def __init__(self, nodes: NodeTable) -> None:
        self.nodes = nodes
        self._held: dict[tuple[str, int], dict[str, Tally]] = {}

    def booked(self, batch: Batch, sign: int) -> None:
        """*batch* entered (1) or left (-1) the accounts."""
        ports = batch.klass.constraints.host_ports
        if not ports or batch.nodes[0] < 0:
            return
        rows, times = by_node(batch.nodes)
        for port in ports:
            by_address = self._held.setdefault((port.protocol, port.port), {})
            tally = by_address.get(port.ip)
            if tally is None:
                tally = by_address[port.ip] = Tally()
            tally.add(batch.status, rows, times * sign)

    def conflicts(self, asked: tuple[HostPort, ...], *, future: bool) -> Mask:
        """(capacity,) node rows where one of *asked* is taken; ``0.0.0.0`` meets every address."""
        capacity = len(self.nodes.version)
        taken = np.zeros(capacity, np.bool_)
        for port in asked:
            for address, tally in self._held.get((port.protocol, port.port), {}).items():
                if address == port.ip or ANY_ADDRESS in (address, port.ip):
                    taken |= tally.taken(capacity, future=future) > 0
        return taken
