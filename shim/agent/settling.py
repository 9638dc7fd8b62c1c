"""Records and marks of this node's pods, and locks of schedulers, follow what the kubelet's ledger says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import structlog

from volcano_py.client.api import Api, ApiError, Unreachable
from volcano_py.shim.agent.exchange import Rewrite
from volcano_py.shim.agent.follow import Follower
from volcano_py.shim.agent.handing import Machine, is_cut
from volcano_py.shim.agent.instances import Instance
from volcano_py.shim.agent.locks import release, released
from volcano_py.shim.agent.pods import Pod
from volcano_py.shim.agent.slices import Slices
from volcano_py.shim.agent.truth import carry_out, mark
from volcano_py.shim.agent.view import View


class Records:
    """Writes to pods and to the node.

    Args:
        node: its name.
        server: where they are.
        pods: those of this node; what was written is known there at once.
        slices: what was handed out.
        machine: this machine as it is now.
        notes: annotations of the node.
    """

    def __init__(
        self,
        node: str,
        server: Api,
        pods: Follower[Pod],
        slices: Slices,
        machine: Callable[[], Machine],
        notes: Callable[[], Mapping[str, str]],
    ) -> None:
        self._node, self._server, self._pods = node, server, pods
        self._slices, self._machine, self._notes = slices, machine, notes
        self._log = structlog.get_logger()

    async def settle_all(self, view: View) -> View:
        """Make the records true of all that the kubelet gave other cards; what can't be stays as it is."""
        for who, resource, ids in view.astray():
            if is_cut(who, ids, self._machine()):
                continue  # instances stay where they were made
            rewrites = view.settled(who, resource, ids, self._slices.all(), self._machine().rooms)
            if isinstance(rewrites, str):
                self._log.warning("has other cards than its record says", pod=who.pod.key, why=rewrites)
                continue
            try:
                view = await self.carry_out(view, rewrites)
            except (ApiError, Unreachable) as error:
                self._log.warning("a record is not made true for now", pod=who.pod.key, error=str(error))
        return view

    async def carry_out(self, view: View, rewrites: Sequence[Rewrite]) -> View:
        """Write *rewrites*; the view after them.

        Raises ``ApiError`` and ``Unreachable`` where one was not written.
        """
        if rewrites:
            served = view.served(rewrites[-1].placed)
            async for written in carry_out(self._server, rewrites, served):
                self._pods.upsert(written)
            for each in rewrites:
                self._log.info("record made true", pod=each.placed.pod.key)
        return view.rewritten(rewrites)

    async def mark(self, view: View) -> None:
        """Say on pods which containers have their cards, and release the locks of those that have all."""
        served, finished = [], []
        for placed in view.placed:
            held = view.served(placed)
            if set(held) >= {claim.container for claim in placed.record.claims if claim.parts}:
                served.append(placed.pod)
            try:
                written = await mark(self._server, placed, held, self._made_for(placed.pod))
            except (ApiError, Unreachable) as error:
                self._log.warning("not marked for now", pod=placed.pod.key, error=str(error))
                continue
            if written is not None:
                self._pods.upsert(written)
                finished += [placed.pod] if placed.pod in served else []
        await self._unlock(released(self._notes(), served, finished))

    def _made_for(self, pod: Pod) -> list[Instance]:
        """Instances that *pod* has for certain."""
        owners = (each for each in self._slices.all() if each.confirmed and each.pod_uid == pod.uid)
        return [made for owner in owners for made in owner.instances]

    async def _unlock(self, locks: Mapping[str, str]) -> None:
        """Release *locks* of schedulers that wait for us."""
        if locks:
            try:
                await self._server.patch(f"/api/v1/nodes/{self._node}", release(locks), kind="json")
                self._log.info("released", locks=sorted(locks))
            except (ApiError, Unreachable) as error:
                self._log.warning("not released for now", locks=sorted(locks), error=str(error))
