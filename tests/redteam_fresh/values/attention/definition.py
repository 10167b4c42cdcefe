"""Attention of one head."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(batch, queries, keys):
    return Workload(
        name=f"{batch}x{queries}x{keys}", axes={"batch": batch, "queries": queries, "keys": keys}
    )


definition = Definition(
    name="attention",
    description="softmax(q k^T * scale) v; with causal, query i sees the keys up to i",
    op_type="attention",
    axes={"batch": "heads", "queries": "queries", "keys": "keys", "dim": 64},
    inputs={
        "q": TensorSpec(shape=("batch", "queries", "dim")),
        "k": TensorSpec(shape=("batch", "keys", "dim")),
        "v": TensorSpec(shape=("batch", "keys", "dim")),
        "scale": ScalarSpec(value=0.125),
        "causal": ScalarSpec(type="bool", value=True),
    },
    outputs={"o": TensorSpec(shape=("batch", "queries", "dim"))},
    tolerance=Tolerance(reduction="keys"),
    flops="4 * batch * queries * keys * dim",
    workloads=(at(8, 128, 128), at(4, 100, 500)),
)


def _weights(q, k, scale, causal):
    scores = q @ k.transpose(-1, -2) * scale
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        scores = scores.masked_fill(~seen, float("-inf"))
    return torch.softmax(scores, -1)


def reference(q, k, v, scale, causal):
    return _weights(q, k, scale, causal) @ v


def magnitude(q, k, v, scale, causal):
    return _weights(q, k, scale, causal) @ v.abs()
