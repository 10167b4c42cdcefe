"""Red team's lookup of the rows of a table by tokens."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(tokens: int, rows: int, width: int, set: str = "representative") -> Workload:
    axes = {"tokens": tokens, "rows": rows, "width": width}
    return Workload(name=f"{tokens}x{rows}x{width}", axes=axes, set=set)


definition = Definition(
    name="token_rows",
    description="y = table[ids]: tokens or positions",
    op_type="embedding",
    axes={"tokens": "ids of a call", "rows": "rows of the table", "width": "channels"},
    inputs={
        "table": TensorSpec(shape=("rows", "width"), role="weight"),
        "ids": TensorSpec(shape=("tokens",), dtype="int64", distribution="zipf:rows"),
    },
    outputs={"y": TensorSpec(shape=("tokens", "width"))},
    flops="0",
    workloads=(
        at(512, 4096, 64),
        at(1000, 3000, 100),
        at(1, 1, 1, "odd"),
        at(67, 129, 33, "odd"),
        at(129, 257, 17, "odd"),
    ),
)


def reference(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return table[ids]
