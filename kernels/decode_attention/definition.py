"""Attention of one new token a sequence over its cache, as a decode loop runs it in every layer.

    weights = softmax(query . keys[:length] / sqrt(dim));  y = sum of weights * values[:length]

The cache has room for `context` tokens, and a sequence has `lengths[b]` of them, at least one; what lies behind is
not read. `group` query heads share a head of the cache: 1 is multi-head attention, 4 to 8 grouped-query attention.
Query head h reads head h / group of the cache, as in Llama. The drawn lengths lie anywhere from 1 to `context`, so a
call reads half of the cache in the mean, and no two sequences have equal work.
"""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload
from warpsmith.lab.peers import Peer


def at(
    batch: int, kv: int, group: int, context: int, dim: int, set: str = "representative", dtype: str = "bfloat16"
) -> Workload:
    short = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[dtype]
    return Workload(
        name=f"{batch}x{kv}x{group}x{context}x{dim}-{short}",
        axes={"batch": batch, "kv": kv, "group": group, "context": context, "dim": dim},
        dtype=dtype,
        set=set,
    )


definition = Definition(
    name="decode_attention",
    description="y = attention of one query a head over the first `lengths` tokens of each sequence's cache",
    op_type="gqa_ragged",
    axes={
        "batch": "sequences",
        "kv": "heads of the cache",
        "group": "query heads for each of them",
        "context": "tokens that the cache has room for",
        "dim": "size of a head",
    },
    inputs={
        "query": TensorSpec(shape=("batch", "kv * group", "dim")),
        "keys": TensorSpec(shape=("batch", "kv", "context", "dim")),
        "values": TensorSpec(shape=("batch", "kv", "context", "dim")),
        "lengths": TensorSpec(
            shape=("batch",),
            dtype="int32",
            distribution="integers:1:context + 1",
            description="tokens in each sequence's cache",
        ),
    },
    outputs={"y": TensorSpec(shape=("batch", "kv * group", "dim"))},
    deterministic=True,
    tolerance=Tolerance(reduction="context + dim"),
    # A token of half the context: two products, an exponential and sums.
    flops="2 * batch * kv * group * context * (dim + 1)",
    bytes_read="2 * batch * kv * context * dim + 2 * batch * kv * group * dim + 4 * batch",
    constraints=("1 <= lengths <= context",),
    workloads=(
        at(8, 16, 1, 1024, 64),  # the decode loop in examples/programs
        at(32, 8, 8, 4096, 128),
        at(1, 8, 4, 16384, 128),
        at(64, 8, 4, 2048, 128),
        at(32, 32, 1, 2048, 128, "full"),
        at(4, 2, 16, 8192, 128, "full"),
        at(256, 8, 1, 512, 64, "full"),
        at(1, 1, 1, 1, 64, "odd"),
        at(3, 2, 1, 67, 64, "odd"),
        at(2, 1, 5, 130, 96, "odd", "float16"),
        at(2, 3, 2, 129, 40, "odd", "float32"),
        at(1, 2, 16, 513, 128, "odd"),
    ),
)


def _attend(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    batch, kv, context, dim = keys.shape
    there = torch.arange(context, device=keys.device) < lengths[:, None]
    scores = query.float().view(batch, kv, -1, dim) @ keys.float().transpose(2, 3) * dim**-0.5
    weights = torch.softmax(scores.masked_fill(~there[:, None, None], -torch.inf), -1)
    values = values.float().masked_fill(~there[:, None, :, None], 0)
    return (weights @ values).reshape(query.shape)


def reference(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    return _attend(query, keys, values, lengths).to(query.dtype)


def magnitude(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """Values of both signs cancel."""
    return _attend(query, keys, values.abs(), lengths)


def extra(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """An error of a score, a sum over `dim`, moves its weight by as much; the exponential's argument is rounded."""
    batch, kv, context, dim = keys.shape
    there = torch.arange(context, device=keys.device) < lengths[:, None]
    sizes = query.float().abs().view(batch, kv, -1, dim) @ keys.float().abs().transpose(2, 3) * dim**-0.5
    largest = sizes.masked_fill(~there[:, None, None], 0).amax(-1)
    return 4 * largest.reshape(batch, -1, 1).nan_to_num()


def sdpa(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """PyTorch's fused attention with a mask of the cache's length, as decode loops call it."""
    mask = torch.arange(keys.shape[2], device=keys.device) < lengths[:, None]
    y = torch.nn.functional.scaled_dot_product_attention(
        query.unsqueeze(2), keys, values, attn_mask=mask[:, None, None], enable_gqa=query.shape[1] != keys.shape[1]
    )
    return y.squeeze(2)


peers = {"sdpa": Peer(sdpa)}
