"""What people do to a cluster, in random tests: the numbers choose among few names, so that things meet."""

from __future__ import annotations

from collections.abc import Callable

from tests.controllers.objects import owner, pod_parts, workload_parts
from tests.controllers.server import Server

GROUP = "scheduling.k8s.io/group-name"
QUEUES = ("q0", "q1", "q2", "root", "default")
PARENTS = ("", "root", "q0", "q1", "q2", "nowhere")


def make_pod(server: Server, number: int, choice: int, serial: int) -> None:
    notes = {"scheduling.volcano.sh/queue-name": QUEUES[choice % 3]} if choice % 2 else {}
    if ("Pod", "ns", f"p{number}") not in server.objects:
        server.put("Pod", f"p{number}", "ns", f"pod-{serial}", **pod_parts(annotations=notes))


def make_owned_pod(server: Server, number: int, choice: int, serial: int) -> None:
    workload = server.objects.get(("ReplicaSet", "ns", f"r{choice % 2}"))
    if workload is not None and ("Pod", "ns", f"o{number}") not in server.objects:
        owned = owner("ReplicaSet", workload["metadata"]["name"], workload["metadata"]["uid"])
        parts = pod_parts(owned, labels={"app": "a"})
        server.put("Pod", f"o{number}", "ns", f"pod-{serial}", **parts)


def make_workload(server: Server, number: int, choice: int, serial: int) -> None:
    name = f"r{number % 2}"
    if ("ReplicaSet", "ns", name) not in server.objects:
        notes = {"scheduling.volcano.sh/group-min-member": "2"} if choice % 2 else {}
        server.put("ReplicaSet", name, "ns", f"set-{serial}", **workload_parts(choice % 3, notes))


def finish_pod(server: Server, number: int, choice: int, _serial: int) -> None:
    """One that has its group: whether a pod that ends at once still gets one depends on who is faster."""
    key = ("Pod", "ns", f"{'po'[choice % 2]}{number}")
    if server.objects.get(key, {}).get("metadata", {}).get("annotations", {}).get(GROUP):
        server.change("Pod", key[2], "ns", status={"phase": "Failed"})


def make_queue(server: Server, number: int, choice: int, _serial: int) -> None:
    name = QUEUES[number % 3]
    if ("Queue", "", name) not in server.objects and PARENTS[choice] != name:
        server.put("Queue", name, spec={"parent": PARENTS[choice]} if PARENTS[choice] else {})


def move_queue(server: Server, number: int, choice: int, _serial: int) -> None:
    name = QUEUES[number % 3]
    if PARENTS[choice] != name:
        server.change("Queue", name, spec={"parent": PARENTS[choice] or None})


def make_group(server: Server, number: int, choice: int, _serial: int) -> None:
    if ("PodGroup", "ns", f"g{number}") not in server.objects:
        server.put(
            "PodGroup", f"g{number}", "ns", spec={"queue": QUEUES[choice % 5]}, status={"phase": "Running"}
        )


def remove_made_group(server: Server, number: int, _choice: int, _serial: int) -> None:
    names = [key.partition("/")[2] for key in server.of("PodGroup") if "podgroup-" in key]
    if names:
        server.remove("PodGroup", names[number % len(names)], "ns")


ACTIONS: dict[str, Callable[[Server, int, int, int], None]] = {
    "make pod": make_pod,
    "make owned pod": make_owned_pod,
    "make workload": make_workload,
    "make queue": make_queue,
    "move queue": move_queue,
    "make group": make_group,
    "remove made group": remove_made_group,
    "remove pod": lambda server, number, choice, _: server.remove("Pod", f"{'po'[choice % 2]}{number}", "ns"),
    "finish pod": finish_pod,
    "scale": lambda server, number, choice, _: server.change(
        "ReplicaSet", f"r{number % 2}", "ns", spec={"replicas": choice % 3}
    ),
    "remove workload": lambda server, number, _choice, _: server.remove("ReplicaSet", f"r{number % 2}", "ns"),
    "remove queue": lambda server, number, _choice, _: server.remove("Queue", QUEUES[number]),
    "remove group": lambda server, number, _choice, _: server.remove("PodGroup", f"g{number}", "ns"),
    "phase": lambda server, number, choice, _: server.change(
        "PodGroup", f"g{number}", "ns", status={"phase": ("Pending", "Inqueue", "Completed")[choice % 3]}
    ),
}


def order(action: str) -> Callable[[Server, int, int, int], None]:
    def give(server: Server, number: int, _choice: int, serial: int) -> None:
        name = QUEUES[number]
        target = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": name}
        server.put("Command", f"c{serial}", "ns", action=action, target=target)

    return give


COMMANDS = {"close": order("CloseQueue"), "open": order("OpenQueue")}
