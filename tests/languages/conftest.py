"""Definitions and a way to write solutions."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload

COPY = '''"""A copy."""
import torch, triton
import triton.language as tl

SMS = torch.cuda.get_device_properties("cuda").multi_processor_count

@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n), mask=o < n)

def run(x):
    assert x.is_cuda and x.device.type == "cuda" and SMS > 100
    y = torch.empty(x.shape, dtype=x.dtype, device="cuda")
    with torch.cuda.device(x.device):
        copy[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel(), BLOCK=1024)
    return y
'''


@pytest.fixture
def copy_source():
    """A Triton solution whose host code asks for a device in the usual ways."""
    return COPY


@pytest.fixture
def rmsnorm():
    """Rows normalised: a returned output, a scalar."""
    return Definition(
        name="rmsnorm",
        description="Divide every row by its root mean square.",
        axes={"rows": "rows", "cols": "row length"},
        inputs={
            "x": TensorSpec(shape=("rows", "cols"), description="Rows to normalise."),
            "weight": TensorSpec(shape=("cols",)),
            "eps": ScalarSpec(value=1e-6),
        },
        outputs={"y": TensorSpec(shape=("rows", "cols"))},
        flops="4 * rows * cols",
        workloads=(Workload(name="small", axes={"rows": 64, "cols": 512}),),
    )


@pytest.fixture
def vector():
    """An elementwise operator over one axis, for every kind of test that needs the least."""
    return Definition(
        name="scale",
        description="Twice the vector.",
        axes={"n": "length"},
        inputs={"x": TensorSpec(shape=("n",))},
        outputs={"y": TensorSpec(shape=("n",))},
        flops="n",
        workloads=(Workload(name="million", axes={"n": 1 << 20}),),
    )


@pytest.fixture
def write(tmp_path):
    """Writes a solution's file and gives its path."""

    def put(text: str, name: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return put
