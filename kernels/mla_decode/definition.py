"""Decode attention of DeepSeek's multi-head latent attention, absorbed: all heads read one latent of each token.

    scores = scale * query . cache;  y = softmax(scores) . cache[..., :latent];  lse = log(sum(exp(scores)))

A token's entry in the cache is its latent, which is key and value at once, and behind it the rotated part of the key.
A query is the head's, already multiplied by the up-projection of keys; the caller multiplies y by that of values.
`tokens` of a sequence are asked at once, as in speculative decoding: they are its last ones, and the last of them sees
`lengths[b]` tokens, each earlier one a token less. `lse` serves whoever joins parts of a sequence.

Every kernel in use multiplies values by weights that are rounded to 16 bits, and so may versions: the bound of y
has room for that rounding.
"""

import torch

from warpsmith import Peer
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload
from warpsmith.lab import peer_libraries

LATENT, ROPE = 512, 64


def at(
    batch: int,
    tokens: int,
    heads: int,
    context: int,
    set: str = "representative",
    dtype: str = "bfloat16",
    least: int | None = None,
    distribution: str = "normal",
) -> Workload:
    short = {"bfloat16": "bf16", "float16": "fp16"}[dtype]
    least = context if least is None else least
    return Workload(
        name=f"{batch}x{tokens}x{heads}x{context}-{short}{'' if least == context else '-ragged'}"
        + ("" if distribution == "normal" else f"-{distribution}"),
        axes={"batch": batch, "tokens": tokens, "heads": heads, "context": context, "least": least},
        dtype=dtype,
        distribution=distribution,
        set=set,
    )


definition = Definition(
    name="mla_decode",
    description="attention of a few new tokens over a cache of latents that are key and value of all heads at once",
    op_type="mla_ragged",
    axes={
        "batch": "sequences",
        "tokens": "new tokens of each",
        "heads": "query heads",
        "context": "tokens that the cache has room for",
        "least": "tokens of the shortest sequence: `context` where all are full",
    },
    inputs={
        "query": TensorSpec(shape=("batch", "tokens", "heads", LATENT + ROPE)),
        "cache": TensorSpec(shape=("batch", "context", LATENT + ROPE), distribution="normal"),
        "lengths": TensorSpec(
            shape=("batch",),
            dtype="int32",
            distribution="integers:least:context + 1",
            description="tokens in each sequence's cache, the new ones included",
        ),
        "scale": ScalarSpec(value=192**-0.5, between=(0.03, 0.15), description="of scores"),
    },
    outputs={
        "y": TensorSpec(shape=("batch", "tokens", "heads", LATENT)),
        "lse": TensorSpec(shape=("batch", "tokens", "heads"), dtype="float32"),
    },
    deterministic=True,
    tolerance=Tolerance(reduction=f"{LATENT + ROPE}"),
    flops=f"batch * tokens * heads * (least + context) * {2 * LATENT + ROPE}",
    bytes_read=f"batch * (least + context) * {LATENT + ROPE} + 2 * batch * tokens * heads * {LATENT + ROPE}"
    " + 4 * batch",
    constraints=("1 <= tokens <= least <= context", "every number of the cache is finite"),
    workloads=(
        at(32, 1, 16, 4096),
        at(32, 16, 16, 4096),
        at(32, 1, 128, 4096),
        at(32, 16, 128, 4096),
        at(32, 2, 128, 8192, "full", least=1024),
        at(128, 1, 16, 4096, "full", least=512),
        at(4, 1, 128, 16384, "full"),
        at(1, 1, 1, 1, "odd"),
        at(1, 1, 16, 67, "odd"),
        at(3, 1, 16, 130, "odd", least=1),
        at(2, 3, 16, 129, "odd", least=3),
        at(2, 2, 5, 100, "odd", "float16", least=2),
        at(1, 5, 13, 65, "odd", "float16", least=5),
        at(2, 1, 128, 1030, "odd", least=1),
        at(3, 16, 16, 515, "odd", least=16),
        at(5, 4, 33, 300, "odd", least=4),
        at(1, 1, 20, 3001, "odd", "float16", least=2000),
        # Queries that overflowed: y is NaN there, and lse infinite.
        at(9, 2, 3, 4, "odd", "float16", least=2, distribution="nonfinite"),
        at(1, 1, 16, 150, "odd", "float16", least=100, distribution="nonfinite"),
    ),
)


def _scores(
    query: torch.Tensor, cache: torch.Tensor, lengths: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores, (batch, tokens, heads, context), and where a token of the cache is seen, (batch, tokens, 1, context)."""
    tokens, context = query.shape[1], cache.shape[1]
    scores = torch.einsum("bshd,btd->bsht", query.float(), cache.float()) * scale
    last = lengths[:, None] - tokens + 1 + torch.arange(tokens, device=query.device)
    seen = torch.arange(context, device=query.device) < last[:, :, None]
    return scores, seen[:, :, None]


def reference(
    query: torch.Tensor, cache: torch.Tensor, lengths: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    scores, seen = _scores(query, cache, lengths, scale)
    scores = scores.masked_fill(~seen, -torch.inf)
    y = torch.einsum("bsht,btd->bshd", torch.softmax(scores, -1), cache[..., :LATENT].float())
    return y.to(query.dtype), torch.logsumexp(scores, -1)


def _largest(query: torch.Tensor, cache: torch.Tensor, lengths: torch.Tensor, scale: float) -> torch.Tensor:
    """The largest sum of absolute terms of a score, (batch, tokens, heads)."""
    sizes, seen = _scores(query.abs(), cache.abs(), lengths, scale)
    return sizes.masked_fill(~seen, 0).amax(-1)


def magnitude(
    query: torch.Tensor, cache: torch.Tensor, lengths: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Values of both signs cancel; an lse has the error of its scores."""
    scores, seen = _scores(query, cache, lengths, scale)
    scores = scores.masked_fill(~seen, -torch.inf)
    y = torch.einsum("bsht,btd->bshd", torch.softmax(scores, -1), cache[..., :LATENT].float().abs())
    return y, 1 + torch.logsumexp(scores, -1).abs() + _largest(query, cache, lengths, scale)


def extra(
    query: torch.Tensor, cache: torch.Tensor, lengths: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """An error of a score moves its weight by as much; a weight may be rounded to bfloat16, 2^16 roundoffs of float32,
    or to float16, where one below 2^-25 of the largest is zero."""
    largest = _largest(query, cache, lengths, scale)
    weighed, _ = magnitude(query, cache, lengths, scale)
    _, seen = _scores(query, cache, lengths, scale)
    sums = seen.to(weighed.dtype) @ cache[:, None, :, :LATENT].to(weighed.dtype).abs()
    lost = sums / (2 * weighed.clamp(min=1e-30))
    return 2.0**16 + 4 * largest[..., None] + lost, torch.zeros_like(largest)


def flashmla(
    query: torch.Tensor, cache: torch.Tensor, lengths: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """DeepSeek's kernel from vLLM. Its cache has pages of 64 tokens: here those of a sequence lie in order."""
    batch, context, width = cache.shape
    if context % 64:
        raise NotImplementedError("FlashMLA needs whole pages of 64 tokens; race it at such a context.")
    decode = peer_libraries.vllm("_flashmla_C").dense_decode_fwd
    pages = torch.arange(batch * context // 64, dtype=torch.int32, device=cache.device).view(batch, -1)
    cache = cache.view(-1, 64, 1, width)
    y, lse, *_ = decode(query, cache, LATENT, lengths, pages, scale, True, None, None, None)
    return y, lse.transpose(1, 2).contiguous()


peers = {
    "flashmla": Peer(flashmla, differs="its cache is in pages; each call lists them and shares out the work anew"),
}
