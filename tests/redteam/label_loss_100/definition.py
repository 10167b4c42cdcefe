"""Cross entropy of each token, without a mean; PyTorch's usual label of padding, -100, has no loss."""

import torch
from torch.nn import functional

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(tokens: int, classes: int, set: str = "representative") -> Workload:
    return Workload(name=f"{tokens}x{classes}", axes={"tokens": tokens, "classes": classes}, set=set)


definition = Definition(
    name="label_loss_100",
    description="loss = logsumexp(logits) - logits[label] of each token; 0 where the label is -100",
    op_type="loss",
    axes={"tokens": "tokens", "classes": "vocabulary"},
    inputs={
        "logits": TensorSpec(shape=("tokens", "classes")),
        "labels": TensorSpec(
            shape=("tokens",),
            dtype="int64",
            distribution="integers:0:classes",
            description="class of each token, or -100 where it is padding",
        ),
    },
    outputs={"loss": TensorSpec(shape=("tokens",))},
    tolerance=Tolerance(reduction="classes"),
    flops="4 * tokens * classes",
    constraints=("0 <= labels < classes, or labels == -100",),
    workloads=(at(512, 1000), at(96, 8000), at(3, 67, "odd"), at(17, 129, "odd")),
)


def reference(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits, labels, reduction="none")


def magnitude(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The label's logit is subtracted from a number as large."""
    return 4 * logits.abs().amax(-1) + 10
