"""What is told about one object: the same data for people and for programs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from volcano_py.cli.card_lines import amount, lines
from volcano_py.cli.vcctl.tables import out
from volcano_py.crds.quantity import format_base
from volcano_py.scheduler.framework.refusal import Refusal

_PARTS: Final = re.compile(r"; ((?:preempt|reclaim): )")
"""Where a refusal goes on with what each action tried."""


@dataclass(slots=True)
class Story:
    """Why an object is as it is.

    Attributes:
        object: ``Kind namespace/name``.
        verdict: the answer in one sentence.
        reasons: why it waits, each with the numbers behind it.
        changes: what would have to change, each by itself enough for its reason.
        near_misses: names that nobody has, and a similar one that somebody has.
        line: where it stands among those that wait.
        estimate: when it may start.
        limits: of its queue and those above, by resource.
        evictions: who had to go, for whom.
        notes: what else is worth knowing.
        configuration: where the scheduler's configuration was found.
    """

    object: str
    verdict: str = ""
    reasons: list[dict[str, Any]] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    near_misses: list[str] = field(default_factory=list)
    line: dict[str, Any] = field(default_factory=dict)
    estimate: dict[str, Any] = field(default_factory=dict)
    limits: list[dict[str, str]] = field(default_factory=list)
    evictions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    configuration: str = ""

    def data(self) -> dict[str, Any]:
        """For programs: what is empty is left out."""
        words = {"near_misses": "nearMisses"}
        return {words.get(key, key): value for key, value in asdict(self).items() if value}


def reason(refusal: Refusal, pods: Iterable[str] = ()) -> dict[str, Any]:
    """*refusal* as data; *pods* are those that it was said of."""
    told = sorted(pods)
    found = {
        "code": refusal.reason,
        "message": refusal.message,
        "pods": told,
        "nodes": refusal.nodes,
        "failed": dict(refusal.failed),
        "missing": {name: format_base(name, amount) for name, amount in refusal.missing.items()},
        "nearest": refusal.nearest,
    }
    return {key: value for key, value in found.items() if value}


def tell(story: Story) -> None:
    """Print *story* for people; sections without content are left out."""
    console = out()
    console.print(Text.assemble((story.object, "bold"), f": {story.verdict}"))
    _section("Why", [_why(one) for one in story.reasons])
    _section("What would have to change", story.changes)
    said = [one["message"] for one in story.reasons]
    absent = [each for each in story.near_misses if not any(each in text for text in said)]
    _section("What nobody has", absent)
    _section("In line", _line(story.line))
    _section("Estimated start", [story.estimate["text"]] if story.estimate else [])
    _limits(story.limits)
    _section("Evictions", story.evictions)
    _section("Notes", story.notes)
    if story.configuration:
        console.print(Text(f"By {story.configuration}.", "dim"))


def _section(title: str, lines: Iterable[str]) -> None:
    told = list(lines)
    if not told:
        return
    console = out()
    console.print(Text(title, "bold"))
    for text in told:
        console.print(Text(f"  {text}"))


def _why(one: dict[str, Any]) -> str:
    pods = one.get("pods", ())
    who = "" if not pods else f"{pods[0]}: " if len(pods) == 1 else f"{len(pods)} pods: "
    return who + _PARTS.sub(r";\n    \1", one["message"])


def _line(line: dict[str, Any]) -> list[str]:
    if not line:
        return []
    if not line.get("position"):
        return [str(line["text"])]
    ahead = line["aheadCalled"]
    told = [f"{line['position']} of {line['of']} in queue {line['queue']}"]
    if ahead:
        more = f" and {line['position'] - 1 - len(ahead)} more" if line["position"] - 1 > len(ahead) else ""
        told.append(f"before it: {', '.join(ahead)}{more}")
    return told


def _limits(limits: list[dict[str, str]]) -> None:
    """A table, one row a queue and resource; cards under one name."""
    if not limits:
        return
    labels = lines(one["resource"] for one in limits)
    keys = [key for key in ("holds", "entitlement", "max") if any(key in one for one in limits)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in ("QUEUE", "RESOURCE"):
        table.add_column(head)
    for key in keys:
        table.add_column(key.upper(), justify="right")
    last = ""
    for one in limits:
        label = labels.get(one["resource"])
        if label is not None:
            cells = [amount(label, one["resource"], one[key]) if key in one else "-" for key in keys]
            table.add_row(one["queue"] if one["queue"] != last else "", label, *cells)
            last = one["queue"]
    console = out()
    console.print(Text("Limits", "bold"))
    console.print(Padding(table, (0, 0, 0, 2), expand=False))
