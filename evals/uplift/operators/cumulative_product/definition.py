"""Cumulative product along rows of factors near one, as in survival curves and decays."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, dtype: str = "float32", set: str = "representative") -> Workload:
    short = {"bfloat16": "bf16", "float32": "fp32"}[dtype]
    return Workload(name=f"{rows}x{cols}-{short}", axes={"rows": rows, "cols": cols}, dtype=dtype, set=set)


definition = Definition(
    name="cumulative_product",
    description="y[r, c] = x[r, 0] * x[r, 1] * ... * x[r, c]",
    op_type="scan",
    axes={"rows": "independent products", "cols": "factors of a row"},
    inputs={"x": TensorSpec(shape=("rows", "cols"), distribution="normal:1:1/64")},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="rows * cols",
    workloads=(
        at(8192, 2048),
        at(64, 131072),
        at(1, 1 << 20),
        at(65536, 256, "bfloat16"),
        at(1, 1, set="odd"),
        at(3, 1023, set="odd"),
        at(17, 100, "bfloat16", "odd"),
        at(2, 33333, set="odd"),
    ),
    constraints=("no product overflows or underflows",),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    wide = x if x.dtype == torch.float64 else x.float()
    return torch.cumprod(wide, dim=-1).to(x.dtype)


def extra(x: torch.Tensor) -> torch.Tensor:
    """Roundings of a product add up along the row: six deviations of their sum, as one of millions of rows meets."""
    factors = torch.arange(1, x.shape[1] + 1, device=x.device, dtype=x.dtype)
    return (1.5 * factors.sqrt()).expand_as(x)
