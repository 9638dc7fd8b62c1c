"""Names that only controllers read or give, as Volcano spells them; others are in ``crds/annotations``."""

from typing import Final

GROUP_MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"
GROUP_PREFIX: Final = "podgroup-"

INHERITED_PREFIX: Final = "volcano.sh/"
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
