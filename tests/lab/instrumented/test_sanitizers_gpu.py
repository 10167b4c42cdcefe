"""Planted errors under the real tool: each must be found by its own tool, and sound kernels must pass."""

from __future__ import annotations

import pytest
from lab_samples import GIVEN, SQUARE

from warpsmith.lab.instrumented import sanitizers
from warpsmith.languages.base import Build

pytestmark = pytest.mark.gpu

HONEST = """\
import torch
import triton
import triton.language as tl

@triton.jit
def square(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x * x, mask=at < n)

def run(x):
    y = torch.empty_like(x)
    square[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""

OUT_OF_BOUNDS = HONEST.replace("x * x, mask=at < n", "x * x, mask=at <= n")

UNINITIALIZED = """\
import torch
import triton
import triton.language as tl

@triton.jit
def gather(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.atomic_add(y_ptr + at, x * x, mask=at < n)

def run(x, y):
    gather[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
"""

ZEROED = UNINITIALIZED.replace("    gather[", "    y.zero_()\n    gather[")

REDUCED = """\
import torch
import triton
import triton.language as tl

@triton.jit
def square(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    total = tl.sum(x) * 0.0
    left = tl.reshape(x, (BLOCK // 128, 128)).to(tl.bfloat16)
    product = tl.dot(left, tl.trans(left)) * 0.0
    tl.store(y_ptr + at, x * x + total + tl.max(product), mask=at < n)

def run(x):
    y = torch.empty_like(x)
    square[(1,)](x, y, x.numel(), BLOCK=8192, num_warps=8)
    return y
"""
"""Reductions over warps and a product of matrices: what goes through shared memory, rightly."""

CUDA = """\
import torch

SOURCE = r'''
extern "C" __global__ void square(const float* x, float* y, int n) {
    __shared__ float tile[256];
    int at = blockIdx.x * 256 + threadIdx.x;
    tile[threadIdx.x] = at < n ? x[at] : 0.0f;
    BARRIER
    float other = tile[255 - threadIdx.x];
    if (at < n) y[at] = tile[threadIdx.x] * tile[threadIdx.x] + 0.0f * other;
}
'''
square = torch.cuda._compile_kernel(SOURCE, "square")

def run(x):
    y = torch.empty_like(x)
    square(grid=(-(-x.numel() // 256), 1, 1), block=(256, 1, 1), args=[x, y, x.numel()])
    return y
"""

RACY = CUDA.replace("BARRIER", "")
SOUND = CUDA.replace("BARRIER", "__syncthreads();")
DIVERGENT = CUDA.replace("BARRIER", "if (threadIdx.x < 40) __syncthreads();")

LIBRARY = """\
import torch

def run(x):
    torch.empty(3, device=x.device).sum()
    return torch.sort(x).values
"""
"""A kernel of PyTorch reads what nobody wrote: noted, not failed."""


@pytest.fixture
def found(workshop):
    """`found(source, definition)`: what the sanitizers say."""
    if sanitizers.find_compute_sanitizer() is None:
        pytest.skip("no compute-sanitizer")

    def run(source, text=SQUARE, name="square"):
        if "_compile_kernel" in source:
            import torch

            if not hasattr(torch.cuda, "_compile_kernel"):
                pytest.skip("this PyTorch compiles no CUDA kernels")
        file = workshop.load(name, text)
        path = workshop.solution(source, "triton").path
        found = sanitizers.run_sanitizers(
            file, Build(path, path, ()), "triton", file.definition.workloads, lambda _: None, seconds=120.0
        )
        if not any(check.ran for check in found.checks) and found.broken is None:
            pytest.skip(found.checks[0].how)
        return found

    return run


@pytest.mark.parametrize("source", [HONEST, REDUCED, SOUND, LIBRARY], ids=["plain", "reduced", "cuda", "library"])
def test_a_sound_kernel_passes_all_tools(found, source):
    said = found(source)
    assert (said.failure, said.broken) == (None, None)
    assert all(check.ran and check.how.startswith("0 errors at small, large") for check in said.checks)


def test_an_output_that_is_zeroed_first_may_be_added_to(found):
    said = found(ZEROED, GIVEN, "given")
    assert (said.failure, said.broken) == (None, None)


def test_a_store_past_the_end_is_found(found):
    """One element past an exact allocation, at a size that no block divides."""
    failure = found(OUT_OF_BOUNDS).failure
    assert failure is not None
    assert failure.startswith("memcheck: Invalid __global__ write of size 4 bytes: out of bounds")
    assert " at small" in failure


def test_a_sum_into_an_output_that_nobody_wrote_is_found(found):
    failure = found(UNINITIALIZED, GIVEN, "given").failure
    assert failure is not None
    assert failure.startswith("initcheck: Uninitialized __global__ memory")
    assert "`gather`" in failure


def test_a_race_in_shared_memory_is_found(found):
    failure = found(RACY).failure
    assert failure is not None
    assert failure.startswith("racecheck: Race reported between ")
    assert "`square" in failure


def test_a_barrier_that_not_all_threads_reach_is_found(found):
    failure = found(DIVERGENT).failure
    assert failure is not None
    assert failure.startswith(("synccheck: Barrier error detected", "racecheck: Race reported"))
