"""Sum of the table's rows of each bag, as torch.nn.functional.embedding_bag with mode="sum" and offsets."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, total: int, bags: int, set: str = "representative") -> Workload:
    axes = {"rows": rows, "cols": cols, "total": total, "bags": bags}
    return Workload(name=f"{rows}x{cols}-{total}-in-{bags}", axes=axes, set=set)


definition = Definition(
    name="embedding_bag",
    description="y[b] = sum of table[ids[i]] for i from offsets[b] to offsets[b + 1], the last bag to the end",
    op_type="embedding",
    axes={"rows": "rows of the table", "cols": "width of a row", "total": "ids of all bags", "bags": "bags"},
    inputs={
        "table": TensorSpec(shape=("rows", "cols"), role="weight"),
        "ids": TensorSpec(shape=("total",), dtype="int64", distribution="integers:0:rows"),
        "offsets": TensorSpec(
            shape=("bags",),
            dtype="int64",
            distribution="offsets:total",
            description="where each bag begins; ascending from 0",
        ),
    },
    outputs={"y": TensorSpec(shape=("bags", "cols"))},
    outputs_are="given",
    tolerance=Tolerance(reduction="total"),
    flops="total * cols",
    workloads=(
        at(1000, 64, 2048, 128), at(500, 32, 4096, 64),
        at(3, 17, 9, 4, "odd"), at(1, 1, 1, 1, "odd"), at(67, 33, 129, 17, "odd"),
    ),
)


def reference(table: torch.Tensor, ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.embedding_bag(ids, table, offsets, mode="sum")


def magnitude(table: torch.Tensor, ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    return reference(table.abs(), ids, offsets)
