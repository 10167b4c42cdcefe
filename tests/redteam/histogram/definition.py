"""Histogram of bytes: counts of equal elements, of which a picture has more than a float can count."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(count: int, set: str = "representative") -> Workload:
    return Workload(name=f"{count}", axes={"count": count}, set=set)


definition = Definition(
    name="histogram",
    description="counts[b] = number of pixels that are b",
    op_type="histogram",
    axes={"count": "pixels", "bins": 256},
    inputs={"pixels": TensorSpec(shape=("count",), dtype="uint8", distribution="integers:0:bins")},
    outputs={"counts": TensorSpec(shape=("bins",), dtype="int64")},
    flops="count",
    workloads=(at(100_000), at(1_000_000), at(1, "odd"), at(1025, "odd")),
)


def reference(pixels: torch.Tensor) -> torch.Tensor:
    return torch.bincount(pixels.long(), minlength=256)
