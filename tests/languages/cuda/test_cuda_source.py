"""CUDA C++ inside Python as text: what counts as the same version, what a reviewer is sent to, where lines lie."""

from __future__ import annotations

import ast

import pytest

from warpsmith.languages.cuda.source import lint_cuda, static_programs
from warpsmith.languages.shared.kernel_strings import kernel_strings, normalise_kernels, with_line_numbers

HONEST = '''"""Doubles; clock64() in a docstring is nothing."""
import functools

import torch
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch

SOURCE = r"""
#include <cuda_bf16.h>
__constant__ float two = 2.0f;
__device__ __forceinline__ float twice(float x) { return 2 * x; }  // clock64()
template <typename T>
__global__ void scale(const T* x, T* y, int n) {
  __shared__ float part[32];
  int i = threadIdx.x;  /* malloc( */
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (i < n) y[i] = twice(x[i]);
}
"""


@functools.cache
def compiled(name: str):
    options = ProgramOptions(arch="sm_90a", std="c++20", include_path=["/x"], use_fast_math=True)
    return Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)


def run(x):
    y = torch.empty_like(x)
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    launch(stream, LaunchConfig(grid=1, block=32), compiled("scale<float>"), x.data_ptr(), y.data_ptr(), x.numel())
    return y
'''


def test_honest_source_is_not_named():
    assert lint_cuda(HONEST) == []


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("from cuda.core import Event; e = Event()", "streams"),
        ("def g(device): return device.create_stream()", "streams"),
        ("import cuda.core as c; o = c.ObjectCode.from_cubin(b'')", "not in the file"),
        ("from cuda.core import DeviceMemoryResource as D; d = D(0)", "without PyTorch"),
        ("import cupy as cp; k = cp.RawKernel('', '')", "another library"),
        ("def g(x):\n  try:\n    launch(x)\n  except Exception: pass", "kernel launch"),
        ("CACHE = {}", "outlives"),
        ("def g(x): return torch.softmax(x, 0)", "library"),
        ('S = r"""\n#include <x>\n__device__ int seen[4];\n"""', "outlives"),
        ('S = r"""\n__device__ float* kept = nullptr;\n"""', "outlives"),
        ('S = r"""\n__global__ void k() { long long t = clock64(); }\n"""', "clock"),
        ('S = r"""\n__global__ void k() { asm("mov.u64 %0, %globaltimer;"); }\n"""', "clock"),
        ('S = r"""\n__global__ void k() { other<<<1, 1>>>(); }\n"""', "from the device"),
        ('S = r"""\n__global__ void k() { p = malloc(8); }\n"""', "allocates"),
        ('S = r"""\n#include "/proc/self/environ"\n"""', "files"),
    ],
)
def test_finding_names_its_line(line, word):
    found = lint_cuda(f"{HONEST}\n{line}\n")
    first = len(HONEST.splitlines()) + 2
    lines = range(first, first + len(line.splitlines()))
    assert any(word in text for text in found)
    assert all(int(text.split(":")[0].removeprefix("line ")) in lines for text in found)


def test_what_does_not_parse_has_no_lint_cuda():
    assert lint_cuda("def run(x:") == []
    assert normalise_kernels("def run(x: ") == "def run(x:"


def test_comments_and_layout_of_the_kernels_do_not_count():
    other = HONEST.replace("  // clock64()", "").replace(
        "  int i = threadIdx.x;  /* malloc( */", "int i=threadIdx.x;"
    )
    other = other.replace("Doubles;", "Twice;")
    assert other != HONEST
    assert normalise_kernels(other) == normalise_kernels(HONEST)
    assert normalise_kernels(HONEST.replace("2 * x", "3 * x")) != normalise_kernels(HONEST)
    assert normalise_kernels(HONEST.replace("grid=1", "grid=2")) != normalise_kernels(HONEST)


def test_lines_of_the_file_are_named_where_its_strings_stand():
    (text,) = kernel_strings(ast.parse(HONEST))
    lines = with_line_numbers(f"#define N 4\n{text}", HONEST, "v3.py").splitlines()
    first = HONEST.splitlines().index('SOURCE = r"""') + 1
    assert lines[:2] == ["#define N 4", f'#line {first} "v3.py"']
    kernel = next(number for number, line in enumerate(lines) if "void scale" in line)
    assert "void scale" in HONEST.splitlines()[first + (kernel - 2) - 1]
    assert with_line_numbers("void other();", HONEST, "v3.py") == "void other();"


def test_programs_that_can_be_read_without_running():
    (program,) = static_programs(ast.parse(HONEST))
    assert (program.std, program.arch) == ("c++20", "sm_90a")
    assert "void scale" in program.code
    for change in (('"c++20"', "STD"), ("use_fast_math=True", 'define_macro="N"'), ("(SOURCE,", "(SOURCE + '',")):
        assert static_programs(ast.parse(HONEST.replace(*change))) == []
