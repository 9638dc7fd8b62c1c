"""Tables, forms and ages, to the letter."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
import yaml
from rich.text import Text

from volcano_py.cli.vcctl.cluster import CommandError
from volcano_py.cli.vcctl.flags import Flags, Form
from volcano_py.cli.vcctl.queue import COLUMNS, Counted
from volcano_py.cli.vcctl.tables import (
    Column,
    print_data,
    print_objects,
    print_rows,
    span,
    table,
    without_age,
)

Document = dict[str, Any]


def queue(name: str, state: str = "Open", **spec: Any) -> Document:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "managedFields": [{"manager": "x"}]},
        "spec": {"weight": 1, **spec},
        "status": {"state": state},
    }


def test_queues_to_the_letter(capsys: pytest.CaptureFixture[str]) -> None:
    queues = [
        Counted(queue("ml", weight=4), Counter(Running=2, Pending=1)),
        Counted(queue("a-long-queue-name", "Closed", parent="ml"), Counter(Completed=12)),
    ]
    print_rows(table(COLUMNS, queues, Flags()))
    assert capsys.readouterr().out == (
        "Name               Weight  State   Parent  Inqueue  Pending  Running  Unknown  Completed\n"
        "ml                 4       Open    -       0        1        2        0        0\n"
        "a-long-queue-name  1       Closed  ml      0        0        0        0        12\n"
    )


def test_a_cell_is_never_cut_or_marked_up(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 300
    print_rows([("A", "B"), (long, "[bold]b[/bold]")])
    assert capsys.readouterr().out.splitlines()[1] == f"{long}  [bold]b[/bold]"


def test_a_row_that_has_only_grown_older_is_no_news() -> None:
    """Minutes pass for every row at once; whoever watches wants to see what happens."""
    head = ("Name", "Age", "State")
    young, old = without_age([head, ("a", "1m", "Open")]), without_age([head, ("a", "2m", "Open")])
    assert young == old == [("Name", "State"), ("a", "Open")]
    assert without_age([head, ("a", "2m", "Closed")]) != old


def test_wide_columns_only_when_asked() -> None:
    columns = (Column("A", lambda item: item), Column("B", lambda item: item, wide=True))
    assert [str(cell) for cell in table(columns, [1], Flags())[0]] == ["A"]
    assert [str(cell) for cell in table(columns, [1], Flags(output=Form.wide))[0]] == ["A", "B"]


def test_words_of_state_have_a_colour() -> None:
    row = table((Column("State", lambda item: item),), ["Running"], Flags())[1]
    assert isinstance(row[0], Text)
    assert row[0].style == "green"


@pytest.mark.parametrize(("form", "read"), [(Form.json, json.loads), (Form.yaml, yaml.safe_load)])
def test_objects_for_programs(form: Form, read: Any, capsys: pytest.CaptureFixture[str]) -> None:
    print_objects(Flags(output=form), (), [queue("a"), queue("b")])
    told = read(capsys.readouterr().out)
    assert told["kind"] == "List"
    assert [item["metadata"] for item in told["items"]] == [{"name": "a"}, {"name": "b"}]
    print_objects(Flags(output=form), (), [queue("a")], one=True)
    assert read(capsys.readouterr().out)["kind"] == "Queue"


def test_names_as_kubectl_writes_them(capsys: pytest.CaptureFixture[str]) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    print_objects(Flags(output=Form.name), (), [queue("a"), pod])
    assert capsys.readouterr().out == "queue.scheduling.volcano.sh/a\npod/p\n"


def test_an_answer_has_no_names() -> None:
    with pytest.raises(CommandError, match="-o name"):
        print_data(Flags(output=Form.name), {})


@pytest.mark.parametrize(
    ("seconds", "text"), [(-3, "0s"), (5, "5s"), (119, "119s"), (120, "2m"), (7200, "2h"), (864_000, "10d")]
)
def test_spans(seconds: float, text: str) -> None:
    assert span(seconds) == text
