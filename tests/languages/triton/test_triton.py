"""Triton solutions without a GPU: interpreted for correctness, compiled for three architectures."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpsmith.core.evaluation import Resources
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.languages.base import Build, BuildFailed
from warpsmith.languages.shared import compile_only, python_file
from warpsmith.languages.shared.tool import ToolResult
from warpsmith.languages.triton import language as triton
from warpsmith.languages.triton import source as triton_source

pytestmark = pytest.mark.usefixtures("forked_compilers")

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")

SOFTMAX = """
import torch, triton
import triton.language as tl

@triton.jit
def softmax(x_ptr, y_ptr, cols, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + o, mask=o < cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * cols + o, e / tl.sum(e, 0), mask=o < cols)

def run(x):
    y = torch.empty(x.shape, dtype=x.dtype)
    softmax[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
"""

INTERPRET = """
import sys
from pathlib import Path
import torch
from warpsmith.core.definition import Definition
from warpsmith.languages.base import Build
from warpsmith.languages.triton.language import LANGUAGE
path = Path(sys.argv[1])
run = LANGUAGE.load(Build(path, path, ()), None)
for rows, cols in ((3, 33), (5, 64)):
    x = torch.randn(rows, cols)
    torch.testing.assert_close(run(x), torch.softmax(x, 1))
assert LANGUAGE.resources(run) == ()
assert not (path.parent / "__pycache__").exists()
"""


@needs_triton
def test_interpreter_runs_a_softmax(write):
    path = write(SOFTMAX, "v1.py")
    ended = subprocess.run([sys.executable, "-c", INTERPRET, path], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@needs_triton
def test_compile_only_in_a_child(write, vector, copy_source):
    (report,) = triton.LANGUAGE.inspect(write(copy_source, "v1.py"), vector, "sm_90a")
    assert report.kernel == "copy"
    assert report.notes[0].startswith("LDG.E.128 x2, STG.E.128 x2")


def test_assembly_keeps_ptx_and_sass(write, vector, tmp_path, copy_source, monkeypatch):
    launch = {"stem": "copy.sm_90a", "workloads": ["a"], "variant": "n i32", "unaligned": ["n"]}

    def compiled(source, definition, workloads, arch, folder):
        for suffix in ("sass", "ptx", "cubin"):
            (folder / f"copy.{arch}.{suffix}").write_text(suffix)
        (folder / "launches.json").write_text(json.dumps([launch | {"matrix_product": True}]))
        return (Resources(kernel="copy"),)

    monkeypatch.setattr(triton.LANGUAGE, "_compile", compiled, raising=False)
    folder = tmp_path / "asm"
    folder.mkdir()
    for name in ("copy-2.sm_90a.sass", "copy.sm_80.sass"):
        (folder / name).write_text("of an earlier call")
    (found,) = triton.LANGUAGE.assembly(write(copy_source, "v1.py"), vector, vector.workloads, "sm_90a", folder)
    assert (found.kernel, found.workloads, found.isa) == ("copy", ("a",), "sass")
    assert (found.variant, found.unaligned, found.matrix_product) == ("n i32", ("n",), True)
    assert (found.assembly.read_text(), found.ptx.read_text()) == ("sass", "ptx")
    assert {path.name for path in folder.iterdir()} == {"copy.sm_90a.ptx", "copy.sm_90a.sass", "copy.sm_80.sass"}


def test_architectures_by_their_other_name():
    names = {asked: triton.LANGUAGE.architecture(asked) for asked in (None, "sm_80", "sm_90", "sm_90a", "sm_100a")}
    assert names == {None: "sm_90a", "sm_80": "sm_80", "sm_90": "sm_90a", "sm_90a": "sm_90a", "sm_100a": "sm_100"}
    with pytest.raises(Misuse, match=r"sm_12.*sm_90a"):
        triton.LANGUAGE.architecture("sm_12")


def test_a_missing_tool_is_not_the_solutions_fault(write, vector, monkeypatch):
    def run(command, *_, **__):
        Path(command[-1], "lacks.txt").write_text("`nvdisasm` is not there.")
        return ToolResult(1, "")

    monkeypatch.setattr(triton.LANGUAGE, "missing", lambda _: None, raising=False)
    monkeypatch.setattr(compile_only.tool, "run_tool", run)
    with pytest.raises(MachineLacks, match="`nvdisasm` is not there"):
        triton.LANGUAGE.inspect(write("def run(x):\n    return x\n", "v1.py"), vector, "sm_80")


@needs_triton
def test_what_does_not_compile_is_said_in_few_lines(write, vector, copy_source):
    source = copy_source.replace("tl.load(x_ptr + o,", "tl.load(x_ptr + other,")
    with pytest.raises(BuildFailed) as caught:
        triton.LANGUAGE.inspect(write(source, "v3.py"), vector, "sm_90a")
    message = str(caught.value)
    assert message.startswith("v3.py does not compile for sm_90a.")
    assert "other is not defined" in message
    assert len(message.splitlines()) <= 11


def test_hanging_host_code_is_stopped(write, vector, monkeypatch):
    monkeypatch.setattr(triton.LANGUAGE, "seconds", 1.0, raising=False)
    monkeypatch.setattr(triton.LANGUAGE, "missing", lambda _: None, raising=False)
    source = "def run(x):\n    while True:\n        pass\n"
    with pytest.raises(BuildFailed, match="more than 1 s"):
        triton.LANGUAGE.inspect(write(source, "v1.py"), vector, "sm_80")


def test_unknown_architecture(write, vector, copy_source):
    with pytest.raises(Misuse, match=r"sm_12.*sm_90a"):
        triton.LANGUAGE.inspect(write(copy_source, "v1.py"), vector, "sm_12")


def test_missing_names_what_lacks(monkeypatch):
    monkeypatch.setattr(triton, "has_cuda_device", lambda: False)
    assert "CUDA device" in (triton.LANGUAGE.missing("gpu") or "")
    monkeypatch.setattr(triton, "find_spec", lambda name: None if name == "triton" else object())
    assert "triton cannot be imported" in (triton.LANGUAGE.missing("gpu") or "")
    assert "triton cannot be imported" in (triton.LANGUAGE.missing("cpu") or "")


@pytest.mark.parametrize("signature", ["x", "x, /", "x, block=3", "x, *, block=3"])
def test_signatures_that_fit(write, vector, tmp_path, signature):
    path = write(f"def run({signature}):\n    return x\n", "v1.py")
    assert triton.LANGUAGE.build(path, vector, tmp_path) == Build(path, path, ())


@pytest.mark.parametrize("signature", ["", "y", "x, block", "*args", "a, x", "x, *, block"])
def test_signatures_that_do_not_fit(write, vector, tmp_path, signature):
    with pytest.raises(BuildFailed, match=r"`def run\(x\)`"):
        triton.LANGUAGE.build(write(f"def run({signature}):\n    return 1\n", "v1.py"), vector, tmp_path)


def test_file_without_run(write, vector, tmp_path):
    with pytest.raises(BuildFailed, match=r"none; expected a top-level `def run\(x\)`"):
        triton.LANGUAGE.build(write("class A:\n    def run(x): ...\n", "v1.py"), vector, tmp_path)


@pytest.mark.parametrize("source", ["def run(x):\n    return (\n", "def run(x):\n    return 1\n\0"])
def test_file_that_does_not_parse(write, vector, tmp_path, source):
    with pytest.raises(BuildFailed, match=r"v1.py does not parse"):
        triton.LANGUAGE.build(write(source, "v1.py"), vector, tmp_path)


def test_syntax_error_names_its_line(write, vector, tmp_path):
    with pytest.raises(BuildFailed, match="at line 2"):
        triton.LANGUAGE.build(write("def run(x):\n    retrun x\n", "v1.py"), vector, tmp_path)


def test_an_edited_file_is_loaded_anew(write, monkeypatch):
    monkeypatch.setattr(triton, "has_cuda_device", lambda: True)
    path = write("def run(x): return 1", "v1.py")
    one = python_file.execute_file(path)
    path.write_text("def run(x): return 2")
    two = python_file.execute_file(path)
    assert (one.run(0), two.run(0)) == (1, 2)
    assert one.__name__ != two.__name__


def test_a_file_that_fails_leaves_no_module(write):
    before = set(sys.modules)
    with pytest.raises(ZeroDivisionError):
        python_file.execute_file(write("1 / 0", "v1.py"))
    assert not {name for name in set(sys.modules) - before if name.startswith("warpsmith_solution")}


def test_resources_of_launched_kernels():
    def kernel(spills, **extra):
        metadata = SimpleNamespace(shared=1024, num_warps=8, num_stages=3)
        return SimpleNamespace(metadata=metadata, n_regs=40, n_spills=spills, **extra)

    caches = {0: ({"a": kernel(2), "b": kernel(2), "c": SimpleNamespace(n_regs=None)}, {}, None, None, None)}
    function = SimpleNamespace(device_caches=caches, __name__="norm")
    wrapped = SimpleNamespace(fn=SimpleNamespace(fn=function))
    names = {"norm": wrapped, "other": 3}
    run = eval("lambda x: x", names)
    (report,) = triton.LANGUAGE.resources(run)
    assert (report.kernel, report.registers, report.shared_bytes, report.spill_bytes) == ("norm", 40, 1024, 8)
    assert report.notes == ("num_warps 8, num_stages 3",)


def test_interpreter_is_not_trusted_with_bfloat16(vector):
    (workload,) = vector.workloads
    assert triton.LANGUAGE.distrust(vector, workload) is None
    brain = workload.model_copy(update={"dtype": "bfloat16"})
    assert "bfloat16" in (triton.LANGUAGE.distrust(vector, brain) or "")


def test_template_says_what_to_write(write, rmsnorm, tmp_path):
    source = triton_source.triton_template(rmsnorm)
    path = write(source, "v1.py")
    triton.LANGUAGE.build(path, rmsnorm, tmp_path)
    assert "x: (rows, cols), the workload's type. Rows to normalise." in source
    if find_spec("triton"):
        with pytest.raises(NotImplementedError, match="launch it here and return y"):
            python_file.execute_file(path).run(1, 2, 3)
