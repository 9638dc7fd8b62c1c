"""The configuration file: what is read, what is refused, and what stays in force meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from volcano_py.crds.arguments import ConfigError
from volcano_py.crds.schedulerconfig import DEFAULT_CONFIG
from volcano_py.scheduler.run.reload import ConfigFile, read_config

GOOD = "actions: allocate, backfill\ntiers:\n- plugins: [{name: gang}]\n"
OTHER = "actions: allocate\ntiers:\n- plugins: [{name: gang}, {name: drf}]\n"
BAD = "actions: alocate\ntiers: []\n"


def file_with(folder: Path, text: str) -> ConfigFile:
    path = folder / "scheduler.conf"
    path.write_text(text)
    return ConfigFile(path)


def test_without_a_file_the_built_in_one_holds() -> None:
    file = ConfigFile(None)
    assert file.first().text == DEFAULT_CONFIG
    assert file.changed() is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BAD, "alocate"),
        ("actions: allocate\ntiers: [{plugins: [{name: gang, arguments: {nonsense: 1}}]}]\n", "nonsense"),
        ("{", "not YAML"),
    ],
)
def test_what_can_not_be_carried_out_stops_the_start(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        file_with(tmp_path, text).first()


def test_a_file_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        ConfigFile(tmp_path / "absent").first()


def test_another_content_is_read_once(tmp_path: Path) -> None:
    file = file_with(tmp_path, GOOD)
    file.first()
    assert file.changed() is None
    file_with(tmp_path, OTHER)
    found = file.changed()
    assert found is not None
    assert found.config == read_config(OTHER).config
    assert file.changed() is None
    assert file.reloads == 1


def test_a_bad_file_leaves_the_last_good_one_in_force_until_it_is_mended(tmp_path: Path) -> None:
    file = file_with(tmp_path, GOOD)
    file.first()
    file_with(tmp_path, BAD)
    assert file.changed() is None
    assert "alocate" in file.trouble
    assert file.changed() is None
    assert "alocate" in file.trouble
    file_with(tmp_path, GOOD)
    assert file.changed() is None  # it is in force all along
    assert file.trouble == ""
    file_with(tmp_path, BAD)
    file.changed()
    file_with(tmp_path, OTHER)
    assert file.changed() is not None
    assert file.trouble == ""


def test_a_file_that_goes_and_comes_back_is_read_again(tmp_path: Path) -> None:
    file = file_with(tmp_path, GOOD)
    file.first()
    (tmp_path / "scheduler.conf").unlink()
    assert file.changed() is None
    assert "can't be read" in file.trouble
    file_with(tmp_path, GOOD)
    assert file.changed() is None
    assert file.trouble == ""
    (tmp_path / "scheduler.conf").unlink()
    file.changed()
    file_with(tmp_path, OTHER)
    assert file.changed() is not None


def test_every_bad_file_is_told_of_in_its_own_words(tmp_path: Path) -> None:
    file = file_with(tmp_path, GOOD)
    file.first()
    for content, words in (
        (b"\xff\xfe", "utf-8"),
        (b"", "null"),
        (b"x" * 300_000, "more than"),
        (b"", "null"),
    ):
        (tmp_path / "scheduler.conf").write_bytes(content)
        assert file.changed() is None
        assert words in file.trouble


def test_a_mounted_config_map_that_is_swapped_is_seen(tmp_path: Path) -> None:
    """The kubelet writes another folder and turns a symbolic link; times and sizes may stay the same."""
    for name, text in (("one", GOOD), ("two", GOOD.replace("gang", "drfs").replace("drfs", "drf "))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "c.yaml").write_text(text)
        os.utime(tmp_path / name / "c.yaml", (1, 1))
    (tmp_path / "data").symlink_to("one")
    (tmp_path / "c.yaml").symlink_to("data/c.yaml")
    file = ConfigFile(tmp_path / "c.yaml")
    file.first()
    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").rename(tmp_path / "data")
    found = file.changed()
    assert found is not None
    assert [plugin.name for plugin in found.config.plugins] == ["drf"]
