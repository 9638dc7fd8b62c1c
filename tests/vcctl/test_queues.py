"""Queues from the command line, on both servers."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path

import pytest
import typer
import yaml

from tests.e2e import objects, programs
from tests.vcctl.person import LONGEST_S, PROGRAM, Person
from volcano_py.cli.vcctl.cluster import Cluster, run
from volcano_py.cli.vcctl.flags import Flags


def test_a_queue_lives_from_create_to_delete(person: Person) -> None:
    person.as_process = True
    assert person.says("queue", "create", "top", "--max", "cpu=8") == "queue top created\n"
    person.says("queue", "create", "-n", "leaf", "-w", "3", "--parent", "top", "--min", "cpu=1,memory=1Gi")
    rows = {row[0]: row for row in person.rows("queue", "list")}
    assert rows["leaf"] == ["leaf", "3", "Open", "top", "0", "0", "0", "0", "0"]
    found = person.cluster.get("Queue", "leaf")
    assert found is not None
    assert found["spec"]["min"] == {"cpu": "1", "memory": "1Gi"}

    assert "queue top has child queues: leaf" in person.refused("queue", "delete", "top")
    person.says("queue", "operate", "leaf", "-a", "update", "-w", "7")
    assert person.data("queue", "get", "leaf")["spec"]["weight"] == 7
    assert "memory:" in person.says("queue", "describe", "leaf")
    person.says("queue", "delete", "-n", "leaf")
    assert person.says("queue", "delete", "top") == "queue top deleted\n"
    assert person.cluster.get("Queue", "top") is None


def test_what_may_not_be_is_refused_with_the_next_step(person: Person) -> None:
    person.says("queue", "create", "train")
    person.cluster.create(objects.group(person.space, "g", 1, "train"))
    told = person.refused("queue", "delete", "train")
    assert "PodGroups 1 pending" in told
    assert "podgroup list -A --queue train" in told
    assert "every cluster has it" in person.refused("queue", "delete", "default")
    assert "every cluster has it" in person.refused("queue", "delete", "root")
    assert 'did you mean "train"' in person.refused("queue", "get", "trian")
    assert "parent queue x does not exist" in person.refused("queue", "create", "y", "--parent", "x")
    assert "no RESOURCE=AMOUNT" in person.refused("queue", "create", "y", "--max", "cpu", code=2)
    assert "must not be negative" in person.refused("queue", "create", "y", "--max", "cpu=-1", code=2)
    assert "spec.min.cpu" in person.refused(
        "queue", "create", "y", "--min", "cpu=9", "--max", "cpu=1", code=2
    )
    assert "new weight" in person.refused("queue", "operate", "train", "-a", "update", code=2)
    assert person.cluster.get("Queue", "y") is None


def test_a_field_that_the_server_would_drop_is_refused(
    person: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where the CRD on the server is Volcano's own, which knows no ``min``."""

    async def create(cluster: Cluster) -> None:
        spec = {"minimum": {"cpu": "1"}}
        kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
        await cluster.create("Queue", {**kind, "metadata": {"name": "q"}, "spec": spec})

    async def change(cluster: Cluster) -> None:
        await cluster.change("Queue", "there", {"spec": {"minimum": {"cpu": "1"}}})

    person.says("queue", "create", "there")
    for work in (create, change):
        with pytest.raises(typer.Exit):
            run(Flags(kubeconfig=str(person.cluster.kubeconfig)), work)
        told = capsys.readouterr().err
        assert 'unknown field "spec.minimum"' in told
        assert "vcctl-py doctor --check crds" in told


def test_counts_are_those_of_the_groups_now(person: Person) -> None:
    """A list that prints what a status once said shows old counts (or none)."""
    phases = ["Running", "Running", "Inqueue", "Pending", "Completed"]
    person.says("queue", "create", "q")
    for number, phase in enumerate(phases):
        person.cluster.create(
            objects.group(person.space, f"g{number}", 1, "q") | {"status": {"phase": phase}}
        )
    assert person.rows("queue", "get", "q") == [["q", "1", "Open", "-", "1", "1", "2", "0", "1"]]
    person.cluster.delete("PodGroup", f"{person.space}/g0")
    assert person.data("queue", "get", "q")["status"]["running"] == 1


def test_orders_to_queues_are_commands_for_the_controller(person: Person) -> None:
    person.says("queue", "create", "q")
    assert "CloseQueue ordered" in person.says("queue", "operate", "-n", "q", "-a", "close")
    queue = person.cluster.get("Queue", "q")
    assert queue is not None
    [command] = person.cluster.list("Command").values()
    assert command["action"] == "CloseQueue"
    target = command["target"]
    assert (target["kind"], target["name"], target["uid"]) == ("Queue", "q", queue["metadata"]["uid"])


def test_a_controller_carries_orders_out(person: Person) -> None:
    person.says("queue", "create", "q")
    person.cluster.controller("--no-leader-elect", "--listen-address", "127.0.0.1:0")
    assert "queue q is Clos" in person.says("queue", "operate", "q", "-a", "close", "--wait", "120")
    assert "queue q is Open" in person.says("queue", "operate", "q", "-a", "open", "--wait", "120")


def test_waiting_without_a_controller_ends_with_a_hint(person: Person) -> None:
    person.says("queue", "create", "q")
    told = person.refused("queue", "operate", "q", "-a", "close", "--wait", "0.6")
    assert "still Open" in told
    assert "queue controller" in told


def test_lending_is_paused_and_resumed(person: Person) -> None:
    person.says("queue", "create", "q", "--deserved", "cpu=4")
    assert "held for it: 4 cpu" in person.says("queue", "lend", "pause", "q")
    assert person.data("queue", "get", "q")["spec"]["lendingPaused"] is True
    assert "paused" in person.says("queue", "list", "-o", "wide")
    assert "already" in person.says("queue", "lend", "pause", "q")
    assert "lends again" in person.says("queue", "lend", "resume", "q")
    assert "lendingPaused" not in person.data("queue", "get", "q")["spec"]
    person.says("queue", "create", "bare")
    assert "nothing to hold" in person.refused("queue", "lend", "pause", "bare")


def test_watching_prints_the_rows_that_change(person: Person) -> None:
    person.says("queue", "create", "q")
    with subprocess.Popen(
        [PROGRAM, "queue", "list", "--watch"], env=person.environment(), stdout=subprocess.PIPE, text=True
    ) as watching:
        try:
            assert watching.stdout is not None
            lines = iter(watching.stdout.readline, "")
            assert next(lines).startswith("Name")
            next(line for line in lines if line.startswith("q "))
            person.cluster.create(objects.group(person.space, "g", 1, "q"))
            changed = next(line for line in lines if line.startswith("q "))
            assert changed.split()[5] == "1"
        finally:
            watching.terminate()


def test_watching_prints_objects_that_change_for_programs(person: Person) -> None:
    person.says("queue", "create", "q")
    with subprocess.Popen(
        [PROGRAM, "queue", "list", "-w", "-o", "name"],
        env=person.environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as watching:
        try:
            assert watching.stdout is not None
            lines = iter(watching.stdout.readline, "")
            next(line for line in lines if line == "queue.scheduling.volcano.sh/q\n")
            person.says("queue", "create", "r")
            assert "queue.scheduling.volcano.sh/r\n" in lines
        finally:
            watching.terminate()


def test_flags_say_which_server(person: Person, tmp_path: Path) -> None:
    """Flags before the noun and behind the verb; an address wins over the kubeconfig's."""
    config = yaml.safe_load(person.cluster.kubeconfig.read_text())
    address = config["clusters"][0]["cluster"]["server"]
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    wrong = tmp_path / "config"
    wrong.write_text(yaml.safe_dump(config))
    assert "doesn't answer" in person.refused("--kubeconfig", str(wrong), "queue", "list")
    assert "default" in person.says("queue", "list", "-k", str(wrong), "-s", address)
    config["clusters"][0]["cluster"]["server"] = address
    config["users"][0]["user"] = {"token": "nobody's"}
    wrong.write_text(yaml.safe_dump(config))
    assert "log in again" in person.refused("--kubeconfig", str(wrong), "queue", "list")
    told = person.refused("--context", "no-such", "queue", "list", code=2)
    assert "--context no-such can't be used: it has no such context; there are " in told


def offers(person: Person, names: list[str]) -> bool:
    """Whether the shell is given *names* for what the environment says was typed."""
    found = subprocess.run(
        [PROGRAM], env=person.environment(), capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    return found.stdout.split() == names


def test_the_shell_completes_names_of_objects(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("research", "rest", "top"):
        person.says("queue", "create", name)
    person.cluster.create(objects.group(person.space, "train", 1, "rest"))
    monkeypatch.setenv("_VCCTL_PY_COMPLETE", "complete_bash")
    for typed, offered in (
        ("queue get res", ["research", "rest"]),
        (f"-n {person.space} explain pg ", ["train"]),
        (f"podgroup move train -n {person.space} --to t", ["top"]),
    ):
        monkeypatch.setenv("COMP_WORDS", f"vcctl-py {typed}")
        monkeypatch.setenv("COMP_CWORD", str(len(f"vcctl-py {typed}x".split()) - 1))
        # Asked again where the server took longer than whoever has pressed a key waits.
        person.cluster.until(partial(offers, person, offered), what=typed)
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    assert subprocess.run([PROGRAM], capture_output=True, timeout=LONGEST_S, check=False).stderr == b""


def test_kubectl_finds_the_plugin(person: Person) -> None:
    path = f"{Path(PROGRAM).parent}{os.pathsep}{os.environ['PATH']}"
    words = [str(programs.need("kubectl")), "volcano-py", "queue", "get", "default", "-o", "name"]
    env = {**person.environment(), "PATH": path}
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=LONGEST_S, check=True)
    assert done.stdout == "queue.scheduling.volcano.sh/default\n"
