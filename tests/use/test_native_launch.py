"""The extension of launch plans: compiled in the background, tried before use, equal to the version."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from warpsmith import languages
from warpsmith.lab.operator import definition_file
from warpsmith.use import native_launch
from warpsmith.use.planned_calls import PlannedCalls, PlannedVersion


def test_a_library_gives_equal_results_with_and_without_plans(extension, tmp_path):
    kernels = Path(__file__).parents[2] / "kernels" / "rmsnorm"
    file = definition_file.load_definition(kernels / "definition.py")
    cpp = languages.get("cpp")
    built = cpp.build(kernels / "cpp" / "v5.cpp", file.definition, tmp_path)
    run, lock = cpp.load(built, file.definition), threading.Lock()

    entry = cpp.library_entry(built, file.definition)
    calls = PlannedCalls(
        PlannedVersion("rmsnorm cpp/v5", "cpu", lambda values: [run(*values)], {}, True, entry), lock, extension
    )
    shapes = random.Random(5)
    for _ in range(8):
        rows, cols = shapes.randrange(1, 9), shapes.randrange(1, 300)
        first = torch.randn(rows, cols), torch.randn(cols), 1e-6
        assert calls.replay(first, False) is None
        calls.run(first)
        again = torch.randn(rows, cols), torch.randn(cols), 1e-6
        assert torch.equal(calls.replay(again, False), run(*again))
        assert torch.equal(calls.replay(first, False), run(*first))
        assert not lock.locked()
    assert calls.count == 8
    strided = torch.randn(300, 9).t(), torch.randn(300), 1e-6
    assert calls.replay(strided, False) is None
    assert calls.replay((first[0].requires_grad_(), *first[1:]), False) is None


def test_a_library_with_too_many_numbers_is_called_as_before(extension):
    entry = SimpleNamespace(address=1, codes=lambda values: [1, *[-1] * 9, 1])
    version = PlannedVersion(
        "many cpp/v1", "cpu", lambda values: [values[0] + 1], {}, True, (entry.address, entry.codes)
    )
    calls = PlannedCalls(version, threading.Lock(), extension)
    values = torch.randn(16), *[0.5] * 9
    assert torch.equal(calls.run(values)[0], values[0] + 1)
    assert "more parameters" in next(iter(calls.refusals.values()))
    assert calls.replay(values, False) is None


@pytest.fixture
def builds(monkeypatch):
    """Commands of background builds, none of which runs."""
    commands = []
    monkeypatch.setattr(native_launch, "_build_in_background", commands.append)
    monkeypatch.delenv(native_launch.SWITCH, raising=False)
    return commands


def _wait(extension):
    for thread in threading.enumerate():
        if thread.daemon and thread is not threading.main_thread():
            thread.join(0.2)
    return extension.module()


def test_without_a_compiler_or_when_turned_off_nothing_is_compiled(builds, tmp_path, monkeypatch):
    monkeypatch.setattr(native_launch, "find_cxx_compiler", lambda: None)
    assert native_launch.Extension(tmp_path).module() is None
    monkeypatch.undo()
    monkeypatch.setattr(native_launch, "_build_in_background", builds.append)
    monkeypatch.setenv(native_launch.SWITCH, "0")
    assert native_launch.Extension(tmp_path).module() is None
    assert builds == []


def test_it_is_compiled_in_the_background_and_loaded_once_there(builds, tmp_path, native_folder, monkeypatch):
    monkeypatch.setattr(native_launch, "_SECONDS_BETWEEN_LOOKS", 0)
    extension = native_launch.Extension(tmp_path)
    assert _wait(extension) is None
    assert builds == [tmp_path / native_launch.library_file_name()]
    builds[0].symlink_to(native_folder / "warpsmith" / "built" / native_launch.library_file_name())
    assert extension.module().describe(torch.zeros(2, dtype=torch.float64))[1:] == ((2,), 7)


def test_an_extension_that_does_not_load_is_left_alone(builds, tmp_path):
    (tmp_path / native_launch.library_file_name()).write_bytes(b"no library")
    extension = native_launch.Extension(tmp_path)
    assert extension.module() is None
    assert extension.module() is None
    assert builds == []


def test_what_does_not_compile_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(
        native_launch, "compile_command", lambda target: [sys.executable, "-c", "raise SystemExit(1)"]
    )
    with pytest.raises(subprocess.CalledProcessError):
        native_launch.build_extension(tmp_path / "built" / "x.so")
    assert list((tmp_path / "built").iterdir()) == []


def test_a_driver_that_does_not_know_parameters_is_not_recorded(extension, driver):
    library = SimpleNamespace(cuLaunchKernelEx=driver.library.cuLaunchKernelEx)
    native_launch.connect_driver(extension.module(), library, driver.library)
    assert extension.module().start_recording() is False
