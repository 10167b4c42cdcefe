"""Mean of the tokens of each document, which lie one behind the other."""

import itertools

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(total: int, docs: int, dim: int, set: str = "representative") -> Workload:
    axes = {"total": total, "docs": docs, "dim": dim}
    return Workload(name=f"{total}x{dim}-in-{docs}", axes=axes, set=set)


definition = Definition(
    name="doc_mean",
    description="mean[d] = mean of tokens[offsets[d]:offsets[d + 1]]; zeros for an empty document",
    outputs_are="given",
    op_type="pooling",
    axes={"total": "tokens of the batch", "docs": "batch", "dim": "features"},
    inputs={
        "tokens": TensorSpec(shape=("total", "dim")),
        "offsets": TensorSpec(shape=("docs + 1",), dtype="int32", distribution="offsets:total"),
    },
    outputs={"mean": TensorSpec(shape=("docs", "dim"))},
    tolerance=Tolerance(reduction="total"),
    flops="total * dim",
    constraints=("offsets ascend; a document may have zero length",),
    workloads=(at(2000, 30, 128), at(6000, 50, 64)),
)


def reference(tokens: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    cuts = offsets.tolist()
    docs = [tokens[begin:end] for begin, end in itertools.pairwise(cuts)]
    return torch.stack([doc.sum(0) / max(len(doc), 1) for doc in docs])


def magnitude(tokens: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Sums cancel: rounding errors are relative to the sum of the absolute values."""
    return reference(tokens.abs(), offsets)
