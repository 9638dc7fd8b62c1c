"""A real card, where there is one: its name and memory, and programs that run in a slice of it."""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.shim.harness import BUILT
from tests.shim.scripts import lines_of
from volcano_py.shim.agent import region

MIB = 1 << 20
PYTHON = os.environ.get("GPU_PYTHON", sys.executable)
"""The interpreter that has PyTorch; ours has not."""


@dataclass(frozen=True, slots=True)
class RealCard:
    """The first card of this machine; memory in MiB."""

    uuid: str
    memory_mib: int


def query(fields: str, environment: dict[str, str] | None = None) -> list[str]:
    """What nvidia-smi says of the first card, or nothing where there is none."""
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0].split(", ") if done.returncode == 0 and done.stdout else []


def find_card() -> RealCard | None:
    """The first card, if any."""
    found = query("uuid,memory.total")
    return RealCard(found[0], int(found[1])) if len(found) == 2 else None


def driver_major() -> int:
    """The version of CUDA that the driver is of: 12 for 12.4."""
    version = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    return version.value // 1000


def works(script: str) -> bool:
    """Whether PYTHON runs *script* without an error."""
    return subprocess.run([PYTHON, "-c", script], capture_output=True, check=False).returncode == 0


def has(module: str) -> bool:
    """Whether PYTHON has *module*."""
    return works(f"import {module}")


def has_torch() -> bool:
    """Whether PYTHON has a PyTorch that sees a card."""
    return works("import torch; torch.zeros(1, device='cuda')")


@dataclass(frozen=True, slots=True)
class RealSlice:
    """A slice of the card for programs that run here."""

    card: RealCard
    region: Path

    def environment(self, **changes: str) -> dict[str, str]:
        """The environment of programs in the slice."""
        return {**os.environ, "LD_PRELOAD": str(BUILT), "VOLCANO_PY_REGION": str(self.region), **changes}

    def python(self, script: str, *, preload: bool = True, **changes: str) -> list[str]:
        """The lines that *script* prints in the slice, or beside it."""
        return self.run([PYTHON, "-c", script], preload=preload, **changes)

    def run(self, command: Sequence[str | Path], *, preload: bool = True, **changes: str) -> list[str]:
        """The lines that *command* prints in the slice, or beside it."""
        environment = self.environment(**changes)
        if not preload:
            del environment["LD_PRELOAD"]
        return lines_of(command, environment)


def make_slice(folder: Path, card: RealCard, memory_mib: int, cores: int = 0) -> RealSlice:
    """A region for *memory_mib* and *cores* percent of *card*."""
    region.create(folder / "region", [region.DeviceLimit(card.uuid, memory_mib * MIB, cores)])
    return RealSlice(card, folder / "region")
