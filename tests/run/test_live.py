"""The scheduler as a process: leading, stopping, another configuration, its journal, its rights."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from tests.e2e import objects
from tests.e2e.cluster import Cluster
from tests.e2e.components import Component
from tests.e2e.rights import Account
from volcano_py.client.api import RESOURCES
from volcano_py.scheduler.run.replay import Note, Replayed, replay
from volcano_py.simulator.card_shorthand import node_cards

CONFIG = "actions: enqueue, allocate, backfill\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n"
ELECT = (
    *("--leader-elect-lease-duration", "3s", "--leader-elect-renew-deadline", "2s"),
    *("--leader-elect-retry-period", "300ms"),
)


def get(component: Component, path: str) -> tuple[int, str]:
    """What *component* answers to a probe, at the address that its log names."""
    found = re.search(r'"addresses": \["([^"]+)"', component.log.read_text())
    assert found is not None
    try:
        with urllib.request.urlopen(f"http://{found[1]}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def rewrite(file: Path, text: str) -> None:
    """Put *text* in place of what *file* says, of which nobody reads a part."""
    draft = file.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(file)


def holder(cluster: Cluster) -> str:
    found = cluster.get("Lease", "volcano-system/volcano-py") or {}
    return str(found.get("spec", {}).get("holderIdentity") or "")


def test_a_leader_that_stops_hands_over_at_once(cluster: Cluster) -> None:
    cluster.default_queue()
    cluster.nodes(2)
    times = ("--leader-elect-lease-duration", "300s", "--leader-elect-renew-deadline", "200s")
    first = cluster.scheduler(*times, "--leader-elect-retry-period", "300ms", instance="a")
    cluster.until(lambda: holder(cluster), what="a leader")
    before = holder(cluster)
    second = cluster.scheduler(*times, "--leader-elect-retry-period", "300ms", instance="b")
    cluster.until(lambda: second.has_logged("synced"), what="the standby synced")
    cluster.create(*objects.gang(cluster.space, "g", 3))
    cluster.wait_bound(3, "g")
    assert first.stop() == 0
    began = time.monotonic()
    cluster.create(*objects.gang(cluster.space, "h", 3))
    cluster.wait_bound(3, "h")
    assert holder(cluster) != before
    assert time.monotonic() - began < 100  # a third of the lease's duration


def test_a_dead_leader_is_replaced_within_the_lease(cluster: Cluster) -> None:
    cluster.default_queue()
    cluster.nodes(2)
    first = cluster.scheduler(*ELECT, instance="a")
    cluster.until(lambda: holder(cluster), what="a leader")
    second = cluster.scheduler(*ELECT, instance="b")
    cluster.until(lambda: second.has_logged("synced"), what="the standby synced")
    first.kill()
    cluster.create(*objects.gang(cluster.space, "g", 3))
    cluster.wait_bound(3, "g")
    cluster.assert_sound()


def test_another_configuration_comes_into_force_and_a_bad_one_does_not(cluster: Cluster) -> None:
    cluster.default_queue()
    cluster.nodes(1)
    conf = cluster.place / "conf.yaml"
    conf.write_text(CONFIG)
    scheduler = cluster.scheduler("--scheduler-conf", str(conf), "--no-leader-elect")
    cluster.create(*objects.gang(cluster.space, "first", 1))
    cluster.wait_bound(1, "first")
    rewrite(conf, "actions: alocate\ntiers: []\n")
    cluster.until(lambda: get(scheduler, "/readyz")[0] == 503, what="not ready with a bad file")
    assert "alocate" in get(scheduler, "/readyz")[1]
    assert get(scheduler, "/healthz")[0] == 200
    assert "volcano_py_config_last_reload_ok 0.0" in get(scheduler, "/metrics")[1]
    events = RESOURCES["Event"].path("volcano-system")
    told = cluster.until(
        lambda: [
            each
            for each in cluster.call(cluster.api.get(events))["items"] or ()
            if each.get("reason") == "ConfigRefused"
        ],
        what="an event about the file",
    )
    assert "alocate" in told[0].get("note", told[0].get("message", ""))
    cluster.create(*objects.gang(cluster.space, "second", 1))
    cluster.wait_bound(1, "second")
    rewrite(conf, CONFIG.replace("enqueue, allocate, backfill", "backfill"))
    cluster.until(lambda: scheduler.has_logged("config_reloaded"), what="the new file read")
    assert get(scheduler, "/readyz")[0] == 200
    cluster.create(*objects.gang(cluster.space, "third", 1))
    cluster.create(
        objects.group(cluster.space, "fourth", 1),
        objects.pod(cluster.space, "fourth-0", group="fourth", requests={}),
    )
    cluster.wait_bound(1, "fourth")
    assert cluster.bound("third") == {}


def test_another_configuration_may_name_another_configmap_of_cards(cluster: Cluster) -> None:
    """Its names of resources are in force with it, without a restart."""
    cluster.default_queue()
    notes, amounts = node_cards("n0", {"count": 1})
    carded = objects.node("n0", annotations=notes)
    carded["status"]["allocatable"] = {**carded["status"]["allocatable"], **amounts}
    cluster.create(carded)
    devices = {"device-config.yaml": "nvidia: {resourceCountName: example.com/slice}"}
    place = {"name": "other-devices", "namespace": "kube-system"}
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": place, "data": devices})
    conf = cluster.place / "conf.yaml"
    conf.write_text(CONFIG.replace("{name: predicates}", "{name: predicates}, {name: deviceshare}"))
    try:
        scheduler = cluster.scheduler("--scheduler-conf", str(conf), "--no-leader-elect")
        asks = {"cpu": "100m", "example.com/slice": "1", "nvidia.com/gpumem": "600"}
        waiting = objects.pod(cluster.space, "a-0", group="a", requests=asks)
        cluster.create(objects.group(cluster.space, "a", 1), waiting)
        key = f"{cluster.space}/a-0"
        cluster.until(lambda: cluster.condition("Pod", key, "PodScheduled"), what="why it waits")
        named = "{name: deviceshare, arguments: {deviceshare.KnownGeometriesCMName: other-devices}}"
        rewrite(conf, conf.read_text().replace("{name: deviceshare}", named))
        cluster.wait_bound(1, "a")
        assert get(scheduler, "/readyz")[0] == 200
    finally:  # the server is shared with other tests
        cluster.delete("ConfigMap", "kube-system/other-devices")


def test_a_configuration_that_can_not_be_carried_out_ends_the_start(tmp_path: Path) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text("actions: alocate\ntiers: []\n")
    command = [sys.executable, "-m", "volcano_py.cli.main", "scheduler", "--scheduler-conf", str(conf)]
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(KUBECONFIG)
    ended = subprocess.run(
        [*command, "--kubeconfig", str(kubeconfig)], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 2
    assert "alocate" in ended.stderr
    assert "did you mean" in ended.stderr.lower()


KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


def test_what_a_killed_scheduler_decided_can_be_decided_again(cluster: Cluster) -> None:
    cluster.default_queue()
    cluster.nodes(4)
    folder = cluster.place / "journal"
    arguments = ("--no-leader-elect", "--journal", str(folder), "--journal-size", "8Mi")
    scheduler = cluster.scheduler(*arguments)
    for number in range(4):
        cluster.create(*objects.gang(cluster.space, f"g{number}", 4))
    cluster.create(*objects.gang(cluster.space, "huge", 3, cpu="99"))
    cluster.wait_bound(16, "g")
    scheduler.kill()
    scheduler.start()
    cluster.create(*objects.gang(cluster.space, "late", 4))
    cluster.wait_bound(4, "late")
    scheduler.kill()
    played = [one for one in replay(folder) if isinstance(one, Replayed)]
    assert not [one.differs for one in played if one.differs]
    assert sum(len(one.recorded.decisions) for one in played) == 20
    assert [one.recorded.number for one in played] == sorted({one.recorded.number for one in played})
    for note in [one for one in replay(folder) if isinstance(one, Note)]:
        assert "cut off" in note.text
    binding = next(one.recorded.number for one in played if one.recorded.decisions)
    command = [sys.executable, "-m", "volcano_py.cli.main", "plan", "--replay", str(folder)]
    shown = subprocess.run(
        [*command, "--cycle", str(binding)], capture_output=True, text=True, timeout=300, check=False
    )
    assert shown.returncode == 0, shown.stderr
    assert f"cycle {binding}: as recorded" in shown.stdout
    assert re.search(r"\d+ started, 0 evicted", shown.stdout)


def test_the_shipped_rights_suffice(cluster: Cluster) -> None:
    if cluster.server.kind != "real":
        return  # the embedded server grants its token everything
    cluster.default_queue()
    cluster.nodes(2, cpu="2")
    cluster.create(objects.priority("high", 1000))
    kubeconfig = Account(cluster, "volcano-py-scheduler", "scheduler.yaml").kubeconfig
    ports = ("--listen-address", "127.0.0.1:0", "--healthz-address", "0")
    scheduler = Component("scheduler", kubeconfig, cluster.place, *ports, *ELECT)
    cluster.components["scheduler"] = scheduler
    scheduler.start()
    cluster.create(*objects.gang(cluster.space, "low", 1), *objects.gang(cluster.space, "wide", 1, cpu="9"))
    cluster.create(
        objects.pod(cluster.space, "low-1", group="low"), objects.pod(cluster.space, "low-2", group="low")
    )
    cluster.create(objects.pod(cluster.space, "low-3", group="low"))
    cluster.wait_bound(4, "low")
    said = cluster.until(
        lambda: cluster.condition("Pod", f"{cluster.space}/wide-0", "PodScheduled"), what="why it waits"
    )
    assert "Insufficient cpu" in said["message"]
    cluster.until(lambda: cluster.events("FailedScheduling"), what="an event")
    cluster.until(
        lambda: (
            (cluster.get("Queue", "default") or {}).get("status", {}).get("allocated", {}).get("cpu") == "4"
        ),
        what="what the queue holds",
    )
    urgent = objects.pod(cluster.space, "urgent-0", group="urgent", priorityClassName="high")
    cluster.create(objects.group(cluster.space, "urgent", 1, priorityClassName="high"), urgent)
    cluster.until(lambda: len(cluster.bound("low")) < 4, what="a victim on its way out")
    cluster.until(
        lambda: cluster.get("Pod", f"{cluster.space}/urgent-0")["status"].get("nominatedNodeName"),  # type: ignore[index]
        what="room kept",
    )
    cluster.until(lambda: kinds_read(scheduler).get("Pod"), what="pods read")
    cluster.until(lambda: all(kinds_read(scheduler).values()), what="all kinds read")
    metrics = get(scheduler, "/metrics")[1]
    assert 'volcano_py_statuses_total{result="refused"} 0.0' in metrics
    assert "forbidden" not in scheduler.said().lower()
    assert scheduler.stop() == 0


def kinds_read(scheduler: Component) -> dict[str, bool]:
    """Kinds, and whether the server lets itself be read of them at the moment."""
    found = re.findall(r'volcano_py_feed_up\{kind="(\w+)"\} ([01]).0', get(scheduler, "/metrics")[1])
    return {kind: up == "1" for kind, up in found}


def test_it_stops_at_once_when_asked_before_it_could_read_the_cluster(cluster: Cluster) -> None:
    scheduler = cluster.scheduler("--no-leader-elect")
    cluster.until(lambda: scheduler.has_logged("started"), what="the process up")
    scheduler.signal(signal.SIGINT)
    assert scheduler.ended() == 0
