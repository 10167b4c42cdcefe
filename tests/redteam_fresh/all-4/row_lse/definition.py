"""Log of the sum of exponentials."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="row_lse",
    description="y = log(sum(exp(x))) over the last axis; x may be masked with minus infinity",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="4 * rows * cols",
    workloads=(
        Workload(name="1024x512", axes={"rows": 1024, "cols": 512}),
        Workload(name="512x1024", axes={"rows": 512, "cols": 1024}),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.logsumexp(x, -1)


def magnitude(x: torch.Tensor) -> torch.Tensor:
    """x - max(x) and the largest element are rounded."""
    most = x.amax(-1)
    return most.abs() + (x - most[:, None]).abs().amax(-1) + 1
