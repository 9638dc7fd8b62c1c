"""The two servers that every end-to-end case runs on: the embedded one and a real kube-apiserver."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

from tests.controlplane.controlplane import ControlPlane, end_process
from tests.controlplane.flags import CONTROLLERS, hold_port, port_of
from tests.e2e import programs

KINDS: Final = ("embedded", "real")
WAIT_S: Final = 120.0
AUDIT_POLICY: Final = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts:volcano-system"]
- level: None
"""


class Server(ABC):
    """One API server that a test may crash.

    Attributes:
        kind: ``embedded`` or ``real``.
        kubeconfig: an administrator's.
        has_garbage_collector: whether what nobody owns any more goes.
    """

    kind: str
    kubeconfig: Path
    has_garbage_collector: bool = True

    @abstractmethod
    def start(self) -> None:
        """Start it; returns when it answers."""

    @abstractmethod
    def stop(self) -> None:
        """End it and all that belongs to it."""

    @abstractmethod
    def freeze(self) -> None:
        """Let it do nothing more until it is killed; its connections stay."""

    @abstractmethod
    def crash(self) -> None:
        """Kill it as SIGKILL does; what clients wrote stays."""

    @abstractmethod
    def revive(self) -> None:
        """Start it again, at the same address, with what it held."""

    def crash_store(self) -> None:
        """Kill what keeps its objects: a process of its own, or the server itself."""
        self.crash()

    def revive_store(self) -> None:
        """Start that again."""
        self.revive()


class RealServer(Server):
    """etcd and kube-apiserver, with the garbage collector and the makers of service accounts.

    Attributes:
        audit_log: what our service accounts ask for, one JSON object a line.
    """

    kind = "real"

    def __init__(self, place: Path) -> None:
        binaries = programs.need("kube-apiserver").parent
        with_controllers = (binaries / "kube-controller-manager").is_file()
        self.place, self.audit_log = place, place / "audit.log"
        flags = ["--disable-admission-plugins=TaintNodesByCondition"]
        flags += [f"--audit-policy-file={place}/audit.yaml", f"--audit-log-path={self.audit_log}"]
        self.plane = ControlPlane(
            place, binaries, CONTROLLERS if with_controllers else "", apiserver_flags=flags
        )
        self.kubeconfig = self.plane.kubeconfig
        self.has_garbage_collector = with_controllers

    def start(self) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        (self.place / "audit.yaml").write_text(AUDIT_POLICY)
        self.plane.start()

    def stop(self) -> None:
        self.plane.stop()

    def freeze(self) -> None:
        self.plane.children["kube-apiserver"].send_signal(signal.SIGSTOP)

    def crash(self) -> None:
        self.plane.kill("kube-apiserver")

    def revive(self) -> None:
        self.plane.revive("kube-apiserver")

    def crash_store(self) -> None:
        self.plane.kill("etcd")

    def revive_store(self) -> None:
        self.plane.revive("etcd")


class EmbeddedServer(Server):
    """``python -m volcano_py.simulator.apiserver`` as a process, its data in a folder."""

    kind = "embedded"

    def __init__(self, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.place = place
        self.kubeconfig = place / "admin.kubeconfig"
        self._held = hold_port()
        self.port = port_of(self._held)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.kubeconfig.unlink(missing_ok=True)
        command = [sys.executable, "-m", "volcano_py.simulator.apiserver"]
        command += ["--port", str(self.port), "--data", str(self.place / "data")]
        command += ["--kubeconfig", str(self.kubeconfig)]
        with open(self.place / "server.log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        until = time.monotonic() + WAIT_S
        while not self.kubeconfig.exists():
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self.place / "server.log").read_text(errors="replace")[-3000:])
            time.sleep(0.02)

    def stop(self) -> None:
        if self.process is not None:
            end_process(self.process.pid, 10)
            self.process.wait()
            self.process = None
        self._held.close()

    def freeze(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def crash(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def revive(self) -> None:
        self.start()


def make(kind: str, place: Path) -> Server:
    """A server of *kind* that keeps everything in *place*; it is not started."""
    return RealServer(place) if kind == "real" else EmbeddedServer(place)
