"""Manifests: what is read, where it stands, and that a fault costs only its own document."""

import io
from pathlib import Path

import pytest

from volcano_py.simulator.manifests import Manifest, Unreadable, object_name, read_paths, read_text

TWO = """\
# two objects
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: Pod
metadata:
  name: a
  namespace: ml
spec:
  containers:
  - name: main
    resources:
      requests:
        cpu: 1
        nvidia.com/gpu: 2
"""


def read(text: str, file: str = "f.yaml") -> tuple[list[Manifest], list[Unreadable]]:
    return read_text(text, file)


def test_every_object_knows_its_line() -> None:
    found, faults = read(TWO)
    assert faults == []
    assert [(m.name, m.line) for m in found] == [("Node n1", 2), ("Pod ml/a", 6)]


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("metadata.namespace", 10),
        ("spec.containers[0].resources.requests.cpu", 16),
        ("spec.containers[0].resources.requests[nvidia.com/gpu]", 17),
        ("spec.containers[0].image", 13),  # not there: its nearest parent
        ("spec.containers[7].image", 12),
        ("", 6),
    ],
)
def test_a_field_has_a_line(field: str, line: int) -> None:
    assert read(TWO)[0][1].line_of(field) == line


def test_a_cut_off_document_costs_only_itself() -> None:
    found, faults = read(TWO + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: b,\n")
    assert [m.name for m in found] == ["Node n1", "Pod ml/a"]
    assert [(f.file, f.line) for f in faults] == [("f.yaml", 21)]
    assert "cut off" in faults[0].message


def test_documents_after_a_broken_one_are_read() -> None:
    found, faults = read("kind: [\n---\nkind: Pod\nmetadata: {name: a}\n")
    assert [(m.name, m.line) for m in found] == [("Pod a", 3)]
    assert len(faults) == 1


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: 1\n\tb: 2\n", 2, "not with tabs"),
        ("- a\n", 1, "is a list, not an object"),
        ("--- just words\n", 1, 'is the text "just words"'),
        ("a: &a [*a]\n", 1, "multiplies itself"),
        ("[" * 100_000, 1, "nest"),
        ("a: \x01\n", 1, "not valid YAML"),
    ],
)
def test_what_makes_no_sense_is_told_with_its_line(text: str, line: int, says: str) -> None:
    found, faults = read(text)
    assert found == []
    assert [fault.line for fault in faults] == [line]
    assert says in faults[0].message


def test_an_alias_that_multiplies_itself_is_refused() -> None:
    levels = [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 9)]
    _, faults = read("\n".join(["l0: &l0 [x, x, x]", *levels]))
    assert "multiplies itself" in faults[0].message


def test_what_holds_nothing_is_nothing() -> None:
    text = "%YAML 1.1\n---\n# nothing here\n---\n\n---\nkind: Pod\nmetadata: {name: a}\n...\n---\n"
    found, faults = read(text)
    assert ([m.name for m in found], faults) == (["Pod a"], [])


def test_scalars_mean_what_they_mean_to_an_api_server() -> None:
    found, _ = read("{time: 2026-01-01T00:00:00Z, at: 12:30, day: 2026-01-01, flag: off, n: 010, f: 1.5}\n")
    expected = {"time": "2026-01-01T00:00:00Z", "at": "12:30", "day": "2026-01-01", "flag": False}
    assert found[0].document == {**expected, "n": 8, "f": 1.5}


def test_a_list_is_taken_apart() -> None:
    text = """\
kind: List
items:
- kind: Pod
  metadata: {name: a}
- 5
- kind: NodeList
  apiVersion: v1
  items:
  - metadata: {name: n1}
"""
    found, faults = read(text)
    assert [(m.name, m.line) for m in found] == [("Pod a", 3), ("Node n1", 9)]
    assert found[1].document["apiVersion"] == "v1"
    assert [fault.line for fault in faults] == [5]


def test_json_is_read_and_has_lines() -> None:
    text = (
        '{"kind": "List", "items": [\n\t{"kind": "Pod",\n\t "metadata": {"name": "a"}}]}\n{"kind": "Node"}\n'
    )
    found, faults = read(text, "f.json")
    assert faults == []
    assert [m.name for m in found] == ["Pod a", "Node (no name)"]
    assert [found[0].line, found[0].line_of("metadata.name"), found[1].line] == [2, 3, 4]


def test_cut_off_json_costs_only_itself() -> None:
    found, faults = read('{"kind": "Pod"}\n{"kind": "No\n', "-")
    assert len(found) == 1
    assert [(fault.file, fault.line) for fault in faults] == [("-", 2)]


def test_yaml_that_begins_with_a_brace_is_yaml() -> None:
    found, faults = read("{kind: Pod, metadata: {name: a}}\n---\n{kind: Node}\n")
    assert ([m.name for m in found], faults) == (["Pod a", "Node (no name)"], [])


def test_a_folder_is_read_by_name_and_deeply(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("b/2.yml", "b/1.yaml", "a.yaml", "c.txt"):
        (tmp_path / name).write_text(f"{{kind: Pod, metadata: {{name: {name}}}}}")
    found, faults = read_paths([str(tmp_path)])
    assert ([m.name for m in found], faults) == (["Pod a.yaml", "Pod b/1.yaml", "Pod b/2.yml"], [])


def test_standard_input_is_called_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("kind: Pod\n"))
    assert [m.file for m in read_paths(["-"])[0]] == ["-"]
    assert read_paths(["-"], stdin="kind: Node\n")[0][0].document == {"kind": "Node"}


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty").mkdir()
    paths = [str(tmp_path / name) for name in ("nowhere.yaml", "bytes.yaml", "empty")]
    found, faults = read_paths(paths)
    assert (found, [fault.line for fault in faults]) == ([], [0, 0, 0])
    assert [fault.file for fault in sorted(faults, key=lambda f: paths.index(f.file))] == paths


def test_a_long_name_is_cut_in_messages_only() -> None:
    name = object_name({"kind": "Pod", "metadata": {"name": "x" * 10_000, "namespace": 5}})
    assert name.startswith("Pod 5/xxx")
    assert len(name) < 100
