"""The OpenB experiment and the list of plugins, as a person calls them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from volcano_py.cli.main import app
from volcano_py.plugins.deviceshare.placement import POLICIES, make_policy, typical_for
from volcano_py.scheduler.framework.registry import BUILT_IN_ACTIONS, BUILT_IN_PLUGINS
from volcano_py.simulator.openb import play_through_engine
from volcano_py.simulator.openb_reference import play
from volcano_py.simulator.openb_workload import Trace, read_trace, tuned_workload

DATA = Path(__file__).parents[1] / "data/openb"
NODES, PODS = sorted(DATA.glob("*node*.csv"))[0], sorted(DATA.glob("*pod*.csv"))[0]


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.stdout


def openb(*words: str) -> tuple[int, str]:
    return run("simulate", "openb", "--nodes", str(NODES), "--pods", str(PODS), *words)


@pytest.fixture(scope="module")
def trace() -> Trace:
    return read_trace(NODES, PODS)


def test_json_has_a_run_for_every_policy_and_seed() -> None:
    code, text = openb("--policy", "best-fit", "--policy", "packing", "--seeds", "42-43", "-o", "json")
    runs: list[dict[str, Any]] = json.loads(text)
    assert code == 0
    assert [(r["policy"], r["seed"]) for r in runs] == [
        ("best-fit", 42), ("best-fit", 43), ("packing", 42), ("packing", 43),
    ]  # fmt: skip
    for one in runs:
        assert 0 < one["alloc_pct"] <= 100
        assert sum(one["placed"].values()) > 0
        assert {"workload", "frag_pct", "unplaced", "cpu_s"} <= one.keys()


def test_csv_has_placed_counts_as_columns() -> None:
    code, text = openb("--policy", "best-fit", "--seeds", "42", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert code == 0
    assert int(rows[0]["placed_cards"]) > 0


def test_picture_is_drawn(tmp_path: Path) -> None:
    code, _ = openb("--policy", "best-fit", "--seeds", "42", "--plot", str(tmp_path / "x.png"))
    assert code == 0
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "words",
    [("--policy", "best"), ("--seeds", "4x"), ("--nodes", str(PODS))],
    ids=["policy", "seeds", "nodes"],
)
def test_a_wrong_word_is_told(words: tuple[str, ...]) -> None:
    assert openb(*words)[0] == 2


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "random"])
def test_engine_places_as_the_plain_loop(trace: Trace, policy: str) -> None:
    """The policies through queues, ladders and card choice equal one pod at a time on bare arrays."""
    workload = tuned_workload(trace, 42)
    bare = make_policy(policy, typical=typical_for(policy, trace.counts()), cards=trace.cards)
    through_engine = play_through_engine(trace, workload, policy).history
    assert (play(trace, workload, bare).node == through_engine.node).all()


def test_every_plugin_and_action_is_listed() -> None:
    code, text = run("plugins", "-o", "json")
    entries = json.loads(text)
    assert code == 0
    assert {entry["name"] for entry in entries} >= {*BUILT_IN_PLUGINS, *BUILT_IN_ACTIONS}
    assert all(entry["decides"] for entry in entries)


def test_one_plugin_shows_its_arguments() -> None:
    code, text = run("plugins", "gang")
    assert code == 0
    assert "gang.wholeGangVictims" in text
    assert run("plugins", "gnag")[0] == 2
