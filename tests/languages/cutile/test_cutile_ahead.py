"""cuTile's kernels are compiled in parallel before they are launched, and the next worker finds them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpsmith.languages.cutile import kernel_store, launches
from warpsmith.languages.cutile import language as cutile
from warpsmith.languages.shared import disassembly

ROOT = Path(__file__).parents[3]
lacks = cutile.missing_tileiras() or disassembly.missing_disassembler()
needs_compiler = pytest.mark.skipif(lacks is not None, reason=str(lacks))
DRAFT = ROOT / "kernels" / "softmax" / "drafts" / "cutile" / "01_clusters.py"
CACHE = "cuda_tile_cache_dir"


def worker(folder: Path, *arguments: str) -> dict:
    """Run the draft in a folder of its own, over a driver whose functions do nothing."""
    folder.mkdir(exist_ok=True)
    source = shutil.copy(DRAFT, folder / "v1.py")
    command = [sys.executable, Path(__file__).with_name("driven_cutile.py"), source, *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)


@needs_compiler
@pytest.mark.slow
def test_the_next_worker_compiles_and_disassembles_nothing(tmp_path):
    sizes = ("64x4096", "7x1023", "9x1023", "64x8192")
    ahead = worker(tmp_path / "ahead", "ahead", *sizes)
    assert (ahead["kernels"], ahead["tileiras"], ahead["reports"]) == (3, 3, [])
    assert ahead["at_once"] >= 2
    shutil.copytree(tmp_path / "ahead" / CACHE, tmp_path / "next" / CACHE)
    assert len(list((tmp_path / "next" / CACHE).glob("report-*"))) == 3
    called = worker(tmp_path / "next", "call", *sizes, "64x2048")
    assert called["tileiras"] == 1, "the one that nobody compiled"
    assert called["reports"] == ["row_kernel"] * 4
    assert worker(tmp_path / "fresh", "call", "64x4096")["tileiras"] == 1


class Kernel:
    _pyfunc = SimpleNamespace(__name__="softmax")
    _compiler_options = SimpleNamespace(num_worker_warps=8, occupancy=None, num_ctas=None)


@pytest.fixture
def control(monkeypatch):
    """A process in which nothing is installed, whose compiler refuses `bad`."""
    made = launches.LaunchControl()
    monkeypatch.setattr(launches, "_unlocked_compiler", lambda: launches.contextlib.nullcontext())
    monkeypatch.setattr(launches.disassembly, "missing_disassembler", lambda: "no tools")

    def compile_kernel(kernel, name):
        if name == "bad":
            raise ValueError(name)
        return name.encode(), name

    made._compile = compile_kernel
    return made


def test_what_fails_ahead_is_left_to_the_call_that_counts(control):
    kernel = Kernel()

    def call(name):
        control._postponed[id(kernel), name] = kernel, (name,), {}

    def fails():
        raise RuntimeError("before any launch")

    names = ("good", "bad", "good", "also good")
    assert control.compile_ahead([fails, *(lambda name=name: call(name) for name in names)], 2) == 2
    assert control.compiled == []
    assert control._postponed is None


def test_a_folder_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    kernel_store._write(tmp_path / "cache" / "key", "kernel.cubin", b"first")
    kernel_store._write(tmp_path / "cache" / "key", "kernel.cubin", b"second")
    assert kernel_store._read(tmp_path / "cache" / "key" / "kernel.cubin") == b"first"
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["key"]
    assert kernel_store._read(tmp_path / "cache" / "another") is None
    (tmp_path / "file").touch()
    kernel_store._write(tmp_path / "file" / "key", "kernel.cubin", b"nowhere")
    assert (tmp_path / "file").is_file()
