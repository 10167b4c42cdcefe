"""Histogram of bytes, as a newcomer writes it: two sizes, no odd ones."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(count):
    return Workload(name=f"{count}", axes={"count": count})


definition = Definition(
    name="tally",
    description="counts[b] = number of pixels that are b",
    op_type="histogram",
    axes={"count": "pixels", "bins": 256},
    inputs={"pixels": TensorSpec(shape=("count",), dtype="uint8", distribution="integers:0:bins")},
    outputs={"counts": TensorSpec(shape=("bins",), dtype="int64")},
    flops="count",
    workloads=(at(100000), at(1000000)),
)


def reference(pixels):
    return torch.bincount(pixels.long(), minlength=256)
