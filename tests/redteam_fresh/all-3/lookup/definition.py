"""Rows of a table."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="lookup",
    description="y[i] = table[index[i]]",
    axes={"words": "rows of the table", "width": "columns", "tokens": "rows that are asked for"},
    inputs={
        "table": TensorSpec(shape=("words", "width"), role="weight"),
        "index": TensorSpec(shape=("tokens",), dtype="int64", distribution="integers:0:words"),
    },
    outputs={"y": TensorSpec(shape=("tokens", "width"))},
    flops="0 * tokens",
    workloads=(
        Workload(name="a", axes={"words": 2000, "width": 64, "tokens": 4000}),
        Workload(name="b", axes={"words": 1000, "width": 128, "tokens": 2048}),
    ),
)


def reference(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return table[index]
