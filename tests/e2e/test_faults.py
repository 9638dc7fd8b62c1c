"""What a live cluster survives: restarts, lost leaders, objects that go in the middle, garbage."""

from __future__ import annotations

import re
import signal
import urllib.request

from tests.e2e import objects
from tests.e2e.cluster import Cluster
from tests.e2e.components import Component

VALID = "volcano-py.io/Valid"


def health_of(scheduler: Component) -> dict[str, int]:
    """What the probes of *scheduler* answer, by path."""
    found = re.search(r'"addresses": \["([^"]+)"', scheduler.log.read_text())
    assert found is not None
    answers = {}
    for path in ("/healthz", "/readyz"):
        with urllib.request.urlopen(f"http://{found[1]}{path}", timeout=60) as answer:
            answers[path] = answer.status
    return answers


def lead(cluster: Cluster) -> tuple[str, int]:
    """Who leads, "" while nobody does, and how often the lead has changed hands."""
    spec = (cluster.get("Lease", "volcano-system/volcano-py") or {}).get("spec", {})
    return str(spec.get("holderIdentity") or ""), int(spec.get("leaseTransitions") or 0)


def _first_bind(cluster: Cluster, prefix: str) -> None:
    cluster.until(lambda: cluster.bound(prefix), what=f"the first bind of {prefix}")


def test_a_killed_scheduler_goes_on_where_it_was(cluster: Cluster) -> None:
    cluster.default_queue()
    cluster.nodes(4, cpu="8")
    scheduler = cluster.scheduler("--no-leader-elect")
    for number in range(4):
        cluster.create(*objects.gang(cluster.space, f"g{number}", 8))
        _first_bind(cluster, f"g{number}")
        scheduler.kill()
        scheduler.start()
    cluster.wait_bound(32)
    cluster.assert_sound()


def test_pods_and_nodes_that_vanish_in_the_middle_stop_nothing(cluster: Cluster) -> None:
    cluster.default_queue()
    cluster.nodes(6, cpu="4")
    cluster.scheduler()
    for number in range(6):
        cluster.create(*objects.gang(cluster.space, f"g{number}", 3))
        cluster.delete("Pod", f"{cluster.space}/g{number}-0", grace_s=0)
    cluster.delete("Node", "n5")
    cluster.create(*objects.gang(cluster.space, "after", 4))
    cluster.wait_bound(4, "after")


def test_a_paused_leader_is_replaced_and_binds_nothing_more(cluster: Cluster) -> None:
    cluster.default_queue()
    cluster.nodes(2)
    times = ["--leader-elect-lease-duration", "3s", "--leader-elect-renew-deadline", "2s"]
    times += ["--leader-elect-retry-period", "500ms", "--leader-elect"]
    first = cluster.scheduler(*times, instance="a")
    before, _ = cluster.until(lambda: lead(cluster) if lead(cluster)[0] else None, what="a leader")
    cluster.scheduler(*times, instance="b")
    first.signal(signal.SIGSTOP)
    cluster.create(*objects.gang(cluster.space, "g", 4))
    cluster.wait_bound(4, "g")
    holder, changes = lead(cluster)
    assert holder != before
    first.signal(signal.SIGCONT)
    cluster.create(*objects.gang(cluster.space, "h", 4))
    cluster.wait_bound(4, "h")
    holder, later = lead(cluster)
    assert holder != before or later > changes, "it goes on as if it still led"
    cluster.assert_sound()


def test_garbage_is_told_to_its_owner_and_to_nobody_else(cluster: Cluster) -> None:
    cluster.default_queue()
    cluster.nodes(1, annotations={"hami.io/node-nvidia-register": "{nonsense"})
    scheduler = cluster.scheduler("--no-leader-elect")
    cluster.create(objects.queue("x", parent="y"), objects.queue("y", parent="x"))
    notes = {"volcano.sh/preemptable": "perhaps", "volcano.sh/cooldown-time": "soon", "big": "x" * 200_000}
    cluster.create(
        *objects.gang(cluster.space, "noted", 1, annotations=notes),
        *objects.gang(cluster.space, "circled", 1, queue="x"),
        *objects.gang(cluster.space, "fine", 1),
    )
    cluster.wait_bound(1, "fine")
    cluster.wait_bound(1, "noted")
    cluster.until_says("PodGroup", f"{cluster.space}/circled", "Unschedulable", "circle")
    annotations = ("volcano.sh/preemptable", "volcano.sh/cooldown-time")
    cluster.until_says("Pod", f"{cluster.space}/noted-0", VALID, *annotations)
    cluster.until_says("Node", "n0", VALID, "hami.io/node-nvidia-register")
    assert health_of(scheduler) == {"/healthz": 200, "/readyz": 200}


def test_a_crashed_server_loses_nothing(cluster: Cluster) -> None:
    cluster.default_queue()
    cluster.nodes(4, cpu="8")
    scheduler = cluster.scheduler()
    cluster.create(*objects.gang(cluster.space, "before", 8))
    cluster.wait_bound(8, "before")
    cluster.server.crash()
    cluster.server.revive()
    cluster.create(*objects.gang(cluster.space, "after", 8))
    cluster.wait_bound(8, "after")
    assert scheduler.alive()
    cluster.assert_sound()
