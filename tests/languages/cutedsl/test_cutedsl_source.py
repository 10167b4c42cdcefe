"""CuTe DSL as a syntax tree: the starting file, and which lines a reviewer is sent to."""

from __future__ import annotations

import ast

import pytest

from warpsmith.languages.cutedsl.language import LANGUAGE
from warpsmith.languages.cutedsl.source import cutedsl_template, lint_cutedsl

HONEST = '''"""Copies; open() and threading in a docstring are nothing."""
import functools

import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream


@cute.kernel
def copy(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    y[thread] = x[thread]


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream):
    copy(x, y).launch(grid=(1, 1, 1), block=(256, 1, 1), stream=stream)


@functools.cache
def compiled(dtype: torch.dtype, aligned: bool):
    x, y = (make_fake_compact_tensor(cutlass.Float32, (256,), assumed_align=16) for _ in "xy")
    return cute.compile(launch, x, y, make_fake_stream(use_tvm_ffi_env_stream=True), options="--enable-tvm-ffi")


def run(x):
    y = torch.empty_like(x)
    compiled(x.dtype, x.data_ptr() % 16 == 0)(x, y)
    return y
'''


def test_honest_source_is_not_named():
    assert lint_cutedsl(HONEST) == []


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("CACHE = {}", "outlives"),
        ("@functools.cache\ndef g(x): return x", "keyed by tensors"),
        ("def g(x): s = torch.cuda.Stream()", "streams"),
        ("def g(x): return torch.softmax(x, 1)", "library"),
        ("from quack import rmsnorm; run = rmsnorm", "library"),
        ("from cutlass.cute.testing import benchmark; b = benchmark", "clock"),
        ("def g(p): return cute.testing.JitArguments(p)", "clock"),
        ("def g(p): return cute.runtime.load_module(p)", "compiled elsewhere"),
        ("import tvm_ffi; f = tvm_ffi.load_module", "compiled elsewhere"),
        ("from cuda.bindings import driver; d = driver.cuMemAlloc", "driver"),
        ("cutlass.cute.compile = print", "set for the whole process"),
        ("def g(x):\n  try:\n    compiled(x.dtype, True)(x, x)\n  except Exception: pass", "launch"),
    ],
)
def test_finding_names_its_line(line, word):
    found = lint_cutedsl(f"{HONEST}\n{line}\n")
    first = len(HONEST.splitlines()) + 2
    lines = range(first, first + len(line.splitlines()))
    assert any(word in text for text in found)
    assert all(int(text.split(":")[0].removeprefix("line ")) in lines for text in found)


REDUCED = """
@cute.jit
def put(value, shared):
    {first}
    if {test}:
        {then}
"""


@pytest.mark.parametrize(
    ("first", "test", "then", "waits"),
    [
        ("pass", "cute.arch.lane_idx() == 0", "shared[cute.arch.warp_idx()] = value", True),
        ("lane = cute.arch.lane_idx()", "lane == 0", "shared[0] = cute.arch.warp_reduction_sum(value)", True),
        ("thread, _, _ = cute.arch.thread_idx()", "thread < 5", "v = cute.arch.shuffle_sync_down(value, 1)", True),
        ("lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()", "lane == 0", "shared[warp] = value", False),
        ("lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()", "warp == 0", "cute.arch.elect_one()", False),
        ("warp = cute.arch.warp_idx()", "warp == 0", "value = cute.arch.warp_reduction_sum(value)", False),
        ("pass", "cute.arch.lane_idx() == 0", "shared[warp_idx()] = value", False),
    ],
)
def test_what_a_warp_does_together_is_named_in_a_branch_of_some_of_its_lanes(first, test, then, waits):
    found = lint_cutedsl(f"{HONEST}{REDUCED.format(first=first, test=test, then=then)}")
    line = len(HONEST.splitlines()) + 6
    assert [text.split(":")[0] for text in found if "waits for lanes" in text] == [f"line {line}"] * waits


def test_what_does_not_parse_has_no_lint_cutedsl():
    assert lint_cutedsl("def run(x:") == []


def test_layout_comments_and_docstrings_do_not_count():
    assert LANGUAGE.normalise(
        HONEST.replace("    return y\n", "\n    return (y)  # done\n")
    ) == LANGUAGE.normalise(HONEST)


def test_template_fits_the_definition_and_says_what_to_write(write, rmsnorm, tmp_path):
    source = cutedsl_template(rmsnorm)
    LANGUAGE.build(write(source, "v1.py"), rmsnorm, tmp_path)
    assert "x: (rows, cols), the workload's type. Rows to normalise." in source
    assert lint_cutedsl(source) == []
    (run,) = (node for node in ast.parse(source).body if getattr(node, "name", "") == "run")
    names = {}
    exec(ast.unparse(run), names)
    with pytest.raises(NotImplementedError, match="here and return y"):
        names["run"](1, 2, 3)


def test_template_writes_into_outputs_that_are_given(rmsnorm):
    source = cutedsl_template(rmsnorm.model_copy(update={"outputs_are": "given"}))
    assert "def run(x, weight, eps, y):" in source
    assert "write into y" in source
