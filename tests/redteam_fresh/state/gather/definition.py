"""Rows of a table, as for an embedding, as a newcomer writes it."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload

definition = Definition(
    name="gather",
    description="y[i] = table[ids[i]]",
    axes={"n": "tokens", "d": "width", "vocab": 4096},
    inputs={
        "table": TensorSpec(shape=("vocab", "d"), role="weight"),
        "ids": TensorSpec(shape=("n",), dtype="int64"),
    },
    outputs={"y": TensorSpec(shape=("n", "d"))},
    flops="n * d",
    workloads=(
        Workload(name="512x64", axes={"n": 512, "d": 64}),
        Workload(name="2048x128", axes={"n": 2048, "d": 128}),
    ),
)


def reference(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return table[ids]
