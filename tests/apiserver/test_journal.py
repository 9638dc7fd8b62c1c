"""What is kept on disk: a server killed at any point comes back with every change that it answered."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apiserver.test_store import document
from volcano_py.client.api import Api
from volcano_py.simulator.apiserver import serving
from volcano_py.simulator.apiserver.journal import DataDamagedError, DataInUseError, Journal, Snapshot
from volcano_py.simulator.apiserver.serving import EmbeddedServer
from volcano_py.simulator.apiserver.store import Store

ROUNDS = 12


def opened(folder: Path, floor_bytes: int = 1 << 20) -> tuple[Journal, Store]:
    journal = Journal(folder, floor_bytes=floor_bytes)
    return journal, journal.open()


def content(store: Store) -> dict[str, bytes]:
    return {f"{item.namespace}/{item.name}": item.body for item in store.items("things")}


@given(
    st.lists(st.tuples(st.sampled_from(["a/x", "a/y", "b/z"]), st.integers(0, 9)), max_size=40),
    st.integers(1, 2000),
)
def test_what_was_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], floor_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    journal, store = opened(folder, floor_bytes)
    for key, value in steps:
        namespace, _, name = key.partition("/")
        if value == 0 and store.get("things", namespace, name) is not None:
            store.remove("things", namespace, name)
        else:
            store.put("things", document(key, value))
        if journal.is_large:
            journal.condense(store)
        if value == 9:
            journal.close()
            version, kept = store.version, content(store)
            journal, store = opened(folder, floor_bytes)
            assert (store.version, content(store)) == (version, kept)
    journal.close()


def test_watches_can_go_on_after_a_restart(tmp_path: Path) -> None:
    journal, store = opened(tmp_path)
    store.put("things", document("a/x", 1))
    seen = store.version
    store.put("things", document("a/y", 2))
    journal.close()
    journal, store = opened(tmp_path)
    assert [change.item.name for change in store.changes_since("things", seen)] == ["y"]
    journal.close()


@pytest.mark.parametrize("cut", [1, 7, 30])
def test_unfinished_last_record_is_cut_off(tmp_path: Path, cut: int) -> None:
    journal, store = opened(tmp_path)
    store.put("things", document("a/x", 1))
    before = content(store)
    store.put("things", document("a/y", 2))
    journal.close()
    log = next(tmp_path.glob("log-*"))
    os.truncate(log, log.stat().st_size - cut)
    journal, store = opened(tmp_path)
    assert content(store) == before
    store.put("things", document("a/z", 3))
    journal.close()
    journal, store = opened(tmp_path)
    assert set(content(store)) == {"a/x", "a/z"}
    journal.close()


def test_damage_in_the_middle_is_not_passed_over(tmp_path: Path) -> None:
    journal, store = opened(tmp_path)
    for number in range(3):
        store.put("things", document(f"a/n{number}", number))
    journal.close()
    log = next(tmp_path.glob("log-*"))
    data = bytearray(log.read_bytes())
    data[20] ^= 0xFF
    log.write_bytes(data)
    journal = Journal(tmp_path)
    with pytest.raises(DataDamagedError):
        journal.open()
    journal.close()


def test_leftovers_of_a_killed_condensing_are_removed(tmp_path: Path) -> None:
    journal, store = opened(tmp_path)
    store.put("things", document("a/x", 1))
    old_log = next(tmp_path.glob("log-*"))
    old = old_log.read_bytes()
    store.put("things", document("a/y", 2))
    journal.condense(store)
    kept = content(store)
    journal.close()
    # Killed after the snapshot got its name and before the old log went; another was never finished.
    old_log.write_bytes(old)
    (tmp_path / "snapshot-00000000000000000099.tmp").write_bytes(b"half")
    journal, store = opened(tmp_path)
    assert content(store) == kept
    assert not old_log.exists()
    assert {path.name.partition("-")[0] for path in tmp_path.iterdir()} == {"lock", "log", "snapshot"}
    assert len(list(tmp_path.iterdir())) == 3
    journal.close()


@pytest.mark.parametrize("step", ["open", "fsync", "rename"])
def test_a_snapshot_that_fails_costs_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    journal, store = opened(tmp_path)
    store.put("things", document("a/x", 1))

    open_any = os.open

    def fail(path: object, *how: int) -> int:
        if step == "open" and "log-" not in str(path):
            return open_any(str(path), *how)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        owner: object = Path if step == "rename" else os
        broken.setattr(owner, step, fail)
        with pytest.raises(OSError, match="No space left"):
            journal.condense(store)
    store.put("things", document("a/y", 2))
    kept = content(store)
    journal.close()
    journal, store = opened(tmp_path)
    assert content(store) == kept
    journal.condense(store)
    journal.close()


@pytest.mark.parametrize("written", [False, True])
def test_changes_made_while_a_snapshot_is_written_are_kept(tmp_path: Path, *, written: bool) -> None:
    """Killed then, there are two logs, one after the other; the next server goes on with both."""
    journal, store = opened(tmp_path)
    for name in ("a/x", "a/y"):
        store.put("things", document(name, 1))
    snapshot = journal.begin(store)
    assert snapshot is not None
    store.put("things", document("a/x", 2))
    store.remove("things", "a", "y")
    if written:
        snapshot.write()
    version, kept = store.version, content(store)
    journal.close()
    journal, store = opened(tmp_path)
    assert (store.version, content(store)) == (version, kept)
    store.put("things", document("a/z", 3))
    journal.condense(store)
    version, kept = store.version, content(store)
    assert len(list(tmp_path.iterdir())) == 3
    journal.close()
    journal, store = opened(tmp_path)
    assert (store.version, content(store)) == (version, kept)
    journal.close()


def test_a_server_answers_while_a_snapshot_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, release = threading.Event(), threading.Event()
    sound = Snapshot.write

    def slow(self: Snapshot) -> None:
        release.wait(60)
        sound(self)
        written.set()

    monkeypatch.setattr(Snapshot, "write", slow)
    monkeypatch.setattr(Journal, "is_large", True)
    monkeypatch.setattr(serving, "_CONDENSE_EVERY_S", 0.01)

    async def ask() -> None:
        async with EmbeddedServer(data_dir=tmp_path) as server:
            server.write_kubeconfig(tmp_path / "kubeconfig")
            async with await Api.connect(str(tmp_path / "kubeconfig")) as api:
                while len(list((tmp_path / "objects").glob("log-*"))) < 2:
                    await asyncio.sleep(0.01)
                await api.post("/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": "a"}})
                assert not written.is_set()
                release.set()

    asyncio.run(ask())


def test_nobody_else_reads_what_is_kept(tmp_path: Path) -> None:
    journal, store = opened(tmp_path)
    store.put("secrets", document("a/x", 1))
    journal.condense(store)
    journal.close()
    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}


def test_two_servers_do_not_share_a_folder(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path)
    with pytest.raises(DataInUseError):
        Journal(tmp_path)
    journal.close()


WRITER = """
import sys
from pathlib import Path
from tests.apiserver.test_store import document
from volcano_py.simulator.apiserver.journal import Journal

journal = Journal(Path(sys.argv[1]), floor_bytes=2000)
store = journal.open()
snapshot = None
print("open", flush=True)
number = 0
while True:
    number += 1
    key = f"a/n{number % 7}"
    if number % 5 == 0 and store.get("things", "a", f"n{number % 7}") is not None:
        store.remove("things", "a", f"n{number % 7}")
    else:
        store.put("things", document(key, number))
    print(store.version, flush=True)
    if snapshot is not None and number % 3 == 0:
        snapshot.write()
        journal.finish(snapshot)
        snapshot = None
    elif snapshot is None and journal.is_large:
        snapshot = journal.begin(store)
"""


def test_killed_at_any_point_it_keeps_what_it_answered(tmp_path: Path) -> None:
    dice = random.Random(4)
    last = 1
    for _ in range(ROUNDS):
        answered = killed_writer(tmp_path, dice.randrange(1, 200))
        journal, store = opened(tmp_path, 2000)
        assert store.version >= max(answered, last), "an answered change is missing"
        last = store.version
        versions = [int(item.document()["metadata"]["resourceVersion"]) for item in store.items("things")]
        assert all(version <= last for version in versions)
        journal.close()


def killed_writer(folder: Path, lines: int) -> int:
    """Let a writer answer so many changes, kill it; the last version it answered."""
    command = [sys.executable, "-c", WRITER, str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline().strip() == "open"
        answered = [writer.stdout.readline() for _ in range(lines)]
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split("\n")
        writer.wait()
    # The last line may be cut off; what is whole was answered.
    whole = [int(line) for line in rest[:-1] if line]
    return max([int(answered[-1]), *whole])
