"""Mean cross entropy of each sequence over the tokens that have a label; 0 for one without labels."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(tokens: int, classes: int, set: str = "representative") -> Workload:
    return Workload(name=f"{tokens}x{classes}", axes={"tokens": tokens, "classes": classes}, set=set)


definition = Definition(
    name="mean_loss",
    description="loss = sum of logsumexp(logits) - logits[label] over labeled tokens / max(number of them, 1)",
    op_type="loss",
    axes={"tokens": "tokens", "classes": "vocabulary"},
    inputs={
        "logits": TensorSpec(shape=("tokens", "classes")),
        "labels": TensorSpec(shape=("tokens",), dtype="int64", distribution="integers:0:classes"),
        "ignore_index": ScalarSpec(type="int", value=-100),
    },
    outputs={"loss": TensorSpec(shape=())},
    tolerance=Tolerance(reduction="tokens + classes"),
    flops="4 * tokens * classes",
    constraints=("0 <= label < classes, or label == ignore_index",),
    workloads=(at(256, 1000), at(64, 8192), at(1, 1, "odd"), at(67, 17, "odd"), at(129, 130, "odd")),
)


def reference(logits: torch.Tensor, labels: torch.Tensor, ignore_index: int) -> torch.Tensor:
    losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none", ignore_index=ignore_index)
    return losses.sum() / (labels != ignore_index).sum().clamp(min=1)


def magnitude(logits: torch.Tensor, labels: torch.Tensor, ignore_index: int) -> torch.Tensor:
    """The label's logit is subtracted from a number as large."""
    return 4 * logits.abs().amax() + 10
