"""Names that objects carry, as Volcano spells them."""

from typing import Final

GROUP_NAME: Final = "scheduling.k8s.io/group-name"
GROUP_MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"
QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"
GROUP_PREFIX: Final = "podgroup-"

INHERITED_PREFIX: Final = "volcano.sh/"
PREEMPTABLE: Final = "volcano.sh/preemptable"
COOLDOWN: Final = "volcano.sh/cooldown-time"
REVOCABLE_ZONE: Final = "volcano.sh/revocable-zone"
MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"
TOPOLOGY_TIER: Final = "volcano.sh/network-topology-highest-tier"

CLOSED_BY_PARENT: Final = "volcano.sh/closed-by-parent"
REVISION_HASH: Final = "controller-revision-hash"

MADE_FROM: Final = "volcano-py.io/made-from"
"""On PodGroups that we made: a digest of the pod and owner it was made from."""

FIELD_MANAGER: Final = "volcano-py-controller"
ROOT: Final = "root"
DEFAULT_QUEUE: Final = "default"
