"""``volcano-py demo``: the story comes out as it is told, and nothing is left behind."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.playground.starting import ROOT, UP_S, VOLCANO_PY, WAIT_S, processes_of, until
from volcano_py.cli.demo_views import card_picture, queue_table, refusal_of, slices_of, waiting_list


def start_demo(place: Path, log: Path, *words: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "TMPDIR": str(place), "COLUMNS": "200"}
    with log.open("wb") as out:
        return subprocess.Popen(
            [VOLCANO_PY, "demo", *words], cwd=ROOT, env=env, stdout=out, stderr=out, stdin=subprocess.DEVNULL
        )


def test_the_demo_tells_who_starts_who_waits_and_who_gives_way(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert start_demo(tmp_path, log).wait(3 * UP_S) == 0, log.read_text()
    said = log.read_text()
    assert len(re.findall(r"train-\w+ +Running", said)) == 3
    assert len(set(re.findall(r"chat-\w+-\w+ +Running +\S+ +(\S+)", said))) == 1, "one card for four servers"
    # Which of the four trials is left goes by their names, which are drawn.
    after = said.partition("A reclaim")[2].partition("EVICTED")[0]
    assert sorted(re.findall(r"█+░* (\w+(?: x\d+)?)", after)) == [
        "chat x4",
        *["rank"] * 3,
        "sweep",
        *["train"] * 3,
    ]
    assert re.search(r"sweep-\w+, sweep-\w+ wait: 0/2 nodes are available", said)
    assert re.search(r"research +4 +7\.0 +borrows 3", said)
    assert len(re.findall(r"research/sweep-\w+ +evicted for product/rank by reclaim", said)) == 3
    assert re.search(r"product +4 +3\.8", said)
    assert "the playground has stopped" in said
    assert not processes_of(tmp_path)
    assert not list(tmp_path.glob("volcano-py-playground-*"))


def test_a_demo_that_is_interrupted_stops_everything(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = start_demo(tmp_path, log)
    until(lambda: "API server on" in log.read_text() or process.poll() is not None, within_s=UP_S)
    process.send_signal(signal.SIGINT)
    assert process.wait(WAIT_S) == 130
    until(lambda: not processes_of(tmp_path))
    assert not list(tmp_path.glob("volcano-py-playground-*"))


def test_the_demo_needs_its_manifests(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert start_demo(tmp_path, log, "--examples", str(tmp_path)).wait(WAIT_S) == 2
    assert "run this in the checkout, or say --examples" in log.read_text()


def test_slices_are_read_from_what_the_scheduler_wrote() -> None:
    held = {"hami.io/vgpu-devices-allocated": "n-0,NVIDIA,100,20:n-1,NVIDIA,200,30:;"}
    assert slices_of({"metadata": {"annotations": held}}) == [("n-0", "100", "20"), ("n-1", "200", "30")]
    assert slices_of({"metadata": {}}) == []


def test_the_picture_shows_who_is_on_each_card_and_how_full_it_is() -> None:
    def pod(name: str, held: str) -> dict[str, Any]:
        notes = {"hami.io/vgpu-devices-allocated": held}
        meta = {"name": name, "namespace": "team", "annotations": notes}
        return {"metadata": meta, "spec": {"nodeName": "node-0"}, "status": {"phase": "Running"}}

    gone = pod("old-1", "node-0-1,NVIDIA,100,100:;") | {"status": {"phase": "Succeeded"}}
    slices = [pod(f"chat-{at}", "node-0-0,NVIDIA,25,20:;") for at in range(2)]
    console = Console(file=io.StringIO(), width=100)
    console.print(card_picture([*slices, gone], nodes=1, cards=2, one_mib=100))
    rows = [" ".join(row.split()) for row in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert "node-0 ███░░░ chat x2 ░░░░░░ idle" in rows


def test_only_pods_without_a_node_wait() -> None:
    refused = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no room"}]}
    assert refusal_of({"spec": {}, "status": refused}) == "no room"
    assert refusal_of({"spec": {"nodeName": "n"}, "status": refused}) == ""
    assert refusal_of({"spec": {}, "status": {}}) == ""
    assert waiting_list([]) is not None


def test_a_queue_that_holds_less_than_it_owns_borrows_nothing() -> None:
    queues = [
        {
            "metadata": {"name": name},
            "spec": {"weight": 1},
            "status": {"allocated": {"nvidia.com/gpumem": held}},
        }
        for name, held in (("a", "3k"), ("b", "500"))
    ]
    table = queue_table(queues, 4000, 1000)
    cells = [[str(cell) for cell in column.cells] for column in table.columns]
    assert cells == [["a", "b"], ["2", "2"], ["3.0", "0.5"], ["borrows 1", ""]]
