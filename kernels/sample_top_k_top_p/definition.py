"""Sampling a token from logits: top-k, then top-p, then min-p, then the inverse of the cumulative distribution.

All three filters are thresholds on the logit, so ties of the last value that is kept all stay, as in vLLM's and
FlashInfer's mask kernels: no result depends on the order of equal values. The draw is an input, so that a result
is a function of its inputs.

A token is discrete: where a decision hangs on the last bits of a float32 sum, honest kernels differ. `inputs`
draws until none does: moving p, min_p and u by MARGIN either way changes no token. Every second row has its u
close to the edge of a token, a few margins away, so that a kept set that is slightly wrong gives another token.
"""

from collections.abc import Callable
from typing import Any

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.lab import peer_libraries
from warpsmith.lab.peers import Peer

MARGIN = 2.0**-16
"""How far p, min_p and u may move, as shares of the mass. The error of a float32 scan in blocks of 1024 fills a
hundredth of it over 151,552 exponentials. Adding so many one by one in float32 is off by up to five times the
margin: that order is not honest enough."""

_CANDIDATES = 64
"""Values of u that are tried a row."""

_ROUNDS = 16
"""How often undecided rows are drawn anew."""


def at(rows: int, cols: int, distribution: str = "serving", set: str = "representative") -> Workload:
    drawn = "" if distribution == "serving" else f"-{distribution}"
    return Workload(
        name=f"{rows}x{cols}{drawn}", axes={"rows": rows, "cols": cols}, distribution=distribution, set=set
    )


_ROW = TensorSpec(shape=("rows",), dtype="float32")

definition = Definition(
    name="sample_top_k_top_p",
    description="of what top-k, then top-p, then min-p keep: the first token whose cumulative share exceeds u",
    op_type="sampling",
    axes={"rows": "requests of a batch", "cols": "vocabulary"},
    inputs={
        "logits": TensorSpec(shape=("rows", "cols"), dtype="float32"),
        "u": _ROW.model_copy(update={"description": "the uniform draw, from 0 to below 1"}),
        "k": TensorSpec(shape=("rows",), dtype="int32", description="keeps the k largest; cols: all"),
        "p": _ROW.model_copy(update={"description": "then the fewest whose share reaches p; 1: all"}),
        "min_p": _ROW.model_copy(update={"description": "then those with this share of the first; 0: all"}),
    },
    outputs={"token": TensorSpec(shape=("rows",), dtype="int32")},
    drawn_along="rows",
    deterministic=True,
    flops="3 * rows * cols",
    workloads=(
        at(128, 131072),
        at(32, 152064),
        at(1, 131072),
        at(8, 128256, set="full"),
        at(512, 32000, set="full"),
        # Without top-k the nucleus hangs on the mass of the whole row.
        at(128, 131072, "nucleus", "full"),
        at(32, 152064, "mixed", "full"),
        at(1, 1, "serving", "odd"),
        at(3, 3000, "serving", "odd"),
        at(3, 50257, "mixed", "odd"),
        at(1, 50257, "nucleus", "odd"),
        at(5, 3000, "mixed", "odd"),
        at(2, 3000, "greedy", "odd"),
        at(2, 3000, "open", "odd"),
        at(1, 50257, "tiny_p", "odd"),
        at(2, 50257, "peaked", "odd"),
        at(3, 3000, "flat", "odd"),
        at(2, 3001, "tied", "odd"),
        at(2, 50257, "sorted", "odd"),
        at(2, 3000, "masked", "odd"),
        at(3, 5120, "wide", "odd"),
        at(1, 131071, "serving", "odd"),
    ),
    constraints=("1 <= k <= cols", "0 < p <= 1", "0 <= min_p <= 1", "0 <= u < 1",
                 "no NaN, no plus infinity, and one finite logit a row at least"),
)  # fmt: skip


def cut(logits: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor) -> torch.Tensor:
    """The smallest logit that is kept, a row: (rows, 1)."""
    values = logits.sort(dim=-1, descending=True).values
    kth = values.gather(-1, k.long().unsqueeze(-1) - 1)
    weights = torch.exp(values - values[:, :1]).masked_fill(values < kth, 0.0)
    mass = weights.cumsum(-1)
    reached = (mass >= p.unsqueeze(-1) * mass[:, -1:]).int().argmax(-1, keepdim=True)
    nucleus = torch.where(p.unsqueeze(-1) >= 1, kth, values.gather(-1, reached))
    return torch.maximum(nucleus, values[:, :1] + min_p.unsqueeze(-1).log())


def kept(logits: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor) -> torch.Tensor:
    """Which tokens may be drawn: what a sampler with random numbers of its own is checked against."""
    return logits >= cut(logits, k, p, min_p)


def mass_until(logits: torch.Tensor, least: torch.Tensor) -> torch.Tensor:
    """Sums up to each token of the exponentials of what is at least `least`."""
    weights = torch.exp(logits - logits.amax(-1, keepdim=True)).masked_fill(logits < least, 0.0)
    return weights.cumsum(-1)


def reference(
    logits: torch.Tensor, u: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor
) -> torch.Tensor:
    mass = mass_until(logits, cut(logits, k, p, min_p))
    return (mass > u.unsqueeze(-1) * mass[:, -1:]).int().argmax(-1).int()


# Inputs ---------------------------------------------------------------------------------------------------------

Rows = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
"""logits, k, p and min_p of some rows."""


def inputs(workload: Workload, generator: torch.Generator, device: str) -> dict[str, torch.Tensor]:
    """Rows whose every decision has a margin."""
    count, cols = workload.axes["rows"], workload.axes["cols"]
    some = _rows(workload.distribution, count, cols, generator)
    u, decided = _draws(some, generator)
    for _ in range(_ROUNDS):
        if bool(decided.all()):
            logits, k, p, min_p = some
            return {"logits": logits, "u": u, "k": k, "p": p, "min_p": min_p}
        again = (~decided).nonzero().squeeze(-1)
        other = _rows(workload.distribution, len(again), cols, generator)
        for tensor, new in zip(some, other, strict=True):
            tensor[again] = new
        u[again], decided[again] = _draws(other, generator)
    raise ValueError(f"{workload.name}: some rows stay undecided after {_ROUNDS} draws")


def _draws(rows: Rows, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """A u for every row, and whether its token stays the same when p, min_p and u move by the margin."""
    logits, k, p, min_p = rows
    wide, p, min_p = logits.double(), p.double(), min_p.double()
    sets = []
    for scale in (1 - MARGIN, 1 + MARGIN):
        least = cut(wide, k, torch.where(p < 1, p * scale, p), min_p * scale)
        mass = mass_until(wide, least)
        sets.append(mass / mass[:, -1:])
    u = torch.rand((len(k), _CANDIDATES), generator=generator, device=logits.device)
    found = torch.searchsorted(sets[0], u.double(), right=True).clamp_(max=logits.shape[1] - 1)
    near = sets[0].gather(-1, found) - MARGIN * (1.25 + 2 * u)
    u[1::2] = near[1::2].float().clamp_(min=0.0)
    u.clamp_(max=1 - 2.0**-24)
    tokens = [
        torch.searchsorted(mass, (u.double() + moved).clamp_(min=0.0), right=True)
        for mass in sets
        for moved in (-MARGIN, MARGIN)
    ]
    same = (tokens[0] < logits.shape[1]) & torch.stack([t == tokens[0] for t in tokens[1:]]).all(0)
    first = same.int().argmax(-1, keepdim=True)
    return u.gather(-1, first).squeeze(-1), same.any(-1)


def _rows(distribution: str, count: int, cols: int, generator: torch.Generator) -> Rows:
    """Rows of one kind; `mixed` has all the kinds that a batch of requests may hold."""
    if distribution != "mixed":
        return _KINDS[distribution](count, cols, generator)
    kinds = ("serving", "nucleus", "greedy", "min_p", "open", "top_k")
    parts = [_KINDS[kind](-(-count // len(kinds)), cols, generator) for kind in kinds]
    logits, k, p, min_p = (torch.stack(part, 1).flatten(0, 1)[:count] for part in zip(*parts, strict=True))
    return logits, k, p, min_p


def _normal(
    count: int, cols: int, generator: torch.Generator, low: float = 1.5, high: float = 4.0
) -> torch.Tensor:
    """Rows of normal logits, each as wide as drawn from `low` to `high`."""
    scale = _between(low, high, count, generator).unsqueeze(-1)
    return torch.randn((count, cols), generator=generator, device=generator.device) * scale


def _between(low: float, high: float, count: int, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(count, generator=generator, device=generator.device) * (high - low) + low


def _limits(logits: torch.Tensor, k: int | None = None, p: float = 1.0, min_p: float = 0.0) -> Rows:
    """The same limits for every row."""
    count, cols = logits.shape
    whole = torch.full((count,), min(k or cols, cols), dtype=torch.int32, device=logits.device)
    return logits, whole, torch.full_like(logits[:, 0], p), torch.full_like(logits[:, 0], min_p)


def _serving(count: int, cols: int, generator: torch.Generator) -> Rows:
    logits = _normal(count, cols, generator)
    usual = torch.tensor([20, 40, 50, 64, 100], dtype=torch.int32, device=logits.device)
    k = usual[torch.randint(len(usual), (count,), generator=generator, device=logits.device)].clamp_(max=cols)
    p, min_p = _between(0.8, 0.97, count, generator), _between(-0.1, 0.1, count, generator)
    return logits, k, p, min_p.clamp_(min=0.0)


def _nucleus(count: int, cols: int, generator: torch.Generator) -> Rows:
    logits, k, _, min_p = _limits(_normal(count, cols, generator, 2.5, 5.0))
    return logits, k, _between(0.7, 0.95, count, generator), min_p


def _wide(count: int, cols: int, generator: torch.Generator) -> Rows:
    logits, k, _, min_p = _limits(_normal(count, cols, generator))
    share = _between(0.2, 0.9, count, generator)
    return logits, (share * k).int().clamp_(min=1), _between(0.9, 0.99, count, generator), min_p


def _peaked(count: int, cols: int, generator: torch.Generator) -> Rows:
    logits = _normal(count, cols, generator)
    place = torch.randint(cols, (count, 1), generator=generator, device=logits.device)
    return _limits(logits.scatter_(-1, place, 90.0), p=0.9)


def _flat(count: int, cols: int, generator: torch.Generator) -> Rows:
    """One value: whatever k and p, every token is kept."""
    return _limits(_normal(count, 1, generator).expand(count, cols).contiguous(), k=50, p=0.5)


def _tied(count: int, cols: int, generator: torch.Generator) -> Rows:
    """Halves: the 50th and the last of the nucleus have many equals."""
    return _limits((_normal(count, cols, generator, 1.0, 2.0) * 2).round() / 2, k=50, p=0.8)


def _masked(count: int, cols: int, generator: torch.Generator) -> Rows:
    """A grammar forbids half of the tokens, and all but ten in every second row: fewer than k are left."""
    logits = _normal(count, cols, generator)
    logits[:, : cols // 2] = float("-inf")
    logits[1::2, : max(cols - 10, 0)] = float("-inf")
    return _limits(logits, k=50, p=0.95)


_KINDS: dict[str, Callable[[int, int, torch.Generator], Rows]] = {
    "serving": _serving,
    "nucleus": _nucleus,
    "wide": _wide,
    "peaked": _peaked,
    "flat": _flat,
    "tied": _tied,
    "masked": _masked,
    "greedy": lambda count, cols, generator: _limits(_normal(count, cols, generator), k=1),
    "open": lambda count, cols, generator: _limits(_normal(count, cols, generator)),
    "top_k": lambda count, cols, generator: _limits(_normal(count, cols, generator), k=50),
    "min_p": lambda count, cols, generator: _limits(_normal(count, cols, generator), min_p=0.05),
    "tiny_p": lambda count, cols, generator: _limits(_normal(count, cols, generator), p=1e-6),
    # The largest are neighbours: whoever looks for one in each part of a row finds them all in one.
    "sorted": lambda count, cols, generator: _limits(_normal(count, cols, generator).sort(-1).values, k=50, p=0.9),
}


# Peers ----------------------------------------------------------------------------------------------------------

MOST_TOPK = 128
"""The k that the `torch_topk` peer is right up to: a larger one would have to be read back from the device."""


def _inverse(weights: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """The token by our draw, from unnormalised probabilities."""
    mass = weights.cumsum(-1)
    return torch.searchsorted(mass, u.unsqueeze(-1) * mass[:, -1:], right=True).squeeze(-1).int()


def torch_topk(
    logits: torch.Tensor, u: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor
) -> torch.Tensor:
    """torch.topk, the filters over what it found, and our draw: the least that PyTorch can do where k is small."""
    values, places = logits.topk(min(MOST_TOPK, logits.shape[1]))
    least = cut(values, k.clamp(max=values.shape[1]), p, min_p)
    places, order = places.sort(dim=-1)
    values = values.gather(-1, order)
    weights = torch.exp(values - values.amax(-1, keepdim=True)).masked_fill(values < least, 0.0)
    return places.gather(-1, _inverse(weights, u).unsqueeze(-1).long()).squeeze(-1).int()


def flashinfer_exact(
    logits: torch.Tensor, u: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor
) -> torch.Tensor:
    """FlashInfer's masks and our draw: its tokens are ours."""
    sampling = _flashinfer()
    probabilities = sampling.top_p_renorm_probs(torch.softmax(sampling.top_k_mask_logits(logits, k), -1), p)
    least = min_p.unsqueeze(-1) * probabilities.amax(-1, keepdim=True)
    return _inverse(probabilities.masked_fill(probabilities < least, 0.0), u)


def flashinfer(
    logits: torch.Tensor, u: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor
) -> torch.Tensor:
    """FlashInfer's masks and its own random numbers: its tokens are of `kept`, not equal to ours."""
    sampling = _flashinfer()
    probabilities = sampling.top_p_renorm_probs(torch.softmax(sampling.top_k_mask_logits(logits, k), -1), p)
    return sampling.min_p_sampling_from_probs(probabilities, min_p)


def flashinfer_fused(
    logits: torch.Tensor, u: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor
) -> torch.Tensor:
    """FlashInfer's fused sampler with its own random numbers. It knows no min-p: its tokens are of `kept` at 0."""
    return _flashinfer().top_k_top_p_sampling_from_logits(logits, k, p)


def vllm(
    logits: torch.Tensor, u: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor
) -> torch.Tensor:
    """vLLM's mask kernel, which overwrites the logits, then min-p and our draw."""
    try:
        from vllm.v1.sample.ops.topk_topp_triton import apply_top_k_top_p_triton
    except ImportError as error:
        raise ImportError(f"the peer vllm needs all of vLLM: pip install {peer_libraries.VLLM}") from error
    weights = torch.softmax(apply_top_k_top_p_triton(logits, k, p), -1)
    least = min_p.unsqueeze(-1) * weights.amax(-1, keepdim=True)
    return _inverse(weights.masked_fill(weights < least, 0.0), u)


def _flashinfer() -> Any:
    try:
        import flashinfer.sampling
    except ImportError as error:
        raise ImportError("the flashinfer peers need FlashInfer: pip install flashinfer-python") from error
    return flashinfer.sampling


def of_kept(
    inputs: dict[str, torch.Tensor], outputs: dict[str, torch.Tensor], min_p: torch.Tensor | None = None
) -> dict[str, torch.Tensor]:
    """Tokens by other random numbers: ours where a token may be drawn, else -1.

    The kept set is a margin wider than exact: whether a token at its very edge is in it is rounding. `min_p` is
    what a sampler knows of it; by default all.
    """
    wide = (inputs[name].double() for name in ("logits", "u", "p", "min_p"))
    (logits, u, p, ours), k = wide, inputs["k"]
    least = ours * (1 - MARGIN) if min_p is None else min_p.double()
    wider = kept(logits, k, torch.where(p < 1, p * (1 + MARGIN), p), least)
    token = outputs["token"].long()
    there = token.clamp(0, logits.shape[1] - 1)
    may = (there == token) & wider.gather(-1, there.unsqueeze(-1)).squeeze(-1)
    return {"token": torch.where(may, reference(logits, u, k, p, ours), -1)}


def of_kept_without_min_p(
    inputs: dict[str, torch.Tensor], outputs: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """The same of what top-k and top-p alone keep."""
    return of_kept(inputs, outputs, torch.zeros_like(inputs["min_p"]))


_OWN = "draws its own random numbers: its tokens are of those that are kept"

peers = {
    "torch_topk": torch_topk,
    "flashinfer_exact": flashinfer_exact,
    "flashinfer": Peer(flashinfer, canonical=of_kept, differs=_OWN),
    "flashinfer_fused": Peer(
        flashinfer_fused, canonical=of_kept_without_min_p, differs=f"{_OWN}; it knows no min-p"
    ),
    "vllm": Peer(vllm, consumes=("logits",), differs="masks the logits in place"),
}
