"""Cross entropy of rows of logits."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="cross_entropy",
    description="loss[r] = log(sum(exp(x[r]))) - x[r, label[r]]",
    op_type="loss",
    axes={"rows": "tokens", "cols": "classes"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "label": TensorSpec(shape=("rows",), dtype="int64", distribution="integers:0:cols"),
    },
    outputs={"loss": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="4 * rows * cols",
    workloads=(at(256, 2048), at(320, 1500)),
)


def reference(x: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    return torch.logsumexp(x, -1) - x.gather(-1, label[:, None])[:, 0]


def magnitude(x: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    return x.abs().amax(-1) + torch.logsumexp(x, -1).abs() + 1
