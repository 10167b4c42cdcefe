"""A definition, and a version of it that a port campaign can judge."""

from __future__ import annotations

DEFINITION = """
import torch
from warpsmith import Definition, TensorSpec, Workload

definition = Definition(
    name="double",
    description="Twice x.",
    axes={"n": "length"},
    inputs={"x": TensorSpec(shape=("n",))},
    outputs={"y": TensorSpec(shape=("n",))},
    flops="n",
    workloads=(
        Workload(name="a", axes={"n": 4096}),
        Workload(name="half", axes={"n": 64}, dtype="bfloat16"),
        Workload(name="odd", axes={"n": 5}, set="odd"),
    ),
)


def reference(x):
    return 2 * x
"""
SOURCE = """
import os
import torch, triton
import triton.language as tl
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
FACTOR = tl.constexpr(2)

@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n) * FACTOR, mask=o < n)

@triton.jit
def quick(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    tl.store(y_ptr, tl.load(x_ptr))

def run(x):
    y = torch.empty_like(x)
    blocks = torch.cuda.get_device_properties(0).multi_processor_count
    KERNEL[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024, num_warps=WARPS)
    return y
"""
