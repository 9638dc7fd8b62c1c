"""Compiles the .proto files beside this one: ``python -m volcano_py.shim.agent.wire.generate``.

Needs ``grpcio-tools``, a development dependency; what it makes is committed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from grpc_tools import protoc

HERE: Final = Path(__file__).resolve().parent
PACKAGE: Final = "volcano_py/shim/agent/wire"
NAMES: Final = ("deviceplugin", "podresources")
_WELL_KNOWN: Final = Path(protoc.__file__).parent / "_proto"


def generate(out: Path) -> None:
    """Write messages and their annotations below *out*, in the folders of their package.

    Raises ``RuntimeError`` where the compiler refuses.
    """
    for name in NAMES:
        status = protoc.main(
            [
                "protoc",
                f"--proto_path={PACKAGE}={HERE}",
                f"--proto_path={_WELL_KNOWN}",
                f"--python_out={out}",
                f"--pyi_out={out}",
                f"{PACKAGE}/{name}.proto",
            ]
        )
        if status:
            raise RuntimeError(f"protoc ended with status {status} on {name}.proto")


if __name__ == "__main__":
    # The folders of the package are those of the import name: typings/volcano_py leads here.
    generate(HERE.parents[2] / "typings")
