"""The backward pass of causal attention over whole sequences: gradients of queries, keys and values.

    weight[i, j] = exp(query[i] . key[j] / sqrt(128) - lse[i]) for j <= i
    change[i, j] = weight[i, j] * (dy[i] . value[j] - dy[i] . y[i]) / sqrt(128)
    dquery[i] = sum of change[i, j] * key[j];  dkeys[j] = sum of change[i, j] * query[i]
    dvalues[j] = sum of weight[i, j] * dy[i]

The forward pass saves y and lse, the logarithm of each row's sum of exponentials, as every library does. `group` query
heads share a head of keys and values, whose gradients are sums over them. Sequences of a batch have `lengths[b]`
tokens; what lies behind is arbitrary, and its gradients are zero. Training must be repeatable: two calls have the same
bits, and those of a sequence depend neither on the others nor on their number. Libraries add up dquery by atomics
unless they are asked not to.

Every kernel in use rounds weights and changes to 16 bits before it multiplies by them: the bound has room for it.
"""

from collections.abc import Callable, Iterator
from typing import Literal

import torch

from warpsmith import Peer
from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload

DIM = 128
SCALE = DIM**-0.5
CHUNK = 1 << 26
"""Scores that the reference holds at once."""
MEAN_PAIRS = "(tokens * tokens - tokens * tokens * spare / 16 + tokens * tokens * spare * spare / 768)"
"""Mean square of lengths from `tokens * (16 - spare) / 16` to `tokens`."""


def at(
    batch: int, tokens: int, kv: int, group: int, set: str = "representative", dtype: str = "bfloat16", spare: int = 0
) -> Workload:
    short = {"bfloat16": "bf16", "float16": "fp16"}[dtype]
    return Workload(
        name=f"{batch}x{tokens}x{kv}x{group}-{short}{'-ragged' if spare else ''}",
        axes={"batch": batch, "tokens": tokens, "kv": kv, "group": group, "spare": spare},
        dtype=dtype,
        distribution="mixed" if set == "odd" else "normal",
        set=set,
    )


ROWS = ("batch", "tokens", "kv * group", DIM)
SHARED = ("batch", "tokens", "kv", DIM)

definition = Definition(
    name="attention_backward",
    description="gradients of causal attention's queries, keys and values, the same bits in each call",
    op_type="gqa_ragged",
    axes={
        "batch": "sequences",
        "tokens": "rows that each has room for",
        "kv": "heads of keys and values",
        "group": "query heads for each of them",
        "spare": "sixteenths of that room which a sequence may leave empty, from 0 to 16",
    },
    inputs={
        "query": TensorSpec(shape=ROWS),
        "keys": TensorSpec(shape=SHARED),
        "values": TensorSpec(shape=SHARED),
        "y": TensorSpec(shape=ROWS, description="the forward pass's result"),
        "dy": TensorSpec(shape=ROWS, description="its gradient"),
        "lse": TensorSpec(
            shape=("batch", "kv * group", "tokens"), dtype="float32", description="logarithm of sums of exponentials"
        ),
        "lengths": TensorSpec(shape=("batch",), dtype="int32", description="tokens of each sequence; what lies behind is finite"),
    },
    outputs={
        "dquery": TensorSpec(shape=ROWS), "dkeys": TensorSpec(shape=SHARED), "dvalues": TensorSpec(shape=SHARED)
    },
    deterministic=True,
    batch_invariant="batch",
    tolerance={
        "dquery": Tolerance(reduction=f"tokens + {DIM}"),
        "dkeys": Tolerance(reduction=f"tokens * group + {DIM}"),
        "dvalues": Tolerance(reduction=f"tokens * group + {DIM}"),
    },
    # Five products over half of the pairs of tokens.
    flops=f"{5 * DIM} * batch * kv * group * {MEAN_PAIRS}",
    constraints=("y and lse are those of the forward pass", "every number is finite"),
    workloads=(
        at(4, 4096, 8, 4),
        at(1, 16384, 8, 4),
        at(16, 1024, 8, 4),
        at(4, 8192, 8, 4, spare=15),
        at(8, 2048, 16, 1),
        at(2, 512, 8, 4),
        at(2, 8192, 4, 8, "full"),
        at(1, 2048, 8, 4, "full", "float16"),
        at(1, 3, 2, 2, "odd"),
        at(2, 61, 1, 3, "odd", spare=16),
        at(1, 129, 1, 1, "odd", "float16"),
        at(3, 110, 2, 2, "odd", spare=8),
        at(1, 515, 1, 4, "odd"),
        at(5, 257, 1, 2, "odd", "float16", spare=4),
    ),
)  # fmt: skip


def _parts(
    query: torch.Tensor, keys: torch.Tensor, lengths: torch.Tensor
) -> Iterator[tuple[int, int, slice, slice, torch.Tensor]]:
    """A sequence, a head of keys, some rows, all rows up to their end, and which of these each sees, (rows, keys)."""
    batch, _, heads, _ = query.shape
    kv = keys.shape[2]
    for b in range(batch):
        length = int(lengths[b])
        size = max(1, CHUNK // max(1, heads // max(1, kv) * length))
        for first in range(0, length, size):
            rows = slice(first, min(first + size, length))
            places = torch.arange(rows.stop, device=query.device)
            for head in range(kv):
                yield b, head, rows, slice(rows.stop), places <= places[rows, None]


def _heads(tensor: torch.Tensor, b: int, rows: slice, head: int, kv: int) -> torch.Tensor:
    """Rows of the queries of a head, (group, rows, 128)."""
    group = tensor.shape[2] // kv
    return tensor[b, rows, head * group : (head + 1) * group].float().transpose(0, 1)


def _gradients(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, y: torch.Tensor, dy: torch.Tensor,
    lse: torch.Tensor, lengths: torch.Tensor, sizes: Literal["", "changes", "terms", "steps"] = "",
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """The gradients; or the sums of the sizes of what they add up, where changes are as they are, or are sums of the
    sizes of their terms, or where weights and changes are 1."""
    size: Callable[[torch.Tensor], torch.Tensor] = torch.abs if sizes else _same
    inner: Callable[[torch.Tensor], torch.Tensor] = torch.abs if sizes == "terms" else _same
    kv, group = keys.shape[2], query.shape[2] // max(1, keys.shape[2])
    dquery, dkeys, dvalues = (torch.zeros_like(each.float()) for each in (query, keys, values))
    for b, head, rows, seen, mask in _parts(query, keys, lengths):
        asked, gradient, result = (_heads(each, b, rows, head, kv) for each in (query, dy, y))
        key, value = keys[b, seen, head].float(), values[b, seen, head].float()
        of_heads = slice(head * group, (head + 1) * group)
        if sizes == "steps":
            weights = change = mask.to(key.dtype).expand(group, *mask.shape)
        else:
            products = asked @ key.T * SCALE - lse[b, of_heads, rows].float()[..., None]
            weights = torch.exp(products).masked_fill(~mask, 0)
            along = (inner(gradient) * inner(result)).sum(-1, keepdim=True)
            shares = inner(gradient) @ inner(value).T
            change = size(weights * (shares + along if sizes == "terms" else shares - along) * SCALE)
        dquery[b, rows, of_heads] = (change @ size(key)).transpose(0, 1)
        dkeys[b, seen, head] += (change.transpose(1, 2) @ size(asked)).sum(0)
        dvalues[b, seen, head] += (weights.transpose(1, 2) @ size(gradient)).sum(0)
    return dquery, dkeys, dvalues


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def reference(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, y: torch.Tensor, dy: torch.Tensor,
    lse: torch.Tensor, lengths: torch.Tensor,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    gradients = _gradients(query, keys, values, y, dy, lse, lengths)
    return tuple(each.to(query.dtype) for each in gradients)


def magnitude(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Gradients are sums of both signs. What their terms are off by is divided by this, so it has a share of these."""
    return tuple(_divisor(*sums) for sums in _sums_of_sizes(*inputs))


def _sums_of_sizes(*inputs: torch.Tensor) -> list[tuple[torch.Tensor, ...]]:
    """For each gradient the sums of the sizes of changes, of terms and of steps."""
    return list(zip(*(_gradients(*inputs, sizes=sizes) for sizes in ("changes", "terms", "steps")), strict=True))


def _divisor(change: torch.Tensor, term: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    return change + term * 2.0**-14 + step * 2.0**-40


def extra(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Weights and changes may be rounded to bfloat16, 2^16 of float32's roundoffs, or be off by one in 2^24 in float16.
    Products are off by roundoffs of the sum of their absolute terms, and a weight by what its score is off by."""
    smallest = torch.finfo(torch.float32).tiny
    return tuple(
        (change * 2.0**16 + term * (64 + lost) + step) / _divisor(change, term, step).clamp_min(smallest)
        for (change, term, step), lost in zip(_sums_of_sizes(*inputs), _lost_by_scores(*inputs), strict=True)
    )


def _lost_by_scores(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """What a score that counts for a gradient is off by at most, in roundoffs of float32."""
    query, keys, *_, lse, lengths = inputs
    kv, group = keys.shape[2], query.shape[2] // max(1, keys.shape[2])
    of_rows, of_keys = torch.zeros_like(query[..., :1].float()), torch.zeros_like(keys[..., :1].float())
    for b, head, rows, seen, mask in _parts(query, keys, lengths):
        of_heads = slice(head * group, (head + 1) * group)
        scores = _heads(query, b, rows, head, kv).abs() @ keys[b, seen, head].float().abs().T * SCALE
        lost = (4 * (scores + lse[b, of_heads, rows].float().abs()[..., None])).masked_fill(~mask, 0)
        of_rows[b, rows, of_heads] = lost.amax(-1).T[..., None]
        of_keys[b, seen, head] = torch.maximum(of_keys[b, seen, head], lost.amax((0, 1))[:, None])
    return of_rows, of_keys, of_keys


# Inputs ---------------------------------------------------------------------------------------------------------


def inputs(workload: Workload, generator: torch.Generator, device: str) -> dict[str, torch.Tensor]:
    """Normal numbers with the forward pass's y and lse; where they are mixed, each sequence is of some kind."""
    batch, tokens, kv, group, spare = (workload.axes[axis] for axis in ("batch", "tokens", "kv", "group", "spare"))
    dtype = getattr(torch, workload.dtype)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, device=device)

    query, dy = draw(batch, tokens, kv * group, DIM), draw(batch, tokens, kv * group, DIM)
    keys, values = draw(batch, tokens, kv, DIM), draw(batch, tokens, kv, DIM)
    least = tokens - tokens * (spare % 17) // 16
    chance = torch.rand(batch, generator=generator, device=device)
    lengths = (least + (chance * (tokens + 1 - least)).long()).clamp(max=tokens).int()
    if workload.distribution == "mixed":
        kinds = torch.randint(len(_KINDS), (batch,), generator=generator, device=device)
        for b, kind in enumerate(kinds.tolist()):
            query[b], keys[b], values[b], dy[b] = _KINDS[kind](query[b], keys[b], values[b], dy[b])
    query, keys, values, dy = (each.to(dtype) for each in (query, keys, values, dy))
    y, lse = _forward(query, keys, values, lengths)
    return {"query": query, "keys": keys, "values": values, "y": y, "dy": dy, "lse": lse, "lengths": lengths}


_Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
_KINDS: tuple[Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], _Tensors], ...] = (
    lambda query, keys, values, dy: (query, keys, values, dy),
    lambda query, keys, values, dy: (query * 8, keys, values, dy),  # a few weights are nearly all
    lambda query, keys, values, dy: (query * 30, keys * 30, values, dy),  # one weight is 1
    lambda query, keys, values, dy: (query, keys[:1].expand_as(keys), values + 4, dy + 1),  # weights are alike
    lambda query, keys, values, dy: (query, keys, values / 8, dy / 8),
    lambda query, keys, values, dy: (query * 0, keys, values, dy.abs()),
)
"""Functions of a sequence's tensors."""


def _forward(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    kv, group = keys.shape[2], query.shape[2] // max(1, keys.shape[2])
    y, lse = torch.zeros_like(query), torch.zeros(*query.shape[:1], kv * group, query.shape[1], device=query.device)
    for b, head, rows, seen, mask in _parts(query, keys, lengths):
        products = _heads(query, b, rows, head, kv) @ keys[b, seen, head].float().T * SCALE
        sums = products.masked_fill(~mask, -torch.inf).logsumexp(-1)
        weights = torch.exp(products - sums[..., None]).masked_fill(~mask, 0)
        of_heads = slice(head * group, (head + 1) * group)
        y[b, rows, of_heads] = (weights @ values[b, seen, head].float()).transpose(0, 1).to(y.dtype)
        lse[b, of_heads, rows] = sums
    return y, lse


# Peers ----------------------------------------------------------------------------------------------------------


def _without_spare(dy: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Gradients that are zero behind each sequence: rows there give nothing to keys and values then."""
    places = torch.arange(dy.shape[1], device=dy.device)
    return torch.where((places < lengths[:, None])[..., None, None], dy, 0)


def flash(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, y: torch.Tensor, dy: torch.Tensor,
    lse: torch.Tensor, lengths: torch.Tensor,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """FlashAttention 2 as PyTorch ships it."""
    tokens, none = query.shape[1], torch.empty(0, dtype=torch.uint64, device=query.device)
    return tuple(
        torch.ops.aten._flash_attention_backward(
            _without_spare(dy, lengths), query, keys, values, y, lse, None, None, tokens, tokens, 0.0, True,
            none, none, scale=SCALE,
        )
    )  # fmt: skip


def flash_in_order(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The same with `torch.use_deterministic_algorithms`: the same bits in each call."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        return flash(*inputs)
    finally:
        torch.use_deterministic_algorithms(before)


def cudnn(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, y: torch.Tensor, dy: torch.Tensor,
    lse: torch.Tensor, lengths: torch.Tensor,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """cuDNN, as `scaled_dot_product_attention` calls it."""
    tokens, none = query.shape[1], torch.empty(0, dtype=torch.int64, device=query.device)
    gradient, *tensors = (each.transpose(1, 2) for each in (_without_spare(dy, lengths), query, keys, values, y))
    gradients = torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
        gradient, *tensors, lse[..., None], none, none, None, None, None, tokens, tokens, 0.0, True, scale=SCALE
    )
    return tuple(each.transpose(1, 2).contiguous() for each in gradients)


ATOMICS = "it computes rows behind a sequence too, and adds up dquery in any order"
peers = {
    "flash-2": Peer(flash, differs=ATOMICS),
    "flash-2-in-order": Peer(flash_in_order, differs="it computes rows behind a sequence too"),
    "cudnn": Peer(cudnn, differs=ATOMICS),
}
