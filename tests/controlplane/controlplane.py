#!/usr/bin/env python3
"""A real control plane on 127.0.0.1 for integration tests: etcd, kube-apiserver, on request the other two.

    controlplane.py up DIR [--controllers] [--scheduler] [--bin BIN]   start; prints the kubeconfig's path
    controlplane.py down DIR                                           stop what ``up`` started there

DIR holds certificates, logs and etcd's data; give it a folder on a tmpfs, empty or new. In tests use
``ControlPlane`` as a context manager. Needs ``openssl`` and the programs that ``build.sh`` makes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
if not __package__:  # started as a script
    sys.path.insert(0, str(HERE.parents[1]))

from tests.controlplane.certificates import make_certificates, write_kubeconfig  # noqa: E402 - see above
from tests.controlplane.flags import (  # noqa: E402 - see above
    CONTROLLERS,
    HOST,
    apiserver_flags,
    client_flags,
    controller_flags,
    etcd_flags,
    hold_port,
    port_of,
)


@dataclass
class ControlPlane:
    """One etcd and one kube-apiserver, with certificates of their own, alive between ``start`` and ``stop``.

    Attributes:
        folder: certificates, logs, data.
        programs: where the binaries are.
        controllers: ``--controllers`` of kube-controller-manager; empty: not started.
        scheduler: also start kube-scheduler, for pods named default-scheduler.
        apiserver_flags: appended, so they win.
        commands: name of a program -> its command line, once it was started.
        children: those of this process, by name.
        ports: those of the programs, held until the end.
    """

    folder: Path
    programs: Path
    controllers: str = ""
    scheduler: bool = False
    apiserver_flags: list[str] = field(default_factory=list)
    commands: dict[str, list[str]] = field(default_factory=dict)
    children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    ports: list[socket.socket] = field(default_factory=list)

    def __enter__(self) -> ControlPlane:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def kubeconfig(self) -> Path:
        """An administrator's."""
        return self.folder / "admin.kubeconfig"

    def start(self, timeout_s: float = 300) -> None:
        """Return once /readyz says ok. Raises RuntimeError with the log's end if a program dies first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        make_certificates(self.folder)
        self.ports = [hold_port() for _ in range(5)]
        self.etcd, peer, self.port, controllers, scheduler = map(port_of, self.ports)
        for user in ("admin", "kube-controller-manager", "kube-scheduler"):
            write_kubeconfig(self.folder, user, f"https://{HOST}:{self.port}")
        self.commands["etcd"] = etcd_flags(self.folder, self.etcd, peer)
        self.commands["kube-apiserver"] = [
            *apiserver_flags(self.folder, self.etcd, self.port),
            *self.apiserver_flags,
        ]
        self.revive("etcd", timeout_s)
        self.revive("kube-apiserver", timeout_s)
        if self.controllers:
            self.commands["kube-controller-manager"] = controller_flags(
                self.folder, self.controllers, controllers
            )
            self.revive("kube-controller-manager")
        if self.scheduler:
            self.commands["kube-scheduler"] = client_flags(self.folder, "kube-scheduler", scheduler)
            self.revive("kube-scheduler")

    def revive(self, name: str, timeout_s: float = 300) -> None:
        """Start *name* with the flags and ports it has, and wait until it is ready."""
        with open(self.folder / f"{name}.log", "ab") as log:
            self.children[name] = subprocess.Popen(
                [self.programs / name, *self.commands[name]], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        self._note()
        if name == "etcd":
            self._wait(f"http://{HOST}:{self.etcd}/health", timeout_s)
        if name == "kube-apiserver":
            # Anonymous may read /readyz: RBAC's default roles say so, and they exist once it is ready.
            self._wait(f"https://{HOST}:{self.port}/readyz", timeout_s)

    def kill(self, name: str) -> None:
        """End *name* as a crash would: SIGKILL."""
        child = self.children.pop(name)
        child.kill()
        child.wait()
        self._note()

    def stop(self) -> None:
        """Ask the programs to end, last started first; kill those that take more than 10 s."""
        for child in reversed(self.children.values()):
            end_process(child.pid, 10)
            child.wait()
        self.children.clear()
        for held in self.ports:
            held.close()
        self.ports.clear()
        (self.folder / "pids.json").unlink(missing_ok=True)

    def _note(self) -> None:
        pids = {name: child.pid for name, child in self.children.items()}
        (self.folder / "pids.json").write_text(json.dumps(pids))

    def _wait(self, url: str, timeout_s: float) -> None:
        tls = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            for name, child in self.children.items():
                if child.poll() is not None:
                    end = (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]
                    raise RuntimeError(f"{name} ended:\n{end}")
            try:
                with urllib.request.urlopen(url, context=tls, timeout=10):
                    return
            except urllib.error.HTTPError as error:
                error.close()  # it is an answer, with a connection of its own
            except OSError:
                pass
            time.sleep(0.05)
        raise RuntimeError(f"{url} not ready after {timeout_s} s; see the logs in {self.folder}")


def is_alive(pid: int) -> bool:
    """Whether *pid* runs; a zombie doesn't."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def end_process(pid: int, grace_s: float) -> None:
    """SIGTERM, and SIGKILL after *grace_s*."""
    for signum, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5)):
        until = time.monotonic() + wait_s
        if is_alive(pid):
            os.kill(pid, signum)
        while is_alive(pid) and time.monotonic() < until:
            time.sleep(0.05)


def main() -> None:
    """Start or stop a control plane from a shell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=["up", "down"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bin", type=Path, default=HERE / "bin")
    parser.add_argument("--controllers", nargs="?", const=CONTROLLERS, default="")
    parser.add_argument("--scheduler", action="store_true")
    parser.add_argument("--apiserver-flag", action="append", default=[])
    args = parser.parse_args()
    folder = args.folder.resolve()
    if args.verb == "down":
        pids = json.loads((folder / "pids.json").read_text())
        for pid in reversed(pids.values()):
            end_process(pid, 10)
        (folder / "pids.json").unlink()
        return
    plane = ControlPlane(folder, args.bin.resolve(), args.controllers, args.scheduler, args.apiserver_flag)
    plane.start()
    sys.stdout.write(f"{plane.kubeconfig}\n")


if __name__ == "__main__":
    main()
