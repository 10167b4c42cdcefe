"""A gated unit."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="gated",
    description="y = x[:, :half] * sigmoid(x[:, half:])",
    axes={"rows": "rows", "half": "columns of the result"},
    inputs={"x": TensorSpec(shape=("rows", "2 * half"))},
    outputs={"y": TensorSpec(shape=("rows", "half"))},
    outputs_are="given",
    flops="8 * rows * half",
    workloads=(
        Workload(name="256x256", axes={"rows": 256, "half": 256}),
        Workload(name="1024x128", axes={"rows": 1024, "half": 128}),
    ),
    constraints=("half is a multiple of 8",),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x[:, :half] * torch.sigmoid(x[:, half:])


def extra(x: torch.Tensor) -> torch.Tensor:
    """The argument of the exponential is rounded."""
    return x[:, x.shape[-1] // 2 :].abs()
