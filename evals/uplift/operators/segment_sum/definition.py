"""Sums of ragged segments of rows, whose lengths follow Zipf's law: a few are long, most are short, some are empty."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, segments: int, cols: int, dtype: str = "bfloat16", set: str = "representative") -> Workload:
    short = {"bfloat16": "bf16", "float32": "fp32"}[dtype]
    axes = {"rows": rows, "segments": segments, "cols": cols}
    return Workload(name=f"{rows}x{cols}-in-{segments}-{short}", axes=axes, dtype=dtype, set=set)


definition = Definition(
    name="segment_sum",
    description="y[s] = sum of values[offsets[s]:offsets[s + 1]], row by row; an empty segment gives 0",
    op_type="reduction",
    axes={"rows": "rows of all segments", "segments": "segments", "cols": "columns of a row"},
    inputs={
        "values": TensorSpec(shape=("rows", "cols")),
        "offsets": TensorSpec(
            shape=("segments + 1",), dtype="int64", description="ascending; the first is 0, the last is rows"
        ),
    },
    outputs={"y": TensorSpec(shape=("segments", "cols"))},
    flops="rows * cols",
    workloads=(
        at(1 << 20, 1 << 14, 64),
        at(1 << 18, 1 << 16, 128, "float32"),
        at(1 << 16, 64, 256),
        at(1 << 22, 1 << 17, 1, "float32"),
        at(1, 1, 1, "float32", "odd"),
        at(1000, 77, 3, "bfloat16", "odd"),
        at(5000, 2, 65, "float32", "odd"),
        at(37, 500, 17, "bfloat16", "odd"),
    ),
    constraints=("offsets ascend from 0 to rows; equal neighbours are an empty segment",),
)


def inputs(workload: Workload, generator: torch.Generator, device: str) -> dict[str, torch.Tensor]:
    """Values of both signs, and segments in random order whose lengths fall as rank to the power -1.1."""
    rows, segments, cols = (workload.axes[name] for name in ("rows", "segments", "cols"))
    weights = torch.arange(1, segments + 1, device=device, dtype=torch.float64).pow(-1.1)
    weights = weights[torch.randperm(segments, generator=generator, device=device)]
    ends = weights.cumsum(0) / weights.sum()
    points = torch.rand(rows, generator=generator, device=device, dtype=torch.float64)
    owners = torch.searchsorted(ends, points).clamp_(max=segments - 1)
    lengths = torch.zeros(segments, dtype=torch.int64, device=device)
    lengths.scatter_add_(0, owners, torch.ones_like(owners))
    offsets = torch.zeros(segments + 1, dtype=torch.int64, device=device)
    offsets[1:] = lengths.cumsum(0)
    values = torch.randn((rows, cols), generator=generator, device=device).to(getattr(torch, workload.dtype))
    return {"values": values, "offsets": offsets}


def reference(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    wide = values if values.dtype == torch.float64 else values.float()
    return torch.segment_reduce(wide, "sum", offsets=offsets, axis=0, initial=0, unsafe=True).to(values.dtype)


def magnitude(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Values of both signs cancel."""
    return reference(values.abs(), offsets)


def extra(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Rounding errors of a sum grow as the root of the segment's length."""
    return (offsets.diff().to(values.dtype).sqrt() / 2).unsqueeze(-1).expand(-1, values.shape[1])
