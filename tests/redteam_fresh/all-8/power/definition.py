"""Elements to a common power, as `torch.pow` has it."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="power",
    description="y = x ** exponent; a negative number to a power that is no integer is NaN",
    op_type="elementwise",
    axes={"rows": "sequences", "cols": "places"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "exponent": ScalarSpec(value=2.0, between=(-4.5, 4.5)),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="8 * rows * cols",
    workloads=(at(48, 256), at(100, 300)),
)


def reference(x: torch.Tensor, exponent: float) -> torch.Tensor:
    return x.pow(exponent)
