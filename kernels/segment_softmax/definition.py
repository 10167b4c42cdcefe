"""Softmax of each segment of a vector: weights of a node's edges, of a query's candidates, of a ragged batch's tokens.

    y[i] = exp(x[i] - max) / sum(exp(x - max)), over the segment that i lies in

Segment s holds the elements offsets[s] to offsets[s + 1]. Empty ones give nothing, and there may be many of them. Under
Zipf's law a few segments hold most elements: whoever gives each segment to a block waits for the longest.
"""

import torch

from warpsmith import Peer
from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload

ZIPF = 1.1
"""Exponent by which lengths fall with their rank."""


def at(total: int, segments: int, lengths: str, dtype: str = "float32", set: str = "representative") -> Workload:
    short = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[dtype]
    return Workload(
        name=f"{total}-in-{segments}-{short}-{lengths}",
        axes={"total": total, "segments": segments},
        dtype=dtype,
        distribution=lengths,
        set=set,
    )


definition = Definition(
    name="segment_softmax",
    description="y = softmax of values[offsets[s]:offsets[s + 1]], segment by segment",
    op_type="softmax",
    axes={"total": "elements of all segments", "segments": "segments, the empty ones too"},
    inputs={
        "values": TensorSpec(shape=("total",)),
        "offsets": TensorSpec(
            shape=("segments + 1",), dtype="int64", description="ascending; the first is 0, the last is total"
        ),
    },
    outputs={"y": TensorSpec(shape=("total",))},
    deterministic=True,
    tolerance=Tolerance(reduction="total"),
    flops="5 * total",
    workloads=(
        at(1 << 24, 4096, "equal"),
        at(1 << 24, 65536, "zipf"),
        at(1 << 24, 65536, "zipf", "bfloat16"),
        at(1 << 26, 64, "zipf"),
        at(1 << 20, 64, "zipf"),
        at(1 << 24, 8, "equal", "bfloat16"),
        at(1 << 22, 65536, "equal"),
        at(1 << 23, 1024, "zipf", "bfloat16", "full"),
        at(1 << 22, 1 << 18, "zipf", "float32", "full"),
        at(1 << 24, 1 << 21, "empty", "float32", "full"),
        at(1 << 24, 1000, "giant", "bfloat16", "full"),
        at(1, 1, "equal", set="odd"),
        at(1, 9, "equal", set="odd"),
        at(67, 500, "empty", set="odd"),
        at(1000, 77, "zipf", set="odd"),
        at(4097, 3, "equal", "float16", "odd"),
        at(5003, 3000, "zipf", set="odd"),
        at(8193, 40, "giant", set="odd"),
        at(20011, 4000, "empty", "bfloat16", "odd"),
        at(70001, 1, "equal", "bfloat16", "odd"),
        at(300007, 64, "zipf", set="odd"),
        at(300007, 5, "empty", "bfloat16", "odd"),
    ),
    constraints=("offsets ascend from 0 to total; equal neighbours are an empty segment",),
)


def _spread(each: torch.Tensor, offsets: torch.Tensor, total: int) -> torch.Tensor:
    """A segment's number at each of its elements, (total,)."""
    return torch.repeat_interleave(each, offsets.diff(), output_size=total)


def _below(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Elements less the largest of their segment, (total,)."""
    wide = values.to(torch.promote_types(values.dtype, torch.float32))
    return wide - _spread(torch.segment_reduce(wide, "max", offsets=offsets, unsafe=True), offsets, len(wide))


def reference(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    terms = torch.exp(_below(values, offsets))
    sums = torch.segment_reduce(terms, "sum", offsets=offsets, initial=0, unsafe=True)
    return (terms / _spread(sums, offsets, len(terms))).to(values.dtype)


def extra(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Rounding x - max moves the exponential by as many roundoffs as the difference is large."""
    return 4 * -_below(values, offsets).nan_to_num(neginf=0.0)


# Inputs ---------------------------------------------------------------------------------------------------------


def inputs(workload: Workload, generator: torch.Generator, device: str) -> dict[str, torch.Tensor]:
    """Segments by the workload's law; values are normal, and where it is not timed, by chance hard ones."""
    total, segments = workload.axes["total"], workload.axes["segments"]
    offsets = _offsets(total, segments, workload.distribution, generator)
    values = torch.randn(total, generator=generator, device=device)
    if workload.set == "odd" or total <= 1 << 16:
        values = _hard(values, generator)
    return {"values": values.to(getattr(torch, workload.dtype)), "offsets": offsets}


def _offsets(total: int, segments: int, law: str, generator: torch.Generator) -> torch.Tensor:
    """Cut points, (segments + 1,): `equal` within an element; `zipf` in random order; `giant` is a single segment
    with nine tenths of all; of `empty` ones seven in eight have nothing, in one run or spread."""
    where = {"generator": generator, "device": generator.device}
    chances = torch.rand(segments, dtype=torch.float64, **where)
    order = chances.argsort()
    match law:
        case "zipf":
            shares = (order + 1.0).double() ** -ZIPF
        case "giant":
            shares = torch.where(order == 0, 10.0 * segments, 1 + chances)
        case "empty":
            first, rest = torch.randint(segments, (), **where), torch.arange(segments, device=generator.device)
            spread = bool(torch.randint(2, (), **where))
            shares = ((order if spread else (rest - first) % segments) * 8 <= segments).double()
        case _:
            shares = torch.ones_like(chances)
    ends = shares.cumsum(0)
    cuts = (ends / ends[-1] * total).round().long().clamp_(max=total)
    cuts[-1] = total
    return torch.cat([cuts.new_zeros(1), cuts])


def _hard(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Values of which exponentials overflow or underflow without a shift, masked ones, ties, and not a number."""
    where = {"generator": generator, "device": generator.device}
    chances = torch.rand(values.shape, **where)
    match int(torch.randint(8, (), **where)):
        case 0:
            return 50 * values
        case 1:
            return values - 200
        case 2:
            return values.masked_fill(chances < 0.5, -torch.inf)
        case 3:
            return values.masked_fill(chances < 0.999, -torch.inf)  # whole segments: no number, as in softmax
        case 4:
            return torch.full_like(values, float(values[0]))
        case 5:
            return values + 300 * (chances < 0.01)  # one element takes most of its segment
        case 6:
            return values.masked_fill(chances < 0.001, torch.nan).masked_fill(chances > 0.999, torch.inf)
        case _:
            return values


# Peers ----------------------------------------------------------------------------------------------------------


def scatter(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """PyTorch's scattered reductions, as libraries of graph networks write it."""
    total, segments = len(values), len(offsets) - 1
    ids = _spread(torch.arange(segments, device=values.device), offsets, total)
    wide = values.float()
    tops = wide.new_full((segments,), -torch.inf).scatter_reduce(0, ids, wide, "amax")
    terms = torch.exp(wide - tops[ids])
    return (terms / wide.new_zeros(segments).scatter_add(0, ids, terms)[ids]).to(values.dtype)


peers = {"scatter": Peer(scatter)}
