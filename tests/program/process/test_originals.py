"""Programs run the text of their files, whatever bytecode lies beside them."""

from __future__ import annotations

import os
import py_compile
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from warpsmith.program.process.originals import OriginalsFinder

NAME = "originals_case"


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module whose bytecode is of another text with the same length and time."""
    file = tmp_path / f"{NAME}.py"
    file.write_text("NUMBER = 1\n")
    os.utime(file, (1e9, 1e9))
    py_compile.compile(str(file))
    file.write_text("NUMBER = 2\n")
    os.utime(file, (1e9, 1e9))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    yield file
    sys.modules.pop(NAME, None)


def test_python_itself_takes_the_bytecode():
    assert import_module(NAME).NUMBER == 1


def test_the_file_of_a_program_runs_as_it_is_written(program: Path):
    OriginalsFinder(program.parent, {}).install()
    assert import_module(NAME).NUMBER == 2


def test_a_copy_runs_in_place_of_its_file(program: Path, tmp_path: Path):
    copy = tmp_path / "copy.txt"
    copy.write_text("NUMBER = 3\n")
    OriginalsFinder(tmp_path / "elsewhere", {program: copy}).install()
    module = import_module(NAME)
    assert (module.NUMBER, module.__file__) == (3, str(program))


def test_files_outside_the_folder_are_imported_as_usual(program: Path, tmp_path: Path):
    OriginalsFinder(tmp_path / "elsewhere", {}).install()
    assert import_module(NAME).NUMBER == 1
