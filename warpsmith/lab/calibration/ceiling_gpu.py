"""Ceilings of a GPU; run as a child process, it prints one JSON object, name to rates in `unit`.

This is the only module of the lab that imports torch and triton at its top, because only that child imports it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from warpsmith.lab.machine import rates

_WARM_UPS = 5
_REPETITIONS = 20
_FLOATS = 2**29
"""Largest number of elements of an array: 2 GiB in float32, far beyond every L2."""
_SIDE = 8192
_BLOCK = 8192
_CHAINS = 2048
_STEPS = 512
_UNROLLED = 16


@triton.jit  # type: ignore[untyped-decorator]
def read_kernel(x: tl.tensor, out: tl.tensor, block: tl.constexpr) -> None:
    """Write one partial sum per program; the array's length is a multiple of `block`."""
    program = tl.program_id(0)
    tl.store(out + program, tl.sum(tl.load(x + program * block + tl.arange(0, block))))


@triton.jit  # type: ignore[untyped-decorator]
def triad_kernel(a: tl.tensor, b: tl.tensor, c: tl.tensor, block: tl.constexpr) -> None:
    """Compute a = b + c / 2; the arrays' length is a multiple of `block`."""
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(a + offsets, tl.load(b + offsets) + 0.5 * tl.load(c + offsets))


@triton.jit  # type: ignore[untyped-decorator]
def multiply_add_kernel(
    out: tl.tensor, factor: float, steps: int, block: tl.constexpr, unrolled: tl.constexpr
) -> None:
    """Run chains of multiply-adds in registers: `block` chains per program, each `steps * unrolled` long."""
    lanes = tl.arange(0, block)
    x = lanes.to(out.dtype.element_ty)
    for _ in range(steps):
        for _ in tl.static_range(unrolled):
            x = x * factor + 0.001
    tl.store(out + tl.program_id(0) * block + lanes, x)


def measure_gpu_rates() -> dict[str, dict[str, Any]]:
    """Measure every ceiling of the first visible GPU: unit, description, and the rate of each repetition."""
    torch.manual_seed(0)
    return {**_bandwidths(), **_multiply_adds(), **_matrices()}


def _bandwidths() -> dict[str, dict[str, Any]]:
    count = _FLOATS
    while 3 * 4 * count > torch.cuda.mem_get_info()[0] // 2:
        count //= 2
    a, b, c = (torch.rand(count, device="cuda") for _ in range(3))
    grid = (count // _BLOCK,)
    sums = torch.empty(grid, device="cuda")
    size, arrays = 4 * count, f"arrays of {4 * count >> 20} MiB"
    return {
        "read": _rates(
            "GB/s", f"Triton sum, {arrays}", size, lambda: read_kernel[grid](a, sums, _BLOCK, num_warps=8)
        ),
        "copy": _rates("GB/s", f"torch copy, {arrays}", 2 * size, lambda: a.copy_(b)),
        "triad": _rates(
            "GB/s",
            f"Triton a = b + s * c, {arrays}",
            3 * size,
            lambda: triad_kernel[grid](a, b, c, _BLOCK, num_warps=8),
        ),
    }


def _multiply_adds() -> dict[str, dict[str, Any]]:
    programs = 16 * torch.cuda.get_device_properties(0).multi_processor_count
    flops = 2.0 * programs * _CHAINS * _STEPS * _UNROLLED
    ceilings = {}
    for dtype in (torch.float32, torch.float64):
        out = torch.empty(programs * _CHAINS, device="cuda", dtype=dtype)

        def work(out: torch.Tensor = out) -> None:
            multiply_add_kernel[(programs,)](out, 0.999, _STEPS, _CHAINS, _UNROLLED, num_warps=8)

        ceilings[f"fma_{_name(dtype)}"] = _rates("GFLOP/s", "Triton, independent multiply-adds", flops, work)
    return ceilings


def _matrices() -> dict[str, dict[str, Any]]:
    torch.set_float32_matmul_precision("high")  # TF32 for float32 matrices.
    ceilings = {}
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        a, b = (torch.randn(_SIDE, _SIDE, device="cuda", dtype=dtype) for _ in range(2))
        out = torch.empty_like(a)

        def work(a: torch.Tensor = a, b: torch.Tensor = b, out: torch.Tensor = out) -> None:
            torch.mm(a, b, out=out)

        name = "tf32" if dtype is torch.float32 else _name(dtype)
        description = f"torch.mm of two {_SIDE} x {_SIDE} matrices of normal random numbers"
        ceilings[f"matrix_{name}"] = _rates("GFLOP/s", description, 2.0 * _SIDE**3, work)
    return ceilings


def _rates(unit: str, description: str, amount: float, work: Callable[[], object]) -> dict[str, Any]:
    """Time `work`; `amount` is its bytes or operations."""
    return {"unit": unit, "how": description, "rates": rates.measure_rates(amount, work, _REPETITIONS, _WARM_UPS)}


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure_gpu_rates()))
