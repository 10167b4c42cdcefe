"""Embedding lookup."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(count, rows, dim):
    return Workload(name=f"{count}of{rows}x{dim}", axes={"count": count, "rows": rows, "dim": dim})


definition = Definition(
    name="gather",
    description="y[i] = table[index[i]] * scale, and zeros where index[i] is padding",
    op_type="gather",
    axes={"count": "tokens", "rows": "vocabulary", "dim": "hidden size"},
    inputs={
        "table": TensorSpec(shape=("rows", "dim"), role="weight"),
        "index": TensorSpec(shape=("count",), dtype="int64", distribution="integers:0:rows"),
        "scale": ScalarSpec(value=8.0),
        "padding": ScalarSpec(type="int", value=-1),
    },
    outputs={"y": TensorSpec(shape=("count", "dim"))},
    tolerance=Tolerance(),
    flops="count * dim",
    workloads=(at(2048, 1024, 256), at(1024, 4096, 512)),
    constraints=("0 <= index < rows, or index == padding",),
)


def reference(table, index, scale, padding):
    rows = table[index.clamp(min=0)] * scale
    return rows.masked_fill((index == padding)[:, None], 0.0)
