"""Cross entropy of each token; prompts and padding have the label ignore_index and no loss."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(tokens: int, classes: int, set: str = "representative") -> Workload:
    return Workload(name=f"{tokens}x{classes}", axes={"tokens": tokens, "classes": classes}, set=set)


definition = Definition(
    name="token_loss",
    description="loss = logsumexp(logits) - logits[label] of each token; 0 where the label is ignore_index",
    op_type="loss",
    axes={"tokens": "tokens", "classes": "vocabulary"},
    inputs={
        "logits": TensorSpec(shape=("tokens", "classes")),
        "labels": TensorSpec(shape=("tokens",), dtype="int64", distribution="integers:0:classes"),
        "ignore_index": ScalarSpec(type="int", value=-100),
    },
    outputs={"loss": TensorSpec(shape=("tokens",))},
    tolerance=Tolerance(reduction="classes"),
    flops="4 * tokens * classes",
    constraints=("0 <= label < classes, or label == ignore_index",),
    workloads=(at(256, 1000), at(64, 8192), at(1, 1, "odd"), at(67, 17, "odd"), at(129, 130, "odd")),
)


def reference(logits: torch.Tensor, labels: torch.Tensor, ignore_index: int) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits, labels, reduction="none", ignore_index=ignore_index)


def magnitude(logits: torch.Tensor, labels: torch.Tensor, ignore_index: int) -> torch.Tensor:
    """The label's logit is subtracted from a number as large."""
    return 4 * logits.abs().amax(-1) + 10
