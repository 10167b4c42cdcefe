"""Attention of packed sequences: sequence g's queries see all of sequence g's keys, and no others."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload

DIM = 32


def at(queries: int, keys: int, groups: int, set: str = "representative") -> Workload:
    axes = {"queries": queries, "keys": keys, "groups": groups}
    return Workload(name=f"{queries}x{keys}-by-{groups}", axes=axes, set=set)


definition = Definition(
    name="ragged_attention",
    description="y = softmax(q . k / sqrt(dim)) v within each packed sequence, without a causal mask; no keys: zeros",
    op_type="gqa_ragged",
    axes={"queries": "queries of all sequences", "keys": "keys of all sequences", "groups": "sequences", "dim": DIM},
    inputs={
        "q": TensorSpec(shape=("queries", "dim")),
        "k": TensorSpec(shape=("keys", "dim")),
        "v": TensorSpec(shape=("keys", "dim")),
        "q_offsets": TensorSpec(shape=("groups + 1",), dtype="int32", distribution="offsets:queries"),
        "k_offsets": TensorSpec(shape=("groups + 1",), dtype="int32", distribution="offsets:keys"),
    },
    outputs={"y": TensorSpec(shape=("queries", "dim"))},
    tolerance=Tolerance(reduction="keys + dim"),
    flops="2 * queries * dim",
    constraints=("q_offsets and k_offsets ascend from 0",),
    workloads=(
        at(384, 768, 32), at(512, 1024, 24),
        at(1, 1, 1, "odd"), at(67, 33, 7, "odd"), at(130, 201, 12, "odd"),
    ),
)


def _ids(offsets: torch.Tensor, total: int) -> torch.Tensor:
    lengths = offsets.diff().long()
    return torch.repeat_interleave(torch.arange(len(lengths), device=offsets.device), lengths, output_size=total)


def _attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, q_offsets: torch.Tensor, k_offsets: torch.Tensor
) -> torch.Tensor:
    seen = _ids(q_offsets, q.shape[0])[:, None] == _ids(k_offsets, k.shape[0])
    scores = ((q @ k.T) * DIM**-0.5).masked_fill(~seen, float("-inf"))
    top = scores.amax(-1, keepdim=True)
    weights = torch.exp(scores - torch.where(top == float("-inf"), 0.0, top))
    return weights / weights.sum(-1, keepdim=True).clamp(min=2.0**-100) @ v


def reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, q_offsets: torch.Tensor, k_offsets: torch.Tensor
) -> torch.Tensor:
    return _attend(q, k, v, q_offsets, k_offsets)


def magnitude(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, q_offsets: torch.Tensor, k_offsets: torch.Tensor
) -> torch.Tensor:
    """Values of both signs cancel."""
    return _attend(q, k, v.abs(), q_offsets, k_offsets)


def extra(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, q_offsets: torch.Tensor, k_offsets: torch.Tensor
) -> torch.Tensor:
    """An error of a score, a sum over the head, moves its weight by as much."""
    seen = _ids(q_offsets, q.shape[0])[:, None] == _ids(k_offsets, k.shape[0])
    sizes = ((q.abs() @ k.abs().T) * DIM**-0.5).masked_fill(~seen, 0.0)
    return (4 * sizes.amax(-1, keepdim=True).nan_to_num()).expand(-1, DIM)
