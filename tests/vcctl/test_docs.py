"""docs/vcctl.md: every command in it runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.e2e import objects
from tests.vcctl.person import Person
from tests.vcctl.test_answers import TRAIN

PAGE = Path(__file__).parents[2] / "docs" / "vcctl.md"
SPACE = "team"


def commands() -> list[list[str]]:
    """The command lines of the page, without the program."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    assert all(line.startswith("vcctl-py ") for line in lines), lines
    return [shlex.split(line)[1:] for line in lines]


def in_order() -> list[list[str]]:
    """Commands in an order that works: queues first, then the rest as it stands."""
    found = commands()
    made = [words for words in found if words[:2] == ["queue", "create"]]
    return made + [words for words in found if words not in made]


def test_every_command_of_the_page_runs(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.yaml").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    person.cluster.nodes(2)
    if person.cluster.get("Namespace", SPACE) is None:
        person.cluster.create(objects.namespace(SPACE))
    person.cluster.until(lambda: person.cluster.get("ServiceAccount", f"{SPACE}/default"))
    person.cluster.create(*objects.gang(SPACE, "train", 2, queue="ml"))
    for words in in_order():
        done = person.run(*words)
        # What the doctor finds depends on how long the pods of the page have waited for a scheduler.
        assert done.code in ((0, 1) if words == ["doctor"] else (0,)), f"{words}: {done}"
