"""Least sum of a value and the price of its column, row by row, over tensors that lie in memory in any way."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="cheapest",
    description="y[row] = min over columns of x[row, col] + price[col]",
    op_type="reduction",
    axes={"rows": "offers", "cols": "columns"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols"), layout="any"),
        "price": TensorSpec(shape=("cols",), layout="any"),
    },
    outputs={"y": TensorSpec(shape=("rows",))},
    flops="2 * rows * cols",
    workloads=(at(256, 512), at(64, 2000)),
)


def reference(x: torch.Tensor, price: torch.Tensor) -> torch.Tensor:
    return (x + price).amin(-1)
