"""Red team's mean of the rows of each segment."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(groups: int, total: int, width: int, set: str = "representative") -> Workload:
    axes = {"groups": groups, "total": total, "width": width}
    return Workload(name=f"{groups}x{total}x{width}", axes=axes, set=set)


definition = Definition(
    name="segment_mean",
    description="y = mean of the rows of each segment, zero of an empty one",
    op_type="reduction",
    axes={"groups": "segments", "total": "rows of all segments", "width": "channels"},
    inputs={
        "x": TensorSpec(shape=("total", "width")),
        "cuts": TensorSpec(shape=("groups + 1",), dtype="int64", distribution="offsets:total"),
    },
    outputs={"y": TensorSpec(shape=("groups", "width"))},
    outputs_are="given",
    tolerance=Tolerance(reduction="total"),
    flops="total * width",
    workloads=(at(64, 2048, 32), at(128, 4096, 24)),
)


def reference(x: torch.Tensor, cuts: torch.Tensor) -> torch.Tensor:
    counts = cuts.diff()
    groups = torch.repeat_interleave(torch.arange(len(counts), device=x.device), counts)
    sums = x.new_zeros((len(counts), x.shape[1])).index_add_(0, groups, x)
    return sums / counts.clamp(min=1)[:, None].to(x.dtype)


def magnitude(x: torch.Tensor, cuts: torch.Tensor) -> torch.Tensor:
    """Terms cancel: rounding errors are relative to the sum of their absolute values."""
    return reference(x.abs(), cuts)
