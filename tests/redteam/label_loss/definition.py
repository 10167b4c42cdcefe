"""Mean cross entropy of a batch of tokens, as a training step has it; padding has no label."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(tokens: int, classes: int, set: str = "representative") -> Workload:
    return Workload(name=f"{tokens}x{classes}", axes={"tokens": tokens, "classes": classes}, set=set)


definition = Definition(
    name="label_loss",
    description="loss = mean over labelled tokens of logsumexp(logits) - logits[label]",
    op_type="loss",
    axes={"tokens": "tokens", "classes": "vocabulary"},
    inputs={
        "logits": TensorSpec(shape=("tokens", "classes")),
        "labels": TensorSpec(
            shape=("tokens",),
            dtype="int64",
            distribution="integers:0:classes",
            description="class of each token, or ignore_index",
        ),
        "ignore_index": ScalarSpec(type="int", value=-100),
    },
    outputs={"loss": TensorSpec(shape=())},
    tolerance=Tolerance(reduction="classes + tokens"),
    flops="4 * tokens * classes",
    constraints=("labels are below classes, or ignore_index where a token is padding",),
    workloads=(at(256, 1000), at(64, 4096), at(3, 17, "odd"), at(67, 130, "odd")),
)


def reference(logits: torch.Tensor, labels: torch.Tensor, ignore_index: int) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits, labels, ignore_index=ignore_index)


def magnitude(logits: torch.Tensor, labels: torch.Tensor, ignore_index: int) -> torch.Tensor:
    """The label's logit is subtracted from a number as large."""
    return (4 * logits.abs().amax(-1) + 10).mean()
