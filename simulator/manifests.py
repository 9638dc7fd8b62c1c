"""Reading manifests: every object with the file and line it was written at.

A fault in one document is that document's fault: those before and after it are read all the same. A
``List`` is taken apart. Scalars mean what they mean to an API server: times stay text, ``12:30`` is text.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import yaml

Document = dict[str, Any]

STDIN: Final = "-"
SUFFIXES: Final = (".yaml", ".yml", ".json")
ALIASED_VALUES: Final = 100_000
"""Values that a short document may hold. Without aliases there can't be more of them than characters."""
_BOUNDARY: Final = re.compile(r"^---(?=\s|\Z)", re.MULTILINE)
_EMPTY: Final = re.compile(r"(?:\s*(?:#[^\n]*|%[^\n]*|---|\.\.\.)?(?:\n|\Z))*")
_STEP: Final = re.compile(r"\[([^\]]+)\]|([^.\[\]]+)")
_SAYS_KIND: Final = re.compile(r"""^\s*(?:\{\s*)?["']?kind["']?:\s*["']?(\w+)""", re.MULTILINE)
_SAYS_META: Final = re.compile(r"""["']?metadata["']?:(.*?)(?:["']?(?:spec|status)["']?:|\Z)""", re.DOTALL)
_SAYS_NAME: Final = re.compile(r"""\b(name|namespace)["']?:[ \t]*["']?([^\s"',{}\[\]]+)""")
_LONGEST_NAME: Final = 80


class _Loader(yaml.CSafeLoader):
    """YAML as an API server reads it: no times, no numbers to the base of 60."""


def _resolvers() -> dict[Any, list[tuple[str, re.Pattern[str]]]]:
    times, whole = "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:int"
    number = "tag:yaml.org,2002:float"
    plain = {
        whole: re.compile(r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)\Z"),
        number: re.compile(r"[-+]?(?:(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?)\Z"),
    }
    return {
        first: [(tag, plain.get(tag, pattern)) for tag, pattern in pairs if tag != times]
        for first, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.yaml_implicit_resolvers = _resolvers()


@dataclass(frozen=True, slots=True)
class Text:
    """A part of a file that is read as one.

    Attributes:
        before: lines of the file before it.
    """

    file: str
    text: str
    before: int = 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object as it was written.

    Attributes:
        document: the object.
        source: where it stands.
        number: position of its document in *source*.
        path: where it is in that document, as field path (``items[3]``).
    """

    document: Document
    source: Text
    number: int = 0
    path: str = ""

    @property
    def file(self) -> str:
        """File it was read from, ``-`` for standard input."""
        return self.source.file

    @property
    def line(self) -> int:
        """Its first line, from 1."""
        return self.line_of("")

    @property
    def name(self) -> str:
        """The object as people name it: ``Pod ml/a``."""
        return object_name(self.document)

    def line_of(self, field: str) -> int:
        """The line of *field* (``spec.containers[0].resources``), or of its nearest parent."""
        nodes = _nodes(self.source.text)
        line = self.source.before + 1
        if self.number >= len(nodes):
            return line
        node = nodes[self.number]
        line = self.source.before + node.start_mark.line + 1
        for bracket, plain in _STEP.findall(f"{self.path}.{field}"):
            found = _child(node, bracket or plain)
            if found is None:
                break
            node, at = found
            line = self.source.before + at + 1
        return line


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something that could not be read.

    Attributes:
        line: 0 is the file as a whole.
        name: the object it seems to be, ``Kind namespace/name``; "" where nobody can tell.
    """

    file: str
    line: int
    message: str
    name: str = ""


Read = tuple[list[Manifest], list[Unreadable]]


def object_name(document: Document) -> str:
    """``Kind namespace/name`` as far as *document* says, cut to a length that fits a message."""
    meta = document.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    name = _cut(meta.get("name") or meta.get("generateName") or "(no name)")
    space = meta.get("namespace")
    kind = _cut(document.get("kind") or "object")
    return f"{kind} {_cut(space)}/{name}" if space else f"{kind} {name}"


def read_paths(paths: Iterable[str], stdin: str | None = None) -> Read:
    """All objects of files, of folders (all .yaml, .yml and .json files below, by name) and of ``-``.

    Args:
        paths: what people typed.
        stdin: what ``-`` holds; None reads standard input.
    """
    manifests: list[Manifest] = []
    faults: list[Unreadable] = []
    named = list(paths)
    for file in [file for path in named for file in _files(path, faults)]:
        try:
            text = _content(file, stdin)
        except OSError as error:
            faults.append(Unreadable(file, 0, f"can't be read: {error.strerror or error}"))
        except UnicodeDecodeError as error:
            faults.append(Unreadable(file, 0, f"is no text in UTF-8 (byte {error.start} is not)"))
        else:
            found, wrong = read_text(text, file)
            manifests += found
            faults += wrong
            if not found and not wrong and file in named:
                faults.append(Unreadable(file, 0, "holds no object"))
    return manifests, faults


def read_text(text: str, file: str) -> Read:
    """All objects in *text*, which came from *file*."""
    manifests: list[Manifest] = []
    faults: list[Unreadable] = []
    for part in _parts(text.removeprefix("\ufeff"), file):
        try:
            found = _documents(part, faults)
        except yaml.YAMLError as error:
            faults.append(_syntax(part, error))
        except RecursionError:
            faults.append(Unreadable(file, part.before + 1, "is nested too deeply to be read"))
        else:
            for manifest in found:
                _take(manifest, manifests, faults)
    return manifests, faults


# -- files --------------------------------------------------------------------------------------


def _files(path: str, faults: list[Unreadable]) -> list[str]:
    if path == STDIN:
        return [STDIN]
    here = Path(path)
    if not here.is_dir():
        if here.exists():
            return [path]
        faults.append(Unreadable(path, 0, "there is no such file or folder"))
        return []
    found = sorted(str(file) for file in here.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if not found:
        faults.append(Unreadable(path, 0, f"the folder holds no file that ends in {', '.join(SUFFIXES)}"))
    return found


def _content(file: str, stdin: str | None) -> str:
    if file != STDIN:
        return Path(file).read_text("utf-8")
    return sys.stdin.read() if stdin is None else stdin


# -- text into documents ------------------------------------------------------------------------


def _parts(text: str, file: str) -> Iterator[Text]:
    """*text* cut before every line that begins a document; what holds nothing is left out."""
    starts = [0, *(found.start() for found in _BOUNDARY.finditer(text) if found.start())]
    before = 0
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        if not _EMPTY.fullmatch(part):
            yield Text(file, part, before)
        before += part.count("\n")


def _documents(part: Text, faults: list[Unreadable]) -> list[Manifest]:
    """What *part* holds: JSON where it begins as such, else YAML."""
    body = part.text.removeprefix("---").lstrip()
    if body[:1] in ("{", "["):
        found: list[Manifest] = []
        fault = _json(part, part.text.index(body), found)
        if fault is None:
            return found
        if found or part.file.endswith(".json"):
            faults.append(fault)
            return found
    return [Manifest(each, part, at) for at, each in enumerate(yaml.load_all(part.text, _Loader))]


def _json(part: Text, at: int, found: list[Manifest]) -> Unreadable | None:
    """Read the JSON texts of *part* from *at* on into *found*, up to the first fault."""
    decoder = json.JSONDecoder()
    while at < len(part.text):
        if part.text[at].isspace():
            at += 1
            continue
        try:
            document, end = decoder.raw_decode(part.text, at)
        except json.JSONDecodeError as error:
            hint = "" if part.text[error.pos :].strip() else "; it seems to be cut off here"
            line, name = part.before + error.lineno, _seems_to_be(part.text[at : error.pos])
            return Unreadable(part.file, line, f"is not valid JSON: {error.msg.lower()}{hint}", name)
        before = part.before + part.text.count("\n", 0, at)
        found.append(Manifest(document, Text(part.file, part.text[at:end], before)))
        at = end
    return None


def _take(manifest: Manifest, manifests: list[Manifest], faults: list[Unreadable]) -> None:
    """Add the object, or those of the list, that *manifest* is; what is wrong goes to *faults*."""
    document: Any = manifest.document
    wrong = ""
    if document is None:
        return
    if not isinstance(document, dict):
        wrong = f"is {_what(document)}, not an object (a mapping with apiVersion, kind and metadata)"
    elif not manifest.path and not _is_bounded(document, max(ALIASED_VALUES, len(manifest.source.text))):
        wrong = "holds an alias that multiplies itself without end"
    if wrong:
        faults.append(Unreadable(manifest.file, manifest.line, wrong))
        return
    kind, items = document.get("kind"), document.get("items")
    if not isinstance(kind, str) or not kind.endswith("List") or not isinstance(items, list):
        manifests.append(manifest)
        return
    # Items of a PodList needn't say that they are Pods.
    said = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    for position, item in enumerate(items):
        whole = {**said, **item} if isinstance(item, dict) and kind != "List" else item
        path = f"{manifest.path}.items[{position}]"
        _take(Manifest(whole, manifest.source, manifest.number, path), manifests, faults)


def _is_bounded(document: Document, most: int) -> bool:
    """Whether *document* holds at most *most* values; aliases can make it endless."""
    left, count = [document], 0
    while left:
        value: Any = left.pop()
        if isinstance(value, dict):
            left.extend(value.values())
            count += len(value)
        elif isinstance(value, list):
            left.extend(value)
            count += len(value)
        if count > most:
            return False
    return True


def _syntax(part: Text, error: yaml.YAMLError) -> Unreadable:
    """What is wrong with the YAML of *part*, at the line where it is."""
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
    if mark is None:
        return Unreadable(part.file, part.before + 1, f"is not valid YAML: {what}")
    rest = "".join(part.text.splitlines(keepends=True)[mark.line :])[mark.column :]
    hint, line = "", mark.line + 1
    if rest.startswith("\t"):
        hint = "; indent with spaces, not with tabs"
    elif not rest.strip():
        hint, line = "; it seems to be cut off here", part.text.rstrip().count("\n") + 1
    name = _seems_to_be("".join(part.text.splitlines(keepends=True)[:line]))
    return Unreadable(part.file, part.before + line, f"is not valid YAML: {what}{hint}", name)


def _seems_to_be(text: str) -> str:
    """The object that *text*, which nobody can read to its end, begins with: its first kind and names."""
    kind = _SAYS_KIND.search(text)
    meta = _SAYS_META.search(text)
    if kind is None:
        return ""
    found = {} if meta is None else dict(reversed(_SAYS_NAME.findall(meta[1])))
    return object_name({"kind": kind[1], "metadata": found})


# -- lines --------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _nodes(text: str) -> list[yaml.Node]:
    """The YAML trees of *text*; none where it can't be read as YAML (JSON that uses tabs can)."""
    try:
        return list(yaml.compose_all(text.replace("\t", " "), _Loader))
    except yaml.YAMLError:
        return []


def _child(node: yaml.Node, step: str) -> tuple[yaml.Node, int] | None:
    """What *node* holds under *step*, and the line where that begins."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if getattr(key, "value", None) == step:
                return value, key.start_mark.line
    elif isinstance(node, yaml.SequenceNode) and step.isdigit() and int(step) < len(node.value):
        found = node.value[int(step)]
        return found, found.start_mark.line
    return None


def _what(value: object) -> str:
    if isinstance(value, list):
        return "a list"
    return f'the text "{_cut(value)}"' if isinstance(value, str) else f"the value {_cut(value)}"


def _cut(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 3]}..."
