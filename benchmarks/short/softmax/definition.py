"""Softmax over the last axis at a few sizes, so that two campaigns fit into minutes of a rented machine."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, dtype: str, set: str = "representative", distribution: str = "normal") -> Workload:
    """Return a workload."""
    short = {"bfloat16": "bf16", "float32": "fp32"}[dtype]
    drawn = "" if distribution == "normal" else f"-{distribution}"
    return Workload(
        name=f"{rows}x{cols}-{short}{drawn}",
        axes={"rows": rows, "cols": cols},
        dtype=dtype,
        distribution=distribution,
        set=set,
    )


definition = Definition(
    name="softmax",
    description="y = exp(x - max(x)) / sum(exp(x - max(x))), row by row",
    op_type="softmax",
    axes={"rows": "batch times heads, or tokens", "cols": "keys, or vocabulary"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="5 * rows * cols",
    workloads=(
        at(8192, 8192, "bfloat16"),
        at(512, 131072, "bfloat16"),
        at(16, 131072, "bfloat16"),
        at(1, 1, "float32", "odd"),
        at(3, 1000, "float32", "odd"),
        at(129, 8191, "bfloat16", "odd"),
        at(2, 50257, "bfloat16", "odd"),
        at(3, 3000, "bfloat16", "odd", "masked"),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return the softmax of each row."""
    return torch.softmax(x, dim=-1)


def extra(x: torch.Tensor) -> torch.Tensor:
    """Rounding x - max(x) moves the exponential by as many roundoffs as the difference is large."""
    return 4 * (x.amax(-1, keepdim=True) - x).nan_to_num(posinf=0.0)
