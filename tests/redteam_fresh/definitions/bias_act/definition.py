"""Bias, leaky ReLU and a scaled residual, as a newcomer writes it: two sizes, the usual numbers."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="bias_act",
    description="y = leaky_relu(x + bias, slope) + beta * residual, squared before the residual if `squared`",
    op_type="activation",
    axes={"rows": "tokens", "cols": "channels"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "bias": TensorSpec(shape=("cols",), role="weight"),
        "residual": TensorSpec(shape=("rows", "cols")),
        "slope": ScalarSpec(value=0.01),
        "beta": ScalarSpec(value=0.0, description="weight of the residual"),
        "squared": ScalarSpec(type="bool", value=False),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="4 * rows * cols",
    workloads=(at(1024, 512), at(768, 640)),
)


def reference(x, bias, residual, slope, beta, squared):
    v = torch.nn.functional.leaky_relu(x + bias, slope)
    return (v * v if squared else v) + beta * residual


def magnitude(x, bias, residual, slope, beta, squared):
    v = x.abs() + bias.abs()
    v = v * max(1.0, abs(slope))
    return (v * v if squared else v) + abs(beta) * residual.abs()
