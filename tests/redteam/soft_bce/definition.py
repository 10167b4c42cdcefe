"""Binary cross entropy of predicted probabilities against soft targets, as distillation has them."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="soft_bce",
    description="loss = mean of -(target * log(p) + (1 - target) * log(1 - p)), row by row",
    op_type="loss",
    axes={"rows": "examples", "cols": "labels"},
    inputs={
        "p": TensorSpec(shape=("rows", "cols"), distribution="uniform:0.0001:0.9999", description="the student's"),
        "target": TensorSpec(shape=("rows", "cols"), distribution="uniform:0:1", description="the teacher's"),
    },
    outputs={"loss": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="8 * rows * cols",
    workloads=(at(256, 512), at(64, 1000), at(1, 1, "odd"), at(3, 17, "odd"), at(33, 130, "odd")),
)


def reference(p: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return -(target * p.log() + (1 - target) * torch.log1p(-p)).mean(-1)
