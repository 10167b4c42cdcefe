"""Bias and leaky ReLU, with rows that need not lie one after the other and a slope of the caller's choice."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative", slope: float = 0.01) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, scalars={"slope": slope}, set=set)


definition = Definition(
    name="bias_leaky",
    description="y = leaky(x + bias), where leaky(v) = v for positive v, else slope * v",
    op_type="activation",
    axes={"rows": "tokens", "cols": "channels"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols"), layout="any"),
        "bias": TensorSpec(shape=("cols",), role="weight"),
        "slope": ScalarSpec(value=0.01),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(),
    flops="3 * rows * cols",
    workloads=(
        at(512, 1024),
        at(384, 1536, slope=0.2),
        at(1, 1, "odd"),
        at(3, 17, "odd", slope=0.5),
        at(9, 127, "odd"),
        at(5, 1025, "odd"),
    ),
)


def reference(x: torch.Tensor, bias: torch.Tensor, slope: float) -> torch.Tensor:
    return torch.nn.functional.leaky_relu(x + bias, slope)
