"""Cross entropy of each token."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows, classes):
    return Workload(name=f"{rows}x{classes}", axes={"rows": rows, "classes": classes})


definition = Definition(
    name="cross_entropy",
    description="loss of each row against its class; 0 where the class is ignore_index",
    op_type="loss",
    axes={"rows": "tokens", "classes": "vocabulary"},
    inputs={
        "logits": TensorSpec(shape=("rows", "classes")),
        "target": TensorSpec(shape=("rows",), dtype="int64", distribution="integers:0:classes"),
        "ignore_index": ScalarSpec(type="int", value=-100),
        "smoothing": ScalarSpec(value=0.0),
    },
    outputs={"loss": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="classes"),
    flops="4 * rows * classes",
    workloads=(at(512, 1000), at(64, 32000)),
)


def reference(logits, target, ignore_index, smoothing):
    return torch.nn.functional.cross_entropy(
        logits, target, ignore_index=ignore_index, label_smoothing=smoothing, reduction="none"
    )


def magnitude(logits, target, ignore_index, smoothing):
    return logits.logsumexp(-1).abs() + 2 * logits.abs().amax(-1) + 1
