"""A lab of another version than the plugin says so in one line, with the command that mends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.cli.skew import PLUGIN, describe_skew


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    (tmp_path / "plugin" / "warpsmith").mkdir(parents=True)
    (tmp_path / "plugin" / "warpsmith" / "a.py").write_text("a = 1\n")
    return tmp_path / "plugin"


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A copy in an environment."""
    folder = tmp_path / "venv" / "site-packages" / "warpsmith"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text("a = 1\n")
    return folder


def test_equal_copies_and_the_plugins_own_lab_are_silent(plugin: Path, lab: Path) -> None:
    assert describe_skew({PLUGIN: str(plugin)}, lab) == ""
    assert describe_skew({PLUGIN: str(plugin)}, plugin / "warpsmith") == ""
    assert describe_skew({}, lab) == ""


@pytest.mark.parametrize(("name", "text"), [("a.py", "a = 12\n"), ("b.py", "")])
def test_another_version_names_the_command(plugin: Path, lab: Path, name: str, text: str) -> None:
    (plugin / "warpsmith" / name).write_text(text)
    sentence = describe_skew({PLUGIN: str(plugin)}, lab)
    assert str(plugin) in sentence
    assert sentence.endswith(f"-m pip install {plugin}")


def test_a_checkout_asks_for_an_update_of_the_plugin(plugin: Path, tmp_path: Path) -> None:
    package = tmp_path / "clone" / "warpsmith"
    package.mkdir(parents=True)
    sentence = describe_skew({PLUGIN: str(plugin)}, package)
    assert sentence.endswith("run: claude plugin update warpsmith@warpsmith-market")
