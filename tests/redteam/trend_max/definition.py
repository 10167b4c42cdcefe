"""Running maximum along time, as a high-water mark of a series."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(series: int, steps: int, set: str = "representative") -> Workload:
    return Workload(name=f"{series}x{steps}", axes={"series": series, "steps": steps}, set=set)


definition = Definition(
    name="trend_max",
    description="y[s, t] = max(x[s, 0], ..., x[s, t])",
    op_type="scan",
    axes={"series": "series", "steps": "time steps"},
    inputs={"x": TensorSpec(shape=("series", "steps"))},
    outputs={"y": TensorSpec(shape=("series", "steps"))},
    flops="series * steps",
    workloads=(at(256, 4096), at(100, 3000), at(1, 1, "odd"), at(17, 67, "odd"), at(33, 1290, "odd")),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.cummax(-1).values
