"""``python -m volcano_py.simulator.apiserver``: the server as a process, until it is interrupted."""

from __future__ import annotations

import argparse
import asyncio
import signal
from pathlib import Path

from volcano_py.simulator.apiserver.serving import EmbeddedServer


def main() -> None:
    """Serve; the kubeconfig is written when requests are answered."""
    arguments = _parser().parse_args()
    asyncio.run(_serve(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="An API server for trying and testing, on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument(
        "--data", "--data-dir", dest="data", type=Path, default=None, help="folder to keep objects in"
    )
    parser.add_argument("--kubeconfig", type=Path, required=True, help="file to write")
    parser.add_argument("--no-crds", action="store_true", help="leave out this project's definitions")
    parser.add_argument(
        "--sync",
        choices=("os", "each"),
        default="os",
        help="each: changes are on disk before they are answered",
    )
    return parser


async def _serve(arguments: argparse.Namespace) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    server = EmbeddedServer(
        data_dir=arguments.data,
        port=arguments.port,
        crds=not arguments.no_crds,
        sync=arguments.sync,
    )
    async with server:
        server.write_kubeconfig(arguments.kubeconfig)
        await stop.wait()


if __name__ == "__main__":
    main()
