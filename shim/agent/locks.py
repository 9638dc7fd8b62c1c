"""Node locks of HAMi's and Volcano's schedulers: one pod at a time, until its devices are handed out.

Our scheduler takes none. Where another one does, it waits for the agent to release the lock: HAMi's names its
pod and is released for that pod alone, Volcano's names nobody and is released when any pod has got its cards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from volcano_py.shim.agent.pods import Pod

HAMI_LOCK: Final = "hami.io/mutex.lock"
VOLCANO_LOCK: Final = "hamivgpu"
_WITH_OWNER: Final = 3


def released(notes: Mapping[str, str], served: Iterable[Pod], finished: Collection[Pod]) -> dict[str, str]:
    """The locks among the node's *notes* that are to go, with their values.

    Args:
        notes: annotations of the node.
        served: pods that have all their cards.
        finished: those of them that got them just now.
    """
    names = {(pod.metadata.namespace, pod.metadata.name) for pod in served}
    found = {key: notes[key] for key in (HAMI_LOCK, VOLCANO_LOCK) if notes.get(key)}
    return {key: value for key, value in found.items() if _is_over(value, names, finished)}


def release(locks: Mapping[str, str]) -> list[dict[str, Any]]:
    """A JSON patch of the node that removes *locks*, if they are what they were."""
    patch: list[dict[str, Any]] = []
    for key, value in locks.items():
        path = "/metadata/annotations/" + key.replace("~", "~0").replace("/", "~1")
        patch += [{"op": "test", "path": path, "value": value}, {"op": "remove", "path": path}]
    return patch


def _is_over(value: str, served: set[tuple[str, str]], finished: Collection[Pod]) -> bool:
    fields = value.split(",")
    if len(fields) == _WITH_OWNER:
        return (fields[1], fields[2]) in served
    return bool(finished)
