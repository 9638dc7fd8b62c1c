"""Pod statuses as a kubelet writes them: acknowledged, running, ended. Patches of the status subresource.

Strategic merge patches: conditions of others (the scheduler's, an evictor's) stay. Each carries the pod's
uid, so that a pod of the same name is never written by mistake.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from volcano_py.scheduler.model.kube.times import format_time
from volcano_py.simulator.kubelet.podview import Container, PodView

Patch = dict[str, Any]
HOST_IP: Final = "127.0.0.1"


def acknowledged(pod: PodView, now_s: float) -> Patch:
    """Seen by its kubelet; its containers are being created."""
    waiting = [
        _container(one, ready=False, state={"waiting": {"reason": "ContainerCreating"}})
        for one in pod.spec.containers
    ]
    conditions = _conditions(now_s, initialized=True, ready=False, reason="ContainersNotReady")
    return _patch(
        pod,
        phase="Pending",
        hostIP=HOST_IP,
        startTime=format_time(now_s),
        conditions=conditions,
        containerStatuses=waiting,
    )


def running(pod: PodView, now_s: float) -> Patch:
    """All containers run and are ready."""
    address = pod_address(pod.metadata.uid)
    since = {"running": {"startedAt": format_time(now_s)}}
    begun = {} if pod.status.start_time else {"startTime": format_time(now_s)}
    return _patch(
        pod,
        phase="Running",
        hostIP=HOST_IP,
        podIP=address,
        podIPs=[{"ip": address}],
        **begun,
        conditions=_conditions(now_s, initialized=True, ready=True),
        initContainerStatuses=[
            _container(one, ready=True, state=since if one.restart_policy == "Always" else _done(now_s, 0))
            for one in pod.spec.init_containers
        ],
        containerStatuses=[
            {**_container(one, ready=True, state=since), "containerID": container_id(pod, one)}
            for one in pod.spec.containers
        ],
    )


def ended(pod: PodView, now_s: float, exit_code: int) -> Patch:
    """All containers ended with *exit_code*."""
    state = _done(now_s, exit_code, pod.running_since_s)
    ended_ones = [
        {**_container(one, ready=False, state=state), "containerID": container_id(pod, one)}
        for one in pod.spec.containers
    ]
    return _patch(
        pod,
        phase="Failed" if exit_code else "Succeeded",
        conditions=_conditions(
            now_s, initialized=True, ready=False, reason="PodFailed" if exit_code else "PodCompleted"
        ),
        containerStatuses=ended_ones,
    )


def refused(pod: PodView, now_s: float, reason: str, message: str) -> Patch:
    """It fails before it starts."""
    return _patch(
        pod,
        phase="Failed",
        reason=reason,
        message=message,
        startTime=format_time(now_s),
        conditions=_conditions(now_s, initialized=False, ready=False, reason="PodFailed"),
    )


def container_id(pod: PodView, container: Container) -> str:
    """``pretend://UID/NAME``."""
    return f"pretend://{pod.metadata.uid}/{container.name}"


def pod_address(uid: str) -> str:
    """An address in 10.0.0.0/8, the same for the same pod whoever asks."""
    digest = hashlib.blake2b(uid.encode(), digest_size=3).digest()
    return f"10.{digest[0]}.{digest[1]}.{1 + digest[2] % 254}"


def _patch(pod: PodView, **status: Any) -> Patch:
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}


def _container(container: Container, *, ready: bool, state: Mapping[str, Any]) -> Patch:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": ready,
        "started": "running" in state,
        "restartCount": 0,
        "state": state,
    }


def _done(now_s: float, exit_code: int, since_s: float | None = None) -> Patch:
    return {
        "terminated": {
            "exitCode": exit_code,
            "reason": "Error" if exit_code else "Completed",
            "startedAt": format_time(now_s if since_s is None else since_s),
            "finishedAt": format_time(now_s),
        }
    }


def _conditions(now_s: float, *, initialized: bool, ready: bool, reason: str = "") -> list[Patch]:
    """Initialized, Ready, ContainersReady; *reason* why the pod is not ready."""
    held = {"Initialized": initialized, "Ready": ready, "ContainersReady": ready}
    return [
        {
            "type": kind,
            "status": "True" if holds else "False",
            "reason": None if holds else reason,
            "lastTransitionTime": format_time(now_s),
        }
        for kind, holds in held.items()
    ]
