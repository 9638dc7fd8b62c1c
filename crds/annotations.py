"""Annotations that pods, PodGroups and Jobs carry, as Volcano spells them, and a few of our own.

Those of cards are named by the device plugins (``plugins/deviceshare/names``), marks of an eviction by who
leaves them (``scheduler/cluster/notices``).
"""

from typing import Final

__all__ = [
    "BOOST",
    "CHECKPOINT",
    "COOLDOWN",
    "GROUP",
    "GROUP_QUEUE",
    "HOLD",
    "JOB_QUEUE",
    "JOB_VERSION",
    "PREEMPTABLE",
    "ROLE",
    "TASK_PRIORITY",
]

GROUP: Final = "scheduling.k8s.io/group-name"
"""The PodGroup of a pod."""
GROUP_QUEUE: Final = "scheduling.volcano.sh/queue-name"
"""The queue of a PodGroup that is made for a pod."""
JOB_QUEUE: Final = "volcano.sh/queue-name"
"""The queue of the Job that made a pod."""
ROLE: Final = "volcano.sh/task-spec"
"""The task of its Job that a pod belongs to."""
JOB_VERSION: Final = "volcano.sh/job-version"
"""Which run of its Job a pod belongs to; a restart counts it up."""
PREEMPTABLE: Final = "volcano.sh/preemptable"
COOLDOWN: Final = "volcano.sh/cooldown-time"
TASK_PRIORITY: Final = "volcano.sh/task-priority"
CHECKPOINT: Final = "volcano-py.io/last-checkpoint"
"""When a pod last saved its work, RFC 3339."""
SERVED: Final = "volcano-py.io/scheduler-names"
"""On a scheduler's Lease: the ``schedulerName`` values that its holder serves, with commas."""
HOLD: Final = "volcano-py.io/hold"
"""Of a PodGroup: nothing more of it starts."""
BOOST: Final = "volcano-py.io/boost"
"""Of a PodGroup: more goes before the others of its queue."""
