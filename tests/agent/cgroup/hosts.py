"""Real cgroups for tests: a folder of our own in a hierarchy of this machine, laid out as a kubelet would."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from volcano_py.shim.agent.cgroup.files import Timing, processes
from volcano_py.shim.agent.cgroup.names import ContainerCgroup, Layout
from volcano_py.shim.agent.cgroup.tree import Tree, find_tree

_SYS_ADMIN: Final = 21
WAIT_S: Final = 60.0
"""Deadline of every wait; passes at once on an idle machine."""
REAL: Final = Timing(time.monotonic, time.sleep)
GATE: Final = ("/bin/sh", "-c", 'read -r _ && exec "$@"', "sh")
"""What begins a command waits for a line first, so that it begins in its cgroup."""
CONTROLLERS: Final = ("freezer", "devices")


def mounted(kind: str, option: str = "") -> Path | None:
    """Where a file system of *kind* is mounted for writing, with *option* among its options."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        found, _, options = after.split(" ", 2)
        fields = before.split()
        if found == kind and "rw" in fields[5].split(",") and (not option or option in options.split(",")):
            return Path(fields[4])
    return None


def is_host_root() -> bool:
    """Whether we may do to cgroups what an agent may: root of a user namespace may not."""
    everybody = Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]
    status = Path("/proc/self/status").read_text().splitlines()
    able = next(int(line.split()[1], 16) for line in status if line.startswith("CapEff:"))
    return os.geteuid() == 0 and everybody and bool(able >> _SYS_ADMIN & 1)


def root_of(version: int) -> tuple[Path | None, str]:
    """The folder that a ``Tree`` of *version* starts at on this machine, or why there is none."""
    if not is_host_root():
        return None, "making cgroups takes root of the host, with CAP_SYS_ADMIN"
    if version == 2:
        unified = mounted("cgroup2")
        return unified, "" if unified else "no cgroup v2 is mounted for writing"
    freezer, devices = (mounted("cgroup", controller) for controller in CONTROLLERS)
    if freezer is None or devices is None:
        return None, "cgroup v1 with freezer and devices is not mounted for writing"
    return freezer.parent, ""


def new_ids() -> tuple[str, str]:
    """A pod's UID and a container's id that nobody else has."""
    return str(uuid.uuid4()), uuid.uuid4().hex + uuid.uuid4().hex


@dataclass
class Host:
    """A node's cgroups, below a folder of the test's own."""

    tree: Tree
    name: str
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def container(self, driver: str = "systemd") -> ContainerCgroup:
        """A new container of a new pod."""
        uid, identity = new_ids()
        pods, sliced = f"{self.name}-kubepods", uid.replace("-", "_")
        above = f"{self.name}.slice/{pods}.slice/{pods}-burstable.slice/{pods}-burstable-pod{sliced}.slice"
        path = {
            "systemd": f"{above}/cri-containerd-{identity}.scope",
            "cgroupfs": f"{self.name}/kubepods/besteffort/pod{uid}/{identity}",
        }[driver]
        found = self.tree.layout.parse(path)
        assert found is not None
        for controller in CONTROLLERS:
            (self.tree.hierarchy(controller) / path).mkdir(parents=True, exist_ok=True)
        return found

    def remove(self, cgroup: ContainerCgroup) -> None:
        """*cgroup* as it is when its container ended: not there."""
        for folder in {self.tree.hierarchy(controller) / cgroup.path for controller in CONTROLLERS}:
            folder.rmdir()

    def join(self, cgroup: ContainerCgroup, pid: int, below: str = "") -> None:
        """Put process *pid* into *cgroup*, or into a cgroup *below* it."""
        for controller in CONTROLLERS:
            folder = self.tree.hierarchy(controller) / cgroup.path / below
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cgroup.procs").write_text(str(pid))

    def start(
        self, cgroup: ContainerCgroup | None, *command: str, below: str = ""
    ) -> subprocess.Popen[bytes]:
        """A process that runs *command* in *cgroup*; it waits for a line before it begins."""
        made = subprocess.Popen([*GATE, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.running.append(made)
        if cgroup is not None:
            self.join(cgroup, made.pid, below)
        tell(made, b"go\n")
        return made

    def sleeper(self, cgroup: ContainerCgroup | None, below: str = "") -> subprocess.Popen[bytes]:
        return self.start(cgroup, "sleep", "600", below=below)

    def echo(self, cgroup: ContainerCgroup) -> subprocess.Popen[bytes]:
        """A process that says back what it is told."""
        return self.start(cgroup, "cat")

    def clean(self) -> None:
        """End what was started and remove all folders."""
        for folder in self._folders():
            let_go(folder)
            for pid in processes(folder):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for made in self.running:
            made.kill()
            made.communicate(timeout=WAIT_S)
        for folder in reversed(self._folders()):
            assert eventually(lambda: removed(folder)), f"{folder} does not become empty"  # noqa: B023

    def _folders(self) -> list[Path]:
        """All of ours, from the top down."""
        names = (self.name, f"{self.name}.slice")
        tops = {self.tree.hierarchy(controller) / name: None for controller in CONTROLLERS for name in names}
        return [Path(where) for top in tops for where, _, _ in os.walk(top)]


def let_go(folder: Path) -> None:
    """Thaw *folder*, whoever froze it: the frozen processes of v1 can't even be killed."""
    for name, text in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
        if (folder / name).exists():
            (folder / name).write_text(text)


def removed(folder: Path) -> bool:
    """Whether *folder* could be removed: the kernel keeps it until its last process is all gone."""
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def eventually(true: Callable[[], bool]) -> bool:
    """Whether *true* comes to hold before the deadline."""
    return REAL.until(true, WAIT_S)


def tell(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(line)
    process.stdin.flush()


def answers(process: subprocess.Popen[bytes], within_s: float) -> bool:
    """Whether *process* says something within that time."""
    assert process.stdout is not None
    return bool(select.select([process.stdout], [], [], within_s)[0])


def heard(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


@contextlib.contextmanager
def host(root: Path) -> Iterator[Host]:
    """A node with no pods yet; gone afterwards, whatever ran there."""
    name = f"vpytest{uuid.uuid4().hex[:10]}"
    made = Host(find_tree(root, layout=Layout(roots=(name,))), name)
    try:
        yield made
    finally:
        made.clean()
