"""Reading manifests: every document with the file and line it came from.

A fault in one document is that document's fault: those before and after it are read all the same.
JSON is read as YAML; a ``List`` is taken apart; times stay text, as the API server treats them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

STDIN: Final = "-"
SUFFIXES: Final = (".yaml", ".yml", ".json")
_SEPARATOR: Final = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
_STEP: Final = re.compile(r"\[([^\]]+)\]|([^.\[\]]+)")
_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"


class _Loader(yaml.CSafeLoader):
    """YAML without times: an unquoted 2026-01-01T00:00:00Z stays text."""


_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != _TIMESTAMP]
    for first, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document.

    Attributes:
        document: as a mapping.
        file: where it was read, ``-`` for standard input.
        line: its first line, from 1.
        node: its YAML tree, for finding the line of a field.
    """

    document: dict[str, Any]
    file: str
    line: int
    node: yaml.Node
    offset: int = 0

    @property
    def name(self) -> str:
        """The object as people name it: ``Pod ml/a``."""
        return object_name(self.document)

    def line_of(self, path: str) -> int:
        """The line of field *path* (``spec.containers[0].resources``), or of its nearest parent."""
        node, line = self.node, self.line
        for bracket, plain in _STEP.findall(path):
            below = _child(node, bracket or plain)
            if below is None:
                break
            node, line = below, below.start_mark.line + 1 + self.offset
        return line


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something that could not be read."""

    file: str
    line: int
    message: str


Read = tuple[list[Manifest], list[Unreadable]]


def object_name(document: dict[str, Any]) -> str:
    """``Kind namespace/name`` as far as *document* says."""
    meta = document.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    name = str(meta.get("name") or "(no name)")
    space = meta.get("namespace")
    return f"{document.get('kind') or 'object'} {space}/{name}" if space else f"{document.get('kind') or 'object'} {name}"


def read_paths(paths: Iterable[str]) -> Read:
    """All documents of files, folders (their .yaml, .yml and .json files by name) and ``-``."""
    manifests: list[Manifest] = []
    faults: list[Unreadable] = []
    for path in paths:
        for file in _files(path, faults):
            try:
                text = sys.stdin.read() if file == STDIN else Path(file).read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                faults.append(Unreadable(file, 0, f"can't be read: {error}"))
                continue
            found, wrong = read_text(text, file)
            manifests += found
            faults += wrong
    return manifests, faults


def read_text(text: str, file: str) -> Read:
    """All documents in *text*, which came from *file*."""
    manifests: list[Manifest] = []
    faults: list[Unreadable] = []
    for chunk, offset in _chunks(text):
        try:
            manifests += _documents(chunk, file, offset)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = offset + (mark.line if mark is not None else 0) + 1
            what = getattr(error, "problem", None) or str(error)
            faults.append(Unreadable(file, line, f"not valid YAML: {what} (is the file cut off?)"))
        except ValueError as error:
            faults.append(Unreadable(file, offset + 1, str(error)))
    return manifests, faults


def _files(path: str, faults: list[Unreadable]) -> list[str]:
    if path == STDIN:
        return [STDIN]
    here = Path(path)
    if here.is_dir():
        found = sorted(str(file) for file in here.iterdir() if file.suffix in SUFFIXES)
        if not found:
            faults.append(Unreadable(path, 0, "the folder holds no .yaml, .yml or .json file"))
        return found
    if not here.exists():
        faults.append(Unreadable(path, 0, "there is no such file or folder"))
        return []
    return [path]


def _chunks(text: str) -> Iterator[tuple[str, int]]:
    """The documents of *text* as text, each with the number of lines before it."""
    start = 0
    for separator in [*_SEPARATOR.finditer(text), None]:
        end = len(text) if separator is None else separator.start()
        chunk = text[start:end]
        if chunk.strip():
            yield chunk, text.count("\n", 0, start)
        if separator is not None:
            start = separator.end()


def _documents(chunk: str, file: str, offset: int) -> list[Manifest]:
    loader = _Loader(chunk)
    try:
        node = loader.get_single_node()
        if node is None:
            return []
        document = loader.construct_document(node)
    finally:
        loader.dispose()
    if document is None:
        return []
    if not isinstance(document, dict):
        raise ValueError(f"expected an object (a mapping with apiVersion and kind), got {type(document).__name__}")
    line = node.start_mark.line + 1 + offset
    if not str(document.get("kind", "")).endswith("List") or not isinstance(document.get("items"), list):
        return [Manifest(document, file, line, node, offset)]
    items = _child(node, "items")
    nodes = items.value if isinstance(items, yaml.SequenceNode) else []
    return [
        Manifest(item, file, at.start_mark.line + 1 + offset, at, offset)
        for item, at in zip(document["items"], nodes, strict=False)
        if isinstance(item, dict)
    ]


def _child(node: yaml.Node, step: str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if getattr(key, "value", None) == step), None)
    if isinstance(node, yaml.SequenceNode) and step.isdigit() and int(step) < len(node.value):
        return node.value[int(step)]  # type: ignore[no-any-return]
    return None
