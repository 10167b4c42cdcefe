"""Rows of a table."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="take_rows",
    description="y[i] = table[ids[i]], bit by bit",
    axes={"entries": "entries", "n": "rows", "cols": "columns"},
    inputs={
        "table": TensorSpec(shape=("entries", "cols")),
        "ids": TensorSpec(shape=("n",), dtype="int64", distribution="integers:0:entries"),
    },
    outputs={"y": TensorSpec(shape=("n", "cols"))},
    flops="n * cols",
    workloads=(
        Workload(name="1000x512", axes={"entries": 1000, "n": 512, "cols": 256}),
        Workload(name="4000x2048", axes={"entries": 4000, "n": 2048, "cols": 64}),
    ),
)


def reference(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return table[ids]
