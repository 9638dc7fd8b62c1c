"""conformance: what keeps the cluster alive is never a victim.

Protects pods of a critical priority class and pods in kube-system, and agrees to everybody else. The
interruption contract protects critical pods in any case; this plugin keeps Volcano's vote where a
configuration relies on it to offer victims at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from volcano_py.scheduler.framework.claim import Claim
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.model.resources import Mask, Rows32

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session

REASON = "critical for the cluster"


class ConformancePlugin(Plugin):
    """See the module."""

    name: ClassVar = "conformance"

    def open(self, session: Session) -> None:
        """Hang the vote and the protection."""
        self._tasks = session.state.tasks
        points = session.points
        points.preemptable.add(self.name, self.ordinary)
        points.reclaimable.add(self.name, self.ordinary)
        points.protects.add(self.name, self.critical)

    def ordinary(self, claim: Claim, victims: Rows32) -> Mask:
        """(V,) those the cluster can do without."""
        del claim
        return ~(self._tasks.critical[victims] | self._tasks.system[victims])

    def critical(self, claim: Claim, victims: Rows32) -> tuple[Mask, str]:
        """(V,) True where protected, and why."""
        return ~self.ordinary(claim, victims), REASON
