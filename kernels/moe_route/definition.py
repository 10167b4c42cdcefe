"""Routing of a mixture of experts as DeepSeek-V3 does it, up to the permutation that a grouped product reads.

Scores are a sigmoid or a softmax of the logits. A bias is added for the choice only: of 8 groups of experts the
4 with the largest sums of their two best stay, of those the 8 best experts, best first. Equal scores: the lower
index. Weights are the scores without bias, renormalised and scaled.

The permutation is what vLLM's `moe_align_block_size` gives, with the order inside an expert fixed: routes
(token * 8 + slot) by expert, ascending, each expert padded to whole blocks. Beyond the last route of an expert,
and beyond the last block, `sorted_token_ids` holds tokens * 8; blocks beyond the last have the expert -1.

A choice is discrete: where it hangs on the last bits of a float32 score, honest kernels differ. `inputs` draws
tokens anew until no two neighbours in a ranking are closer than MARGIN.
"""

from collections.abc import Callable
from typing import Any

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload
from warpsmith.lab import peer_libraries
from warpsmith.lab.peers import Peer

MARGIN = 2.0**-18
"""Least gap between neighbours in a ranking, as a share of their magnitudes: 64 roundoffs of float32."""

GROUPS, KEPT, TOP = 8, 4, 8
_ROUNDS = 32


def at(
    tokens: int, block: int, dtype: str = "bfloat16", set: str = "representative", distribution: str = "normal",
    softmax: bool = False,
) -> Workload:  # fmt: skip
    short = {"bfloat16": "bf16", "float32": "fp32"}[dtype]
    kind = ("-softmax" if softmax else "") + ("" if distribution == "normal" else f"-{distribution}")
    return Workload(
        name=f"{tokens}-by-{block}-{short}{kind}",
        axes={"tokens": tokens, "block": block},
        dtype=dtype,
        distribution=distribution,
        scalars={"block_size": block, "softmax": softmax},
        set=set,
    )


_ROUTES = "tokens * k + experts * (block - 1)"

definition = Definition(
    name="moe_route",
    description="logits -> scores, grouped top-8 with a bias, weights, histogram, and routes permuted by expert",
    op_type="moe",
    axes={"tokens": "tokens of a batch", "experts": 256, "k": TOP, "block": "rows of a grouped product's block"},
    inputs={
        "logits": TensorSpec(shape=("tokens", "experts")),
        "bias": TensorSpec(shape=("experts",), dtype="float32", role="weight", description="for the choice only"),
        "scale": ScalarSpec(value=2.5, description="factor of the weights"),
        "softmax": ScalarSpec(type="bool", value=False, description="scores are a softmax; else a sigmoid"),
        "block_size": ScalarSpec(type="int", value=64, description="the axis `block`: experts are padded to it"),
    },
    outputs={
        "topk_weights": TensorSpec(shape=("tokens", "k"), dtype="float32"),
        "topk_ids": TensorSpec(shape=("tokens", "k"), dtype="int32"),
        "expert_counts": TensorSpec(shape=("experts",), dtype="int32"),
        "sorted_token_ids": TensorSpec(shape=(_ROUTES,), dtype="int32"),
        "expert_ids": TensorSpec(shape=(f"({_ROUTES} + block - 1) // block",), dtype="int32"),
        "num_tokens_post_padded": TensorSpec(shape=(1,), dtype="int32"),
    },
    drawn_along="tokens",
    deterministic=True,
    tolerance=Tolerance(reduction="k"),
    flops="8 * tokens * experts",
    workloads=(
        at(16, 16),
        at(1024, 64),
        at(8192, 64),
        at(1024, 64, "float32", "full", "zipf"),
        at(8192, 64, "bfloat16", "full", "zipf"),
        at(8192, 128, "float32", "full", "normal", softmax=True),
        at(1, 16, "float32", "odd"),
        at(3, 16, "float32", "odd", "zipf"),
        at(17, 64, "float32", "odd", "empty"),
        at(129, 16, "float32", "odd", "zipf"),
        at(67, 128, "float32", "odd", "normal", softmax=True),
        at(1000, 64, "float32", "odd"),
        at(1000, 64, "bfloat16", "odd", "zipf"),
        at(2050, 64, "bfloat16", "odd", "empty", softmax=True),
    ),
    constraints=("logits and bias are finite",),
)


def choice(
    logits: torch.Tensor, bias: torch.Tensor, softmax: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scores; biased scores, minus infinity where the group is out; and the groups' scores."""
    wide = logits.float()
    scores = wide.softmax(-1) if softmax else wide.sigmoid()
    biased = scores + bias
    grouped = biased.unflatten(-1, (GROUPS, -1))
    groups = grouped.sort(dim=-1, descending=True).values[..., :2].sum(-1)
    stay = groups.sort(dim=-1, descending=True, stable=True).indices[:, :KEPT]
    out = torch.ones_like(groups, dtype=torch.bool).scatter_(-1, stay, False)
    return scores, grouped.masked_fill(out.unsqueeze(-1), float("-inf")).flatten(1), groups


def align(topk_ids: torch.Tensor, experts: int, block: int) -> tuple[torch.Tensor, ...]:
    """Histogram, sorted routes, the experts of the blocks, and how many routes there are with padding."""
    flat = topk_ids.flatten().long()
    routes, device = flat.numel(), flat.device
    counts = torch.zeros(experts, dtype=torch.int64, device=device).scatter_add_(0, flat, torch.ones_like(flat))
    padded = (counts + block - 1) // block * block
    ends = padded.cumsum(0)
    order = flat.argsort(stable=True)
    moved = (ends - padded) - (counts.cumsum(0) - counts)
    length = routes + experts * (block - 1)
    sorted_ids = torch.full((length,), routes, dtype=torch.int64, device=device)
    sorted_ids[torch.arange(routes, device=device) + moved[flat[order]]] = order
    starts = torch.arange(-(-length // block), device=device) * block
    owners = torch.searchsorted(ends, starts, right=True).masked_fill(starts >= ends[-1], -1)
    return counts.int(), sorted_ids.int(), owners.int(), ends[-1:].int()


def reference(
    logits: torch.Tensor, bias: torch.Tensor, scale: float, softmax: bool, block_size: int
) -> tuple[torch.Tensor, ...]:
    scores, biased, _ = choice(logits, bias, softmax)
    ids = biased.sort(dim=-1, descending=True, stable=True).indices[:, :TOP]
    chosen = scores.gather(-1, ids)
    weights = chosen / chosen.sum(-1, keepdim=True) * scale
    return weights, ids.int(), *align(ids, logits.shape[1], block_size)


# Inputs ---------------------------------------------------------------------------------------------------------


def inputs(workload: Workload, generator: torch.Generator, device: str) -> dict[str, torch.Tensor]:
    """Tokens whose every choice has a margin."""
    tokens, dtype = workload.axes["tokens"], getattr(torch, workload.dtype)
    softmax = bool(workload.scalars["softmax"])
    bias = _bias(workload.distribution, softmax, generator)
    logits = _logits(tokens, dtype, generator)
    for _ in range(_ROUNDS):
        again = (~decided(logits, bias, softmax)).nonzero().squeeze(-1)
        if not len(again):
            return {"logits": logits, "bias": bias}
        logits[again] = _logits(len(again), dtype, generator)
    raise ValueError(f"{workload.name}: some tokens stay undecided after {_ROUNDS} draws")


def decided(logits: torch.Tensor, bias: torch.Tensor, softmax: bool) -> torch.Tensor:
    """Whether a token's groups and experts stay the same when scores move by a part of the margin."""
    _, biased, groups = choice_in_double(logits, bias, softmax)
    best = biased.sort(dim=-1, descending=True).values[:, : TOP + 1]
    ranked = groups.sort(dim=-1, descending=True).values[:, KEPT - 1 : KEPT + 1]
    return _apart(best) & _apart(ranked)


def choice_in_double(logits: torch.Tensor, bias: torch.Tensor, softmax: bool) -> tuple[torch.Tensor, ...]:
    """As `choice`, in float64."""
    wide = logits.double()
    scores = wide.softmax(-1) if softmax else wide.sigmoid()
    grouped = (scores + bias.double()).unflatten(-1, (GROUPS, -1))
    groups = grouped.sort(dim=-1, descending=True).values[..., :2].sum(-1)
    fourth = groups.sort(dim=-1, descending=True).values[:, KEPT - 1 : KEPT]
    return scores, grouped.masked_fill((groups < fourth).unsqueeze(-1), float("-inf")).flatten(1), groups


def _apart(falling: torch.Tensor) -> torch.Tensor:
    """Rows whose neighbours are farther apart than the margin."""
    first, second = falling[:, :-1], falling[:, 1:]
    return (first - second > MARGIN * (first.abs() + second.abs() + 1e-3)).all(-1)


def _logits(tokens: int, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    drawn = torch.randn((tokens, 256), generator=generator, device=generator.device)
    return (1.5 * drawn).to(dtype)


def _bias(distribution: str, softmax: bool, generator: torch.Generator) -> torch.Tensor:
    """Small noise; `zipf` favours a few experts by far, `empty` leaves three quarters of them without a token."""
    where: dict[str, Any] = {"generator": generator, "device": generator.device}
    unit = 0.002 if softmax else 0.02
    bias = unit * torch.randn(256, **where)
    order = torch.randperm(256, **where)
    if distribution == "zipf":
        bias -= 10 * unit * torch.log1p(order.float())
    if distribution == "empty":
        bias -= 10.0 * (order.view(GROUPS, -1).argsort(-1).argsort(-1) >= 8).flatten()
    return bias


# Peers ----------------------------------------------------------------------------------------------------------


def canonical(sorted_token_ids: torch.Tensor, expert_ids: torch.Tensor, block_size: int) -> torch.Tensor:
    """The routes of each expert in ascending order: by this, permutations of open order are compared."""
    length = sorted_token_ids.numel()
    owner = expert_ids.long().repeat_interleave(block_size)[:length]
    owner = owner.masked_fill(owner < 0, 1 << 20)
    keys = owner * (1 << 31) + sorted_token_ids.long()
    return (keys.sort().values % (1 << 31)).int()


def vllm(
    logits: torch.Tensor, bias: torch.Tensor, scale: float, softmax: bool, block_size: int
) -> tuple[torch.Tensor, ...]:
    """vLLM's two kernels, and a histogram, which they lack. The order inside an expert is open: `canonical`."""
    weights, ids, counts, *aligned = vllm_core(logits, bias, scale, softmax, block_size)
    flat = ids.flatten().long()
    counts.scatter_add_(0, flat, torch.ones_like(flat, dtype=torch.int32))
    return weights, ids, counts, *aligned


def vllm_core(
    logits: torch.Tensor, bias: torch.Tensor, scale: float, softmax: bool, block_size: int
) -> tuple[torch.Tensor, ...]:
    """vLLM's two kernels alone: the histogram stays zero. A lower bound of what a user of it waits for."""
    ops = peer_libraries.vllm("_moe_C")
    scores = logits.float().softmax(-1) if softmax else logits
    weights, ids = ops.grouped_topk(scores, GROUPS, KEPT, TOP, True, scale, bias, 0 if softmax else 1)
    experts = logits.shape[1]
    length = ids.numel() + experts * (block_size - 1)

    def empty(size: int) -> torch.Tensor:
        return torch.empty(size, dtype=torch.int32, device=logits.device)

    sorted_ids, owners, padded = empty(length), empty(-(-length // block_size)), empty(1)
    arguments = [ids, experts, block_size, sorted_ids, owners, padded]
    if len(ops.moe_align_block_size.default._schema.arguments) > len(arguments):
        arguments.append(None)  # since an expert map may be given
    ops.moe_align_block_size(*arguments)
    counts = torch.zeros(experts, dtype=torch.int32, device=logits.device)
    return weights, ids, counts, sorted_ids, owners, padded


def of_open_order(inputs: dict[str, Any], outputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The routes of each expert in ascending order; and what nobody reads, beyond `num_tokens_post_padded`, as the
    reference has it."""
    block, end = inputs["block_size"], outputs["num_tokens_post_padded"]
    placed, owners = outputs["sorted_token_ids"], outputs["expert_ids"]
    beyond = torch.arange(len(placed), device=placed.device) >= end
    unowned = torch.arange(len(owners), device=owners.device) * block >= end
    owners = owners.masked_fill(unowned, -1)
    placed = canonical(placed.masked_fill(beyond, outputs["topk_ids"].numel()), owners, block)
    return {**outputs, "sorted_token_ids": placed, "expert_ids": owners}


def without_histogram(inputs: dict[str, Any], outputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same of a peer that counts nothing: the histogram is that of its choice."""
    counts = outputs["expert_counts"]
    flat = outputs["topk_ids"].flatten().long().clamp(0, len(counts) - 1)
    counted = torch.zeros_like(counts).scatter_add_(0, flat, torch.ones_like(flat, dtype=counts.dtype))
    return of_open_order(inputs, {**outputs, "expert_counts": counted})


_OPEN = "the order of routes inside an expert is open"

peers: dict[str, Callable[..., tuple[torch.Tensor, ...]]] = {
    "vllm": Peer(vllm, canonical=of_open_order, differs=_OPEN),
    "vllm_core": Peer(vllm_core, canonical=without_histogram, differs=f"makes no histogram; {_OPEN}"),
}
