"""Events of the simulator's controllers, for whoever describes an object."""

from __future__ import annotations

import time
from typing import Any, Final

from volcano_py.scheduler.model.kube.times import format_time

Document = dict[str, Any]
NORMAL: Final = "Normal"
WARNING: Final = "Warning"


def event_about(about: Document, kind: str, reason: str, message: str, *, by: str) -> Document:
    """An Event of *kind* (``NORMAL``, ``WARNING``) on *about*, which says its own kind; *by* whom."""
    meta, now = about["metadata"], format_time(time.time())
    names = {"apiVersion": about["apiVersion"], "kind": about["kind"]}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{meta['name']}-", "namespace": meta["namespace"]},
        "involvedObject": {**names, **{key: meta[key] for key in ("name", "namespace", "uid")}},
        "type": kind,
        "reason": reason,
        "message": message,
        "source": {"component": by},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
