"""The check that runs in Pyodide's CPython 3.13, run here on samples."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from tools.python313 import check


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "_REPOSITORY", tmp_path)
    (tmp_path / "warpsmith").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "warpsmith"]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def write(repository, **files: str) -> list[str]:
    """Write modules of the package; return the failures, and how many modules import or lack which package."""
    for name, text in files.items():
        (repository / "warpsmith" / f"{name}.py").write_text(text)
    counts, lacking = Counter[str](), Counter[str]()
    failures = list(check._import_all(counts, lacking))
    return [*failures, f"{counts['modules']} import", f"lacking {dict(lacking)}"]


def test_a_module_may_fail_for_a_compiled_package_and_for_nothing_else(repository, monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    lines = write(
        repository, __init__="", fine="", array="import numpy", wrong="import nothing_here", worse="1 / 0"
    )
    assert lines[-2:] == ["2 import", "lacking {'numpy': 1}"]
    assert [line.partition(":")[0] for line in lines[:-2]] == ["warpsmith.worse", "warpsmith.wrong"]


def test_errors_and_warnings_of_the_compiler_are_found(tmp_path):
    texts = {"fine": "x = 1\n", "broken": "def f(:\n", "odd": "x = 1 is 1\n"}
    paths = []
    for name, text in texts.items():
        paths.append(tmp_path / f"{name}.py")
        paths[-1].write_text(text)
    failures = list(check._compile_all(paths))
    assert [failure.partition(":")[0] for failure in failures] == [str(path) for path in paths[1:]]


def test_each_command_is_asked_for_its_help(monkeypatch):
    counts = Counter[str]()
    assert list(check._ask_for_help(counts)) == []
    assert counts["commands"] > 50


def test_another_python_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(check, "_VERSION", (2, 7))
    assert check.main() == 1
    assert "not 3.13" in capsys.readouterr().out
