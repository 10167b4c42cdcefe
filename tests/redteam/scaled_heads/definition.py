"""Scale of each attention head, of a tensor in any layout."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(batch: int, heads: int, dim: int, set: str = "representative") -> Workload:
    axes = {"batch": batch, "heads": heads, "dim": dim}
    return Workload(name=f"{batch}x{heads}x{dim}", axes=axes, set=set)


definition = Definition(
    name="scaled_heads",
    description="y = x * scale[head]",
    op_type="other",
    axes={"batch": "sequences", "heads": "heads", "dim": "features of a head"},
    inputs={
        "x": TensorSpec(shape=("batch", "heads", "dim"), layout="any"),
        "scale": TensorSpec(shape=("heads",)),
    },
    outputs={"y": TensorSpec(shape=("batch", "heads", "dim"))},
    tolerance=Tolerance(),
    flops="batch * heads * dim",
    workloads=(at(64, 16, 128), at(100, 12, 64), at(1, 1, 1, "odd"), at(7, 3, 67, "odd"), at(5, 2, 129, "odd")),
)


def reference(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return x * scale[:, None]
