"""Place of the largest element of each column."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="col_argmax",
    description="index of the first largest element of each column",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"index": TensorSpec(shape=("cols",), dtype="int64")},
    flops="rows * cols",
    workloads=(
        Workload(name="1024x512", axes={"rows": 1024, "cols": 512}),
        Workload(name="2048x256", axes={"rows": 2048, "cols": 256}),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.argmax(0)
