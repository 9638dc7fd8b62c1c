"""Make from ``symbols.toml`` what must never differ from it: hooks, lookups, and a table for people.

``generate.py hooks FOLDER LIBRARY`` writes ``hooks.h`` (types, ids, bodies), ``hooks.c`` (the exported
functions) and ``names.c`` (lookups by name) for the build of libvgpu.so or libvnpu.so.
``generate.py docs FILE`` writes the table between the marks in a Markdown file. Only the standard library is
used, so that a build needs nothing but Python and a compiler.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("symbols.toml")
BEGIN = "<!-- symbols: made by shim/lib/generate.py -->"
END = "<!-- end of symbols -->"
HEADING = "/* Made by generate.py from symbols.toml. */\n"


@dataclass(frozen=True, slots=True)
class Symbol:
    """One exported function: an ABI of a base name, for one kind of default stream."""

    name: str
    base: str
    since: int
    per_thread: bool
    params: str
    body: str
    family: str
    counted: str

    @property
    def driver(self) -> str:
        """Which library has the real one."""
        return {"nv": "NVML", "ac": "ASCEND"}.get(self.name[:2], "CUDA")

    @property
    def result(self) -> str:
        """The type of its result."""
        return {"NVML": "nvmlReturn_t", "ASCEND": "aclError", "CUDA": "CUresult"}[self.driver]

    @property
    def refusal(self) -> str:
        """What its caller gets where the driver doesn't have it."""
        return {
            "NVML": "NVML_ERROR_FUNCTION_NOT_FOUND",
            "ASCEND": "ACL_ERROR_API_NOT_SUPPORT",
            "CUDA": "CUDA_ERROR_NOT_FOUND",
        }[self.driver]

    @property
    def arguments(self) -> str:
        """The names of its parameters, to pass them on."""
        if self.params == "void":
            return ""
        return ", ".join(re.split(r"[\s*]+", part)[-1] for part in self.params.split(", "))


MOVING = {"memory", "arrays", "pools", "virtual memory", "graph memory", "sharing"}
"""The families whose calls change what is held by name."""

HOOKED = {"vgpu": "symbol", "vnpu": "ascend"}
NEEDED = {"vgpu": "needed", "vnpu": "ascend_needed"}


def load(library: str = "vgpu", source: Path = SOURCE) -> tuple[Symbol, ...]:
    """All hooks of a library, the per-thread variants among them, by name."""
    entries = tomllib.loads(source.read_text())[HOOKED[library]]
    return tuple(sorted(_symbols(entries), key=lambda symbol: symbol.name))


def load_needed(library: str = "vgpu", source: Path = SOURCE) -> tuple[Symbol, ...]:
    """What a library calls and does not hook."""
    entries = tomllib.loads(source.read_text())[NEEDED[library]]
    return tuple(Symbol(e["name"], e["name"], 0, False, e["params"], "", "", "") for e in entries)


def _symbols(entries: Iterable[dict[str, str]]) -> Iterator[Symbol]:
    for entry in entries:
        name = entry["name"]
        base = entry.get("base", name)
        body = entry.get("body", name)
        rest = (entry["params"], body, entry["family"], entry["counted"])
        yield Symbol(name, base, int(entry.get("since", 0)), False, *rest)
        if "ptsz" in entry:
            yield Symbol(f"{name}_ptsz", base, int(entry["ptsz"]), True, *rest)


def hooks_h(symbols: Sequence[Symbol], needed: Sequence[Symbol]) -> str:
    """Ids, types and the bodies that somebody has to write."""
    lines = [HEADING, "#ifndef VPY_HOOKS_H", "#define VPY_HOOKS_H", ""]
    lines += [f'#include "{name}_abi.h"' for name in ("ascend", "cuda", "nvml")]
    lines += ["", "enum symbol_id {"]
    lines += [f"\tSYM_{symbol.name}," for symbol in (*symbols, *needed)]
    lines += ["\tSYM_COUNT,", f"\tSYM_HOOKED = {len(symbols)},", "};", ""]
    for symbol in (*symbols, *needed):
        lines.append(f"typedef {symbol.result} (*fn_{symbol.name})({symbol.params});")
    lines.append("")
    for body, symbol in _bodies(symbols).items():
        rest = "" if symbol.params == "void" else f", {symbol.params}"
        lines.append(f"{symbol.result} hook_{body}(fn_{symbol.name} real{rest});")
    return "\n".join([*lines, "", "#endif", ""])


def _bodies(symbols: Sequence[Symbol]) -> dict[str, Symbol]:
    """The first symbol of each body; the others must have its signature."""
    first: dict[str, Symbol] = {}
    for symbol in symbols:
        known = first.setdefault(symbol.body, symbol)
        if known.params != symbol.params:
            raise ValueError(f"{symbol.name} and {known.name} share a body and differ in their parameters")
    return first


def hooks_c(symbols: Sequence[Symbol]) -> str:
    """The exported functions: into the body, or past it where it isn't the application that calls."""
    lines = [HEADING, '#include "driver.h"', '#include "guard.h"', '#include "hooks.h"', ""]
    lines.append('#define EXPORT __attribute__((visibility("default")))')
    for symbol in symbols:
        rest = f", {symbol.arguments}" if symbol.arguments else ""
        lines += [
            "",
            f"EXPORT {symbol.result} {symbol.name}({symbol.params}) {{",
            f"\tconst fn_{symbol.name} real = DRIVER({symbol.name});",
            "\tif (real == NULL) {",
            f"\t\treturn {symbol.refusal};",
            "\t}",
            "\tstruct guard outer;",
            "\tif (!guard_enter(&outer, __builtin_frame_address(0), __builtin_return_address(0))) {",
            f"\t\treturn real({symbol.arguments});",
            "\t}",
            *(["\tguard_moves();"] if symbol.family in MOVING else []),
            f"\tconst {symbol.result} result = hook_{symbol.body}(real{rest});",
            "\tguard_leave(&outer);",
            "\treturn result;",
            "}",
        ]
    return "\n".join([*lines, ""])


def names_c(symbols: Sequence[Symbol], needed: Sequence[Symbol]) -> str:
    """What lookups by name go through, sorted by name up to SYM_HOOKED."""
    lines = [HEADING, '#include "driver.h"', '#include "hooks.h"', ""]
    lines += [f"{symbol.result} {symbol.name}({symbol.params});" for symbol in symbols]
    lines += ["", "const struct symbol symbols[SYM_COUNT] = {"]
    for symbol in symbols:
        thread = "true" if symbol.per_thread else "false"
        lines.append(
            f'\t{{"{symbol.name}", "{symbol.base}", {symbol.since}, {thread}, DRIVER_{symbol.driver}, '
            f"(void *)(uintptr_t){symbol.name}}},"
        )
    for symbol in needed:
        lines.append(f'\t{{"{symbol.name}", "{symbol.base}", 0, false, DRIVER_{symbol.driver}, NULL}},')
    return "\n".join([*lines, "};", ""])


def docs_table(source: Path = SOURCE) -> str:
    """The table of symbols in Markdown: how each is looked up and counted, and what isn't counted."""
    lines = ["| symbol | since | looked up by | how it counts |", "|---|---|---|---|"]
    family = ""
    listed = tomllib.loads(source.read_text())
    for entry in [*listed["symbol"], *listed["ascend"]]:
        if entry["family"] != family:
            family = entry["family"]
            lines.append(f"| **{family}** | | | |")
        lines.append(_row(entry))
    lines += ["", "| left alone | why |", "|---|---|"]
    for entry in listed["uncounted"]:
        names = ", ".join(f"`{name}`" for name in entry["names"])
        lines.append(f"| {names} | {entry['why']} |")
    return "\n".join(lines)


def _row(entry: dict[str, str]) -> str:
    name = entry["name"]
    names = f"`{name}`, `{name}_ptsz`" if "ptsz" in entry else f"`{name}`"
    since = int(entry.get("since", 0))
    version = f"{since // 1000}.{since % 1000 // 10}" if since else ""
    ways = "link, dlsym, dlvsym" + (", cuGetProcAddress" if since else "")
    return f"| {names} | {version} | {ways} | {entry['counted']} |"


def with_table(text: str) -> str:
    """*text* with the table of symbols put between its marks.

    Raises:
        ValueError: the marks are missing.
    """
    if BEGIN not in text or END not in text:
        raise ValueError(f"no {BEGIN} ... {END}")
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    return f"{before}{BEGIN}\n{docs_table()}\n{END}{after}"


def main(arguments: Sequence[str]) -> int:
    """Write what the first argument names; see the top of the file."""
    what, target = arguments[:2]
    if what == "docs":
        Path(target).write_text(with_table(Path(target).read_text()))
    else:
        write_hooks(Path(target), arguments[2])
    return 0


def write_hooks(folder: Path, library: str) -> None:
    """The C files that *library* is built from, besides those that people wrote."""
    symbols, needed = load(library), load_needed(library)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hooks.h").write_text(hooks_h(symbols, needed))
    (folder / "hooks.c").write_text(hooks_c(symbols))
    (folder / "names.c").write_text(names_c(symbols, needed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
