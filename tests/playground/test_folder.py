"""The folder of a playground: one user at a time, nothing of others overwritten."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from volcano_py.simulator.playground.folder import Folder, PlaygroundError


def test_a_folder_is_taken_once(tmp_path: Path) -> None:
    first = Folder.take(tmp_path / "data")
    with pytest.raises(PlaygroundError, match=f"a playground \\(process {os.getpid()}\\) runs on"):
        Folder.take(tmp_path / "data")
    first.release()
    Folder.take(tmp_path / "data").release()


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(PlaygroundError, match="holds something else than a playground"):
        Folder.take(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(PlaygroundError, match="is no folder"):
        Folder.take(tmp_path / "data")


@pytest.mark.parametrize("mark", ['{"format": 99}', "garbage", "[]"])
def test_stale_data_is_told(tmp_path: Path, mark: str) -> None:
    (tmp_path / "playground.json").write_text(mark)
    with pytest.raises(PlaygroundError, match="was written by another version"):
        Folder.take(tmp_path)


def test_a_port_in_use_is_told(tmp_path: Path) -> None:
    folder = Folder.take(tmp_path / "data")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PlaygroundError, match=f"port {port} on 127.0.0.1 is in use"):
            folder.port(port)
    folder.release()


def test_the_last_port_is_used_again_unless_it_is_taken(tmp_path: Path) -> None:
    folder = Folder.take(tmp_path / "data")
    port = folder.port(0)
    assert folder.port(0) == port
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        assert folder.port(0) != port
    folder.release()
    assert json.loads((tmp_path / "data" / "playground.json").read_text())["format"] == 1


def test_a_temporary_folder_goes_and_a_named_one_stays(tmp_path: Path) -> None:
    temporary, named = Folder.take(None), Folder.take(tmp_path / "data")
    kept = Folder.take(None)
    for folder in (temporary, named):
        folder.release()
    kept.release(keep=True)
    assert [folder.root.exists() for folder in (temporary, named, kept)] == [False, True, True]
    Folder(kept.root, is_kept=False).release()
