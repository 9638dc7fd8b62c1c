"""CUDA runtimes and the forms that programs have them in: a file, one in its own namespace, a part of them.

NVIDIA's are those of the development packages (docs/dependencies.md), the stub's is in stub/runtime.c.
"""

from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from tests.shim.stub import build

FORMS = ("shared", "private", "static")


@dataclass(frozen=True, slots=True)
class Runtime:
    """A runtime: its shared library, and what a program is linked with to have it inside."""

    name: str
    library: Path
    parts: tuple[Path, ...]

    def program(self, source: str, form: str) -> list[str | Path]:
        """The command that runs *source*, a C program of programs/, with the runtime in *form*."""
        program = build.build() / f"{Path(source).stem}-{form}-{self.name}"
        if form == "static":
            build.compile_to(program, [build.PROGRAMS / source, *self.parts], "-DLINKED")
            return [program]
        build.compile_to(program, [build.PROGRAMS / source])
        return [program, self.library, form]


def nvidia(major: int) -> Runtime:
    """NVIDIA's runtime of CUDA 12 or 13."""
    files = metadata.files({12: "nvidia-cuda-runtime-cu12", 13: "nvidia-cuda-runtime"}[major]) or []
    found = {file.name: Path(str(file.locate())) for file in files}
    return Runtime(f"cuda{major}", found[f"libcudart.so.{major}"], (found["libcudart_static.a"],))


def stub() -> Runtime:
    """The stub's runtime."""
    parts = tuple(build.SOURCES / name for name in build.LIBRARIES["runtime/libcudart.so.12"])
    return Runtime("stub", build.OUTPUT / "runtime" / "libcudart.so.12", parts)
