"""Keys of JSON that people write programs against: none goes or changes its name; new ones may come."""

from __future__ import annotations

from pathlib import Path

from tests.cli.test_plan import call, data
from tests.project.layout import ROOT
from volcano_py.cli.vcctl.explain.story import Story, reason
from volcano_py.scheduler.framework.refusal import Refusal

PLAN = {
    "": "now cycles decisions podGroups queues pending errors warnings",
    "decisions": "cycle kind pod podGroup node slices action forWhom reason lost",
    "podGroups": "name queue phase minMember pods conditions",
    "conditions": "type status reason message",
    "queues": "name parent weight state problem allocated guarantee max deserved entitlement share "
    "over under",
    "pending": "reason code nodes failed missing nearest",
    "errors": "file line object field message",
}


def test_a_plan_has_the_keys_that_are_written_down(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: a}\nspec: {containers: 3}\n")
    report = data(call("-f", str(ROOT / "examples/sharing"), "-f", str(bad), "-o", "json"))
    assert set(PLAN[""].split()) <= set(report)
    one = {key: report[key][0] for key in ("decisions", "podGroups", "queues", "errors")}
    one["pending"] = next(iter(report["pending"].values()))
    one["conditions"] = next(group["conditions"][0] for group in report["podGroups"] if group["conditions"])
    for key, found in one.items():
        assert set(PLAN[key].split()) <= set(found), key


def test_an_explanation_has_the_keys_that_are_written_down() -> None:
    refusal = Refusal("NodesUnfit", "no room", 3, {"Ports": 1}, {"cpu": 1000}, "n1")
    why = reason(refusal, ["ml/a"])
    assert set(why) == {"code", "message", "pods", "nodes", "failed", "missing", "nearest"}
    full = Story("Pod a", "waits", [why], ["a"], ["b"], {"queue": "q"}, {"text": "soon"}, [{"queue": "q"}])
    full.evictions, full.notes, full.configuration = ["c"], ["d"], "e"
    said = "object verdict reasons changes nearMisses line estimate limits evictions notes configuration"
    assert list(full.data()) == said.split()
