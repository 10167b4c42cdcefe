"""Mean of the tokens of each sequence that count, as sentence embeddings take it."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(batch: int, tokens: int, cols: int, set: str = "representative") -> Workload:
    axes = {"batch": batch, "tokens": tokens, "cols": cols}
    return Workload(name=f"{batch}x{tokens}x{cols}", axes=axes, set=set)


definition = Definition(
    name="masked_mean",
    description="y[b] = mean of x[b, t] over the tokens with mask[b, t]; 0 where there is none",
    op_type="reduction",
    axes={"batch": "sequences", "tokens": "tokens", "cols": "channels"},
    inputs={
        "x": TensorSpec(shape=("batch", "tokens", "cols")),
        "mask": TensorSpec(shape=("batch", "tokens"), dtype="bool"),
    },
    outputs={"y": TensorSpec(shape=("batch", "cols"))},
    tolerance=Tolerance(reduction="tokens"),
    flops="2 * batch * tokens * cols",
    workloads=(
        at(32, 512, 64), at(16, 300, 96),
        at(1, 1, 1, "odd"), at(17, 67, 5, "odd"), at(9, 129, 33, "odd"),
    ),
)


def reference(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    count = mask.sum(-1, keepdim=True).clamp(min=1)
    return (x * mask[..., None]).sum(1) / count


def magnitude(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return reference(x.abs(), mask)
