"""Red team's ragged sum: group g holds the rows offsets[g] to offsets[g + 1], and may be empty or all of them."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(total: int, groups: int, cols: int, set: str = "representative") -> Workload:
    axes = {"total": total, "groups": groups, "cols": cols}
    return Workload(name=f"{total}x{cols}-by-{groups}", axes=axes, set=set)


definition = Definition(
    name="segment_sum",
    description="out[g] = sum of values[offsets[g]:offsets[g + 1]] over rows",
    op_type="reduction",
    axes={"total": "rows of all groups", "groups": "groups", "cols": "columns"},
    inputs={
        "values": TensorSpec(shape=("total", "cols")),
        "offsets": TensorSpec(shape=("groups + 1",), dtype="int32", distribution="offsets:total"),
    },
    outputs={"out": TensorSpec(shape=("groups", "cols"))},
    outputs_are="given",
    tolerance=Tolerance(reduction="total"),
    flops="total * cols",
    workloads=(
        at(8192, 16, 128),
        at(3000, 17, 120),
        at(262144, 4096, 64, "full"),
        at(65536, 512, 256, "full"),
        at(1, 1, 1, "odd"),
        at(129, 7, 17, "odd"),
        at(67, 40, 33, "odd"),
        at(1025, 2, 65, "odd"),
    ),
    constraints=("offsets ascend from 0 to total",),
)


def reference(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    counts = offsets.diff().long()
    groups = torch.repeat_interleave(torch.arange(len(counts), device=values.device), counts)
    out = torch.zeros((len(counts), values.shape[1]), dtype=values.dtype, device=values.device)
    return out.index_add_(0, groups, values)


def magnitude(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Sums cancel: rounding errors are relative to the sum of the absolute values."""
    return reference(values.abs(), offsets)
