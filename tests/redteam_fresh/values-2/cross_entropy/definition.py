"""cross_entropy for an attack on the gate."""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload



def at(rows, classes):
    return Workload(name=f"{rows}x{classes}", axes={"rows": rows, "classes": classes})


definition = Definition(
    name="cross_entropy",
    description="loss of each row: logsumexp(z) - z[label] with z = logits / temperature; 0 where the label is ignore_index",
    op_type="loss",
    axes={"rows": "tokens", "classes": "vocabulary"},
    inputs={
        "logits": TensorSpec(shape=("rows", "classes")),
        "labels": TensorSpec(shape=("rows",), dtype="int64", distribution="integers:0:classes"),
        "temperature": ScalarSpec(value=1.0),
        "ignore_index": ScalarSpec(type="int", value=-100),
    },
    outputs={"loss": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="classes"),
    flops="4 * rows * classes",
    constraints=("0 <= label < classes, or label == ignore_index",),
    workloads=(at(64, 1000), at(32, 4096)),
)


def reference(logits, labels, temperature, ignore_index):
    return torch.nn.functional.cross_entropy(logits / temperature, labels, reduction="none", ignore_index=ignore_index)


def magnitude(logits, labels, temperature, ignore_index):
    return 4 * (logits / temperature).abs().amax(-1) + 10
