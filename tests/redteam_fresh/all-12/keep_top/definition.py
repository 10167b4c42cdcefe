"""Logits of the k likeliest tokens before sampling; all others become minus infinity."""

from math import inf

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload


def at(rows: int, vocab: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{vocab}", axes={"rows": rows, "vocab": vocab}, set=set)


definition = Definition(
    name="keep_top",
    description="y = logits where they are at least the k-th largest of their row, and minus infinity elsewhere",
    op_type="sampling",
    axes={"rows": "sequences", "vocab": "vocabulary"},
    inputs={
        "logits": TensorSpec(shape=("rows", "vocab")),
        "k": ScalarSpec(type="int", value=50, description="tokens to keep"),
    },
    outputs={"y": TensorSpec(shape=("rows", "vocab"))},
    flops="rows * vocab",
    workloads=(at(16, 8000), at(64, 2000), at(1, 1, "odd"), at(3, 67, "odd"), at(17, 129, "odd")),
)


def reference(logits: torch.Tensor, k: int) -> torch.Tensor:
    least = logits.topk(min(k, logits.shape[1])).values[:, -1:]
    return torch.where(logits >= least, logits, -inf)
