"""Decode attention over a cache in pages, with grouped heads: what a server runs for each layer and step.

    scores = scale * query . keys;  y = softmax(scores) . values

`table[b]` names the pages of a sequence in order, so token t of it is entry t % page of page table[b, t // page]. Two
sequences may share pages, as those with a common prompt do. `tokens` of a sequence are asked at once, as in speculative
decoding: they are its last ones, and the last of them sees `lengths[b]` tokens, each earlier one a token less. Each
head of the cache serves `group` query heads. This is the layout of vLLM and FlashAttention. Entries behind a
sequence's end hold anything, NaN too, and no result depends on them; those of its own tokens are finite.

Every kernel in use multiplies values by weights that are rounded to 16 bits, and so may versions: the bound has room
for that rounding.
"""

import torch

from warpsmith import Peer
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload
from warpsmith.lab import peer_libraries


def at(
    batch: int,
    tokens: int,
    slots: int,
    page: int,
    kv: int = 8,
    group: int = 8,
    dim: int = 128,
    set: str = "representative",
    dtype: str = "bfloat16",
    least: int | None = None,
    pages: int | None = None,
) -> Workload:
    short = {"bfloat16": "bf16", "float16": "fp16"}[dtype]
    context = slots * page
    least = context if least is None else least
    sizes = {"batch": batch, "tokens": tokens, "kv": kv, "group": group, "slots": slots, "page": page, "dim": dim}
    return Workload(
        name=f"{batch}x{tokens}x{kv}x{group}x{dim}-{slots}x{page}-{short}{'' if least == context else '-ragged'}",
        axes={**sizes, "pages": batch * slots if pages is None else pages, "least": least},
        dtype=dtype,
        set=set,
    )


definition = Definition(
    name="paged_decode",
    description="attention of a few new tokens over a cache in pages, whose heads serve a group of query heads each",
    op_type="gqa_paged",
    axes={
        "batch": "sequences",
        "tokens": "new tokens of each",
        "kv": "heads of the cache",
        "group": "query heads for each of them",
        "slots": "pages that a sequence may have",
        "page": "tokens of a page",
        "pages": "pages of the cache",
        "dim": "size of a head",
        "least": "tokens of the shortest sequence: `slots * page` where all are full",
    },
    inputs={
        "query": TensorSpec(shape=("batch", "tokens", "kv * group", "dim")),
        "keys": TensorSpec(shape=("pages", "page", "kv", "dim")),
        "values": TensorSpec(shape=("pages", "page", "kv", "dim")),
        "table": TensorSpec(
            shape=("batch", "slots"),
            dtype="int32",
            distribution="distinct:pages",
            description="page of each stretch of tokens",
        ),
        "lengths": TensorSpec(
            shape=("batch",),
            dtype="int32",
            distribution="integers:least:slots * page + 1",
            description="tokens in each sequence's cache, the new ones included",
        ),
        "scale": ScalarSpec(value=128**-0.5, between=(0.03, 0.3), description="of scores"),
    },
    outputs={"y": TensorSpec(shape=("batch", "tokens", "kv * group", "dim"))},
    deterministic=True,
    tolerance=Tolerance(reduction="dim"),
    flops="2 * batch * tokens * kv * group * (least + slots * page) * dim",
    bytes_read="2 * batch * (least + slots * page) * kv * dim + 2 * batch * tokens * kv * group * dim"
    " + 4 * batch * (least + slots * page) / (2 * page) + 4 * batch",
    constraints=("1 <= tokens <= least <= slots * page", "numbers that a sequence holds are finite"),
    workloads=(
        at(32, 1, 256, 16),
        at(32, 4, 256, 16),
        at(32, 16, 256, 16),
        at(32, 1, 256, 64, least=1024),  # 1k to 16k tokens
        at(32, 4, 512, 32, least=1024),
        at(128, 1, 128, 16, set="full", least=128),
        at(4, 1, 512, 64, set="full"),
        at(64, 1, 128, 16, kv=4, group=16, set="full"),
        at(1, 1, 1, 16, kv=1, group=1, dim=64, set="odd"),
        at(3, 1, 5, 16, kv=2, group=4, dim=64, set="odd", least=1, pages=40),
        at(2, 3, 9, 16, kv=2, group=5, set="odd", least=3),
        at(5, 4, 3, 64, kv=1, group=8, set="odd", dtype="float16", least=4),
        at(2, 16, 7, 32, kv=2, group=8, set="odd", least=16, pages=9),  # sequences share pages
        at(1, 2, 40, 16, kv=3, group=7, dim=96, set="odd", dtype="float16", least=200),
        at(7, 1, 2, 256, kv=1, group=16, set="odd", least=1),
        at(2, 1, 33, 1, kv=2, group=2, set="odd", least=5),  # a page for each token
    ),
)


def _scores(
    query: torch.Tensor, keys: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores, (batch, tokens, heads, context), and where a token of the cache is seen, (batch, tokens, 1, context)."""
    batch, tokens, heads, dim = query.shape
    found = keys[table.long()].flatten(1, 2).float()  # (batch, context, kv, dim)
    kv = found.shape[2]
    there = torch.arange(found.shape[1], device=query.device) < lengths[:, None]
    found = found.masked_fill(~there[:, :, None, None], 0)
    asked = query.float().view(batch, tokens, kv, heads // kv, dim)
    scores = torch.einsum("bskgd,btkd->bskgt", asked, found).flatten(2, 3) * scale
    last = lengths[:, None] - tokens + 1 + torch.arange(tokens, device=query.device)
    seen = torch.arange(found.shape[1], device=query.device) < last[:, :, None]
    return scores, seen[:, :, None]


def _weigh(weights: torch.Tensor, values: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Sums of values, (batch, tokens, heads, dim), by weights of each token."""
    found = values[table.long()].flatten(1, 2).to(weights.dtype)
    there = torch.arange(found.shape[1], device=weights.device) < lengths[:, None]
    found = found.masked_fill(~there[:, :, None, None], 0)
    batch, tokens, heads, context = weights.shape
    shares = weights.view(batch, tokens, found.shape[2], -1, context)
    return torch.einsum("bskgt,btkd->bskgd", shares, found).flatten(2, 3)


def reference(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor,
    scale: float,
) -> torch.Tensor:  # fmt: skip
    scores, seen = _scores(query, keys, table, lengths, scale)
    weights = torch.softmax(scores.masked_fill(~seen, -torch.inf), -1)
    return _weigh(weights, values, table, lengths).to(query.dtype)


def magnitude(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor,
    scale: float,
) -> torch.Tensor:  # fmt: skip
    """Values of both signs cancel."""
    scores, seen = _scores(query, keys, table, lengths, scale)
    weights = torch.softmax(scores.masked_fill(~seen, -torch.inf), -1)
    return _weigh(weights, values.abs(), table, lengths)


def extra(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor,
    scale: float,
) -> torch.Tensor:  # fmt: skip
    """An error of a score moves its weight by as much; a weight may be rounded to bfloat16, 2^16 roundoffs of float32,
    or to float16, where one below 2^-25 of the largest is zero."""
    sizes, seen = _scores(query.abs(), keys.abs(), table, lengths, scale)
    largest = sizes.masked_fill(~seen, 0).amax(-1)
    weighed = magnitude(query, keys, values, table, lengths, scale)
    everything = _weigh(seen.expand(sizes.shape).to(weighed.dtype), values.abs(), table, lengths)
    return 2.0**16 + 4 * largest[..., None] + everything / (2 * weighed.clamp(min=1e-30))


def fa3(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor,
    scale: float,
) -> torch.Tensor:  # fmt: skip
    """FlashAttention 3 from vLLM, which packs the heads of a group and chooses the number of splits."""
    forward = peer_libraries.vllm("_vllm_fa3_C").fwd
    nothing = (None,) * 8
    y, *_ = forward(
        query, keys, values, *nothing, lengths, query.shape[1], table.shape[1] * keys.shape[1], table,
        None, None, None, None, None, None, None, None, scale, True, -1, -1, 0.0, True, None, 0, None, 0, None, 1, 0,
        None,
    )  # fmt: skip
    return y


peers = {"fa3": Peer(fa3, differs="plans its splits in each call")}
