"""Modules from their source alone, with bytecode of another text beside it."""

from __future__ import annotations

import os
import py_compile
from pathlib import Path

import pytest

from warpsmith.interchange.sibling import load_module
from warpsmith.lab.operator.source_module import import_source


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A file whose cached bytecode was compiled from another text with the same size and time."""
    path = tmp_path / "definition.py"
    path.write_text("TOLERANCE = 9\n")
    os.utime(path, (1e9, 1e9))
    py_compile.compile(str(path), doraise=True)
    path.write_text("TOLERANCE = 1\n")
    os.utime(path, (1e9, 1e9))
    return path


def test_bytecode_of_another_text_is_not_run(planted: Path):
    assert import_source("warpsmith_test_source", planted).TOLERANCE == 1
    assert load_module(planted).TOLERANCE == 1


def test_no_bytecode_is_written(tmp_path: Path):
    path = tmp_path / "plain.py"
    path.write_text("NAME = __name__\n")
    assert import_source("warpsmith_test_plain", path).NAME == "warpsmith_test_plain"
    assert list(tmp_path.iterdir()) == [path]
