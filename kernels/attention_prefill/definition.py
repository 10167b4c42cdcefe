"""Causal attention of whole prompts, with a cap on scores and a sink in each head, as serving runs it before decode.

    scores = cap * tanh(query . key / sqrt(128) / cap)
    y[i] = sum over j <= i of exp(scores[i, j]) * value[j] / (exp(sink) + sum over j <= i of exp(scores[i, j]))

Prompts of a batch have `lengths[b]` tokens, none among them; rows of y behind them are zero. `group` query heads
share a head of keys and values. A sink takes weight and gives nothing, as in gpt-oss; caps of 30 and 50 are those
of Grok-1 and Gemma 2. A prompt's bits depend neither on the others' nor on their number: the sequences are an axis of
their own, rather than stretches of one axis with offsets, so that this can be judged.

Every kernel in use multiplies values by weights that are rounded to 16 bits, and takes the tangent from
`tanh.approx`, whose relative error is 2^-11: the bound has room for both.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from warpsmith import Peer
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload

DIM = 128
CHUNK = 1 << 26
"""Scores that the reference holds at once."""
LEAST = "(tokens - tokens * (spare % 17) // 16)"
"""Tokens of the shortest possible prompt."""


def at(
    batch: int,
    tokens: int,
    kv: int,
    group: int,
    set: str = "representative",
    dtype: str = "bfloat16",
    spare: int = 0,
    cap: float = 30.0,
) -> Workload:
    short = {"bfloat16": "bf16", "float16": "fp16"}[dtype]
    ragged = "-ragged" if spare else ""
    return Workload(
        name=f"{batch}x{tokens}x{kv}x{group}-{short}{ragged}-cap{cap:g}",
        axes={"batch": batch, "tokens": tokens, "kv": kv, "group": group, "spare": spare},
        dtype=dtype,
        scalars={"cap": cap},
        set=set,
    )


definition = Definition(
    name="attention_prefill",
    description="causal attention of whole prompts with capped scores and a sink in each head",
    op_type="gqa_ragged",
    axes={
        "batch": "sequences",
        "tokens": "rows that each has room for",
        "kv": "heads of keys and values",
        "group": "query heads for each of them",
        "spare": "sixteenths of that room which a prompt may leave empty, from 0 to 16; more begin at 0 again",
    },
    inputs={
        "query": TensorSpec(shape=("batch", "tokens", "kv * group", DIM)),
        "keys": TensorSpec(shape=("batch", "tokens", "kv", DIM)),
        "values": TensorSpec(shape=("batch", "tokens", "kv", DIM)),
        "lengths": TensorSpec(
            shape=("batch",), dtype="int32", distribution=f"integers:{LEAST}:tokens + 1",
            description="tokens of each prompt; what lies behind is arbitrary, and finite",
        ),
        "sinks": TensorSpec(shape=("kv * group",), dtype="float32", description="scores of nothing, not capped"),
        "cap": ScalarSpec(value=30.0, between=(5.0, 80.0), description="absolute value that no score exceeds"),
    },
    outputs={"y": TensorSpec(shape=("batch", "tokens", "kv * group", DIM))},
    deterministic=True,
    batch_invariant="batch",
    tolerance=Tolerance(reduction=f"tokens + {DIM}", accumulate="float32"),
    # Two products over half of the pairs of tokens; the mean square of lengths from the least to `tokens`.
    flops=f"{2 * DIM} * batch * kv * group * ({LEAST} ** 2 + {LEAST} * tokens + tokens ** 2) / 3",
    bytes_read=f"batch * kv * (group + 2) * ({LEAST} + tokens) * {DIM} + 4 * batch + 4 * kv * group",
    constraints=("every number is finite",),
    workloads=(
        at(1, 2048, 8, 4),
        at(4, 4096, 8, 4),
        at(1, 16384, 8, 4),
        at(4, 8192, 8, 4, spare=15),
        at(4, 4096, 8, 8, cap=50.0),
        at(16, 1024, 8, 8, "full"),
        at(2, 8192, 4, 16, "full"),
        at(1, 1, 1, 1, "odd"),
        at(2, 61, 1, 3, "odd", spare=16),
        at(1, 129, 1, 1, "odd", "float16", cap=50.0),
        at(2, 110, 1, 1, "odd", "float16", spare=8),
        at(3, 20, 2, 2, "odd", "float16", spare=15, cap=8.0),
        at(1, 515, 2, 4, "odd"),
        at(5, 257, 1, 8, "odd", spare=4, cap=50.0),
    ),
)  # fmt: skip


def _chunks(query: torch.Tensor, keys: torch.Tensor) -> Iterator[tuple[int, slice, torch.Tensor, torch.Tensor]]:
    """A sequence, some of its rows, their products with the keys up to their end, (kv, group, rows, keys), and what is
    seen of these."""
    batch, tokens, heads, _ = query.shape
    kv = keys.shape[2]
    size = max(1, CHUNK // max(1, heads * tokens))
    for b in range(batch):
        for first in range(0, tokens, size):
            rows = slice(first, min(first + size, tokens))
            asked = query[b, rows].float().unflatten(1, (kv, heads // kv))
            products = torch.einsum("ikgd,jkd->kgij", asked, keys[b, : rows.stop].float()) * DIM**-0.5
            places = torch.arange(rows.stop, device=query.device)
            yield b, rows, products, places <= places[rows, None]


def _attend(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor, sinks: torch.Tensor,
    cap: float,
) -> torch.Tensor:  # fmt: skip
    y = torch.zeros_like(query.float())
    nothing = sinks.float().view(keys.shape[2], -1, 1, 1)
    for b, rows, products, seen in _chunks(query, keys):
        scores = (torch.tanh(products / cap) * cap).masked_fill(~seen, -torch.inf)
        top = torch.maximum(scores.amax(-1, keepdim=True), nothing)
        weights = torch.exp(scores - top)
        weights = weights / (weights.sum(-1, keepdim=True) + torch.exp(nothing - top))
        y[b, rows] = torch.einsum("kgij,jkd->ikgd", weights, values[b, : rows.stop].float()).flatten(1, 2)
    places = torch.arange(query.shape[1], device=query.device)
    return y.masked_fill((places >= lengths[:, None])[..., None, None], 0)


def reference(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor, sinks: torch.Tensor,
    cap: float,
) -> torch.Tensor:  # fmt: skip
    return _attend(query, keys, values, lengths, sinks, cap).to(query.dtype)


def magnitude(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor, sinks: torch.Tensor,
    cap: float,
) -> torch.Tensor:  # fmt: skip
    """Values of both signs cancel."""
    return _attend(query, keys, values.abs(), lengths, sinks, cap)


def extra(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor, sinks: torch.Tensor,
    cap: float,
) -> torch.Tensor:  # fmt: skip
    """An error of a score moves its weight by as much. Products before the cap are off by roundoffs of the sum of their
    absolute terms, and `tanh.approx` by 2^13 of float32's; a weight may be rounded to bfloat16, 2^16 of them."""
    steps = torch.zeros_like(query.float())
    for (b, rows, products, seen), (*_, sizes, _) in zip(
        _chunks(query, keys), _chunks(query.abs(), keys.abs()), strict=True
    ):
        largest = products.abs().clamp(max=cap).masked_fill(~seen, 0).amax(-1)
        terms = sizes.masked_fill(~seen, 0).amax(-1)
        lost = 2.0**16 + 2.0**13 * largest + 4 * terms + sinks.float().abs().view(*largest.shape[:2], 1)
        steps[b, rows] = lost.permute(2, 0, 1).flatten(1)[..., None]
    return steps


# Peers ----------------------------------------------------------------------------------------------------------


@functools.cache
def _causal_mask(tokens: int, device: torch.device) -> Any:
    """Blocks that FlexAttention visits: a function of sizes alone, since no row of a prompt sees what lies behind it."""
    from torch.nn.attention.flex_attention import create_block_mask

    def causal(b: torch.Tensor, h: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        return i >= j

    return create_block_mask(causal, None, None, tokens, tokens, device=device)


def flex_attention(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor, sinks: torch.Tensor,
    cap: float, mask: Any,
) -> torch.Tensor:  # fmt: skip
    """FlexAttention with the cap as a `score_mod`; a sink is a factor that its lse gives."""
    from torch.nn.attention import flex_attention as flex

    def capped(
        score: torch.Tensor, b: torch.Tensor, h: torch.Tensor, i: torch.Tensor, j: torch.Tensor
    ) -> torch.Tensor:
        return cap * torch.tanh(score / cap)

    y, aux = flex.flex_attention(
        *(each.transpose(1, 2) for each in (query, keys, values)), score_mod=capped, block_mask=mask,
        enable_gqa=query.shape[2] != keys.shape[2], return_aux=flex.AuxRequest(lse=True),
    )  # fmt: skip
    share = torch.sigmoid(aux.lse - sinks[:, None])
    there = torch.arange(query.shape[1], device=query.device) < lengths[:, None]
    return torch.where(there[:, None, :, None], y * share[..., None], 0).to(query.dtype).transpose(1, 2)


@functools.cache
def _compiled() -> Callable[..., torch.Tensor]:
    return torch.compile(flex_attention, dynamic=False)


def flex(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor, sinks: torch.Tensor,
    cap: float,
) -> torch.Tensor:  # fmt: skip
    mask = _causal_mask(query.shape[1], query.device)
    return _compiled()(query, keys, values, lengths, sinks, cap, mask).contiguous()


peers = {
    "flex": Peer(
        flex, differs="its mask is made once for each number of tokens; it computes rows behind a prompt too"
    ),
}
