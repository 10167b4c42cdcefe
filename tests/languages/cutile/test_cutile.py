"""cuTile's part of the interface: what is missing, what is held back, what is told. No compiler runs here."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from warpsmith import languages
from warpsmith.core.evaluation import Resources
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.languages.base import Assembles, Build, BuildFailed, SuppressesLaunches
from warpsmith.languages.cutile import cubin as cutile_cubin
from warpsmith.languages.cutile import kernel_store, launches
from warpsmith.languages.cutile import language as cutile
from warpsmith.languages.cutile.language import LANGUAGE
from warpsmith.languages.shared import compile_only
from warpsmith.languages.shared.tool import ToolResult


@pytest.fixture
def tile(monkeypatch):
    """A `cuda.tile` that counts launches, and a process whose launches go nowhere else yet."""
    module = ModuleType("cuda.tile")

    class Kernel:
        _pyfunc = SimpleNamespace(__name__="softmax")
        _compiler_options = SimpleNamespace(num_worker_warps=8, occupancy=None, num_ctas=None)

        def _compile(self, signature):
            return b"cubin of " + signature.encode(), "symbol"

    module.launches = []
    module.launch = lambda *args: module.launches.append(args)
    compiler = ModuleType("cuda.tile._compile")
    compiler._compiler_lock, compiler.compile_cubin = threading.RLock(), lambda *_: None
    monkeypatch.setitem(sys.modules, "cuda.tile._compile", compiler)
    module.kernel = Kernel
    monkeypatch.setitem(sys.modules, "cuda.tile", module)
    monkeypatch.setattr(cutile, "_launches", launches.LaunchControl())
    return module


@pytest.fixture
def installed(monkeypatch):
    """Says which of the compiler's packages are there."""

    def put(**releases):
        found = {f"nvidia-{name.replace('_', '-')}": release for name, release in releases.items()}
        monkeypatch.setattr(cutile.python_file, "is_importable", lambda _: True)
        monkeypatch.setattr(cutile, "_version", found.get)
        monkeypatch.setattr(cutile.shutil, "which", lambda *_, **__: None)

    return put


def test_the_interface():
    assert languages.get("cutile") is LANGUAGE
    assert isinstance(LANGUAGE, SuppressesLaunches)
    assert isinstance(LANGUAGE, Assembles)
    assert (LANGUAGE.suffix, LANGUAGE.targets) == (".py", ("gpu",))


def test_packages_that_are_missing_are_named(monkeypatch):
    monkeypatch.setattr(cutile.python_file, "find_spec", lambda name: None if name == "cuda.tile" else object())
    assert "Python's cuda.tile cannot be imported: run `" in (LANGUAGE.missing("gpu") or "")

    def without_cuda(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(cutile.python_file, "find_spec", without_cuda)
    assert "torch and cuda.tile cannot" in (LANGUAGE.missing("cpu") or "")


def test_a_compiler_of_one_release_is_asked_for(installed):
    installed(cuda_tileiras="13.4.92", cuda_nvcc="13.4.1", nvvm="13.4.92")
    assert cutile.missing_tileiras() is None
    installed(cuda_tileiras="13.4.92", cuda_nvcc="13.0.88", nvvm="13.4.92")
    assert "these differ: nvidia-cuda-tileiras 13.4.92, nvidia-cuda-nvcc 13.0.88" in str(cutile.missing_tileiras())
    installed(cuda_nvcc="13.4.92")
    assert "`tileiras` is missing" in str(cutile.missing_tileiras())


def test_a_toolkit_on_the_machine_does_as_well(installed, monkeypatch, tmp_path):
    installed()
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    there = {str(tmp_path / "bin"): "tileiras"}
    monkeypatch.setattr(cutile.shutil, "which", lambda name, path=None: there.get(path or ""))
    assert cutile.missing_tileiras() is None


def test_a_machine_without_a_device_compiles(installed, vector):
    installed(cuda_tileiras="13.4.92", cuda_nvcc="13.4.92", nvvm="13.4.92")
    assert "no interpreter" in (LANGUAGE.missing("cpu") or "")
    if not Path("/dev/nvidiactl").exists():
        assert "No CUDA device" in (LANGUAGE.missing("gpu") or "")
    assert "`million` needs a GPU" in (LANGUAGE.distrust(vector, vector.workloads[0]) or "")


def test_launches_are_held_back_however_they_were_imported(tile, write):
    source = "from cuda.tile import launch\ndef run(x):\n    launch(0, (1,), x, ())\n    return x\n"
    path = write(source, "v1.py")
    run = LANGUAGE.load(Build(path, path, ()), None)
    run("kernel")
    with LANGUAGE.suppress_launches():
        run("kernel")
    assert len(tile.launches) == 1
    run("kernel")
    assert len(tile.launches) == 2


def test_resources_are_those_of_the_compiled_kernels(tile, write, monkeypatch):
    path = write("import cuda.tile as ct\ndef run(x):\n    return ct.kernel()._compile(x)\n", "v1.py")
    monkeypatch.setattr(launches.disassembly, "missing_disassembler", lambda: None)
    monkeypatch.setattr(
        cutile_cubin,
        "cubin_report",
        lambda cubin, name, note: Resources(kernel=name, notes=(cubin.read_text(), note)),
    )
    LANGUAGE.load(Build(path, path, ()), None)
    run = LANGUAGE.load(Build(path, path, ()), None)
    assert LANGUAGE.resources(run) == ()
    assert run("bf16") == (b"cubin of bf16", "symbol")
    run("bf16")
    assert len(cutile._launches.compiled) == 2
    (report,) = LANGUAGE.resources(run)
    assert report.kernel == "softmax"
    assert report.notes == ("cubin of bf16", "num_worker_warps 8, occupancy auto, num_ctas auto")


def test_a_kernel_is_disassembled_once_however_often_it_is_asked_for(tile, write, monkeypatch, tmp_path):
    """A judgement asks after each workload: the second time, and another process, find the report."""
    monkeypatch.setattr(launches.disassembly, "missing_disassembler", lambda: None)
    monkeypatch.setenv(kernel_store.VARIABLE, str(tmp_path / "cache"))
    made = []
    monkeypatch.setattr(
        cutile_cubin, "cubin_report", lambda cubin, name, note: made.append(cubin) or Resources(kernel=name)
    )
    path = write("import cuda.tile as ct\ndef run(x):\n    return ct.kernel()._compile(x)\n", "v1.py")
    run = LANGUAGE.load(Build(path, path, ()), None)
    for name in ("bf16", "fp32"):
        run(name)
        assert LANGUAGE.resources(run) == LANGUAGE.resources(run)
    assert len(made) == 2
    another = launches.LaunchControl()
    another.compiled = list(cutile._launches.compiled)
    assert [report.kernel for report in another.reports()] == ["softmax"]
    assert len(made) == 2


def test_resources_without_the_tools_are_none(tile, monkeypatch):
    monkeypatch.setattr(launches.disassembly, "missing_disassembler", lambda: "`nvdisasm` is not there.")
    cutile._launches.compiled.append((None, b""))
    assert LANGUAGE.resources(lambda: None) == ()


def test_a_signature_that_does_not_fit(write, vector, tmp_path):
    with pytest.raises(BuildFailed, match=r"`def run\(x\)`"):
        LANGUAGE.build(write("def run(a, b):\n    return a\n", "v1.py"), vector, tmp_path)


def test_architectures_by_their_other_name():
    names = {asked: LANGUAGE.architecture(asked) for asked in (None, "sm_80", "sm_90", "sm_100a")}
    assert names == {None: "sm_90a", "sm_80": "sm_80", "sm_90": "sm_90a", "sm_100a": "sm_100"}
    with pytest.raises(Misuse, match=r"cuTile.*sm_12.*sm_90a"):
        LANGUAGE.architecture("sm_12")


def test_what_the_machine_lacks_is_no_fault_of_the_solution(write, vector, monkeypatch):
    path = write("def run(x):\n    return x\n", "v1.py")
    monkeypatch.setattr(cutile, "missing_tileiras", lambda: "`tileiras` is missing.")
    with pytest.raises(MachineLacks, match="tileiras"):
        LANGUAGE.inspect(path, vector, "sm_90a")

    def no_disassembler(command, *_, **__):
        Path(command[-1], "lacks.txt").write_text("`nvdisasm` is not there.")
        return ToolResult(1, "")

    monkeypatch.setattr(cutile, "missing_tileiras", lambda: None)
    monkeypatch.setattr(compile_only.tool, "run_tool", no_disassembler)
    with pytest.raises(MachineLacks, match="nvdisasm"):
        LANGUAGE.inspect(path, vector, "sm_90a")
    with pytest.raises(Misuse, match="sm_12"):
        LANGUAGE.inspect(path, vector, "sm_12")


def test_assembly_is_left_where_it_was_asked_for(write, vector, tmp_path, monkeypatch):
    launch = {"stem": "copy.sm_90a", "workloads": ["million"], "variant": "n int32", "unaligned": ["x"]}

    def compiled(source, definition, workloads, arch, folder):
        (folder / f"copy.{arch}.sass").write_text("sass")
        (folder / "launches.json").write_text(json.dumps([launch | {"matrix_product": False}]))
        return (Resources(kernel="copy"),)

    monkeypatch.setattr(LANGUAGE, "_compile", compiled, raising=False)
    folder = tmp_path / "asm"
    folder.mkdir()
    for name in ("copy-2.sm_90a.sass", "copy.sm_80.sass"):
        (folder / name).write_text("of an earlier call")
    path = write("def run(x):\n    return x\n", "v1.py")
    (found,) = LANGUAGE.assembly(path, vector, vector.workloads, "sm_90a", folder)
    assert (found.kernel, found.workloads, found.variant) == ("copy", ("million",), "n int32")
    assert (found.unaligned, found.ptx, found.assembly.read_text()) == (("x",), None, "sass")
    assert {path.name for path in folder.iterdir()} == {"copy.sm_90a.sass", "copy.sm_80.sass"}
