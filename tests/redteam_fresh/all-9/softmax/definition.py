"""Softmax over the last axis, at shapes small enough for two CPU cores and for Triton's interpreter."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative", distribution: str = "normal") -> Workload:
    drawn = "" if distribution == "normal" else f"-{distribution}"
    return Workload(
        name=f"{rows}x{cols}{drawn}", axes={"rows": rows, "cols": cols}, distribution=distribution, set=set
    )


definition = Definition(
    name="softmax",
    description="y = exp(x - max(x)) / sum(exp(x - max(x))), row by row",
    op_type="softmax",
    axes={"rows": "tokens", "cols": "keys"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="5 * rows * cols",
    workloads=(
        at(16, 8192),
        at(9, 16384),
        at(4096, 4096, "full"),
        at(512, 32000, "full"),
        at(1, 1, "odd"),
        at(3, 17, "odd"),
        at(2, 1025, "odd"),
        at(3, 1000, "odd", "masked"),
        at(13, 129, "odd", "nonfinite"),
        at(1, 8209, "odd"),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


def extra(x: torch.Tensor) -> torch.Tensor:
    """Rounding x - max(x) moves the exponential by as many roundoffs as the difference is large."""
    return 4 * (x.amax(-1, keepdim=True) - x).nan_to_num(posinf=0.0)
