"""Capped scores need no running maximum: weights are exponentials as they are, and sums are never rescaled.

Hypothesis: a score of at most 30 has an exponential between 2^-44 and 2^44, which float32 and bfloat16 hold, times any
value that they hold without care. So the loop has no maximum, no exchange between lanes and no factor on 64
registers of sums: a tangent, a multiply-add, an exponential and an addition a score. The products with the next keys are
under way meanwhile, and so is the product with the values before: a block waits once a tile. Above FREE_CAP, and in
float16, the maximum runs as usual. A sink joins at the end, by its logarithm. Tiles of 128 rows of one head go from
the last ones on, which have most keys; heads of a group run side by side, so that L2 serves their keys. Only the
tiles on the diagonal have a mask. Nothing depends on the batch: each program adds up its own tiles in order.
Predicted: a tile of 128x64 takes 1024 cycles on tensor cores and as many for two special functions a score, at the same
time: with barriers 1600, 560 TFLOP/s at 1.75 GHz before the diagonal and the tail. 100 us at 1x2048x8x4 (floor 43 at
790 TFLOP/s), 1050 at 4x4096x8x4 (696), 4000 at 1x16384x8x4 (2784), 1500 at 4x8192x8x4 ragged (989), 2200 at
4x4096x8x8 with a cap of 50 (1392), whose maximum runs. FlexAttention computes tangents with some twenty
instructions and takes turns: twice as long.
Metric: tensor_pct to 60 % at 1x16384x8x4; xu_pct beside it.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

ROWS = 128
KEYS = 64
"""Keys and values of a tile."""
STAGES = 3
WARPS = 8
REGISTERS = 255
"""Registers that a thread may have: 128 let two blocks of eight warps share a multiprocessor."""
FREE_CAP = 32
"""Largest cap whose exponentials need no maximum: beside it, values and sums have 2^70 to either side."""

DIM = tl.constexpr(128)
LOG2E = 1.4426950408889634
SCALE = 128**-0.5


@triton.jit
def capped(product, inner, outer, PLAIN: tl.constexpr):
    """outer * tanh(inner * product). Interpreters have no assembly; there it is written out."""
    x = product * inner
    if PLAIN:
        tangent = 1 - 2 / (tl.exp(2 * x) + 1)
    else:
        tangent = tl.inline_asm_elementwise(
            "tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    return tangent * outer


@triton.jit
def weigh(score, result, total, largest, FREE: tl.constexpr, LIFT: tl.constexpr):
    """Weights of a tile's scores, beside the sums that they are added to."""
    if FREE:
        weight = tl.exp2(score)
    else:
        new = tl.maximum(largest, tl.max(score, 1))  # finite: each row sees the first key
        old = tl.exp2(largest - new)
        weight = tl.exp2(score - (new - LIFT)[:, None])
        total, result = total * old, result * old[:, None]
        largest = new
    return weight, result, total + tl.sum(weight, 1), largest


@triton.jit
def prefill_kernel(
    queries, keys, values, lengths, sinks, y, tokens, heads, group, inner, outer,
    ROWS: tl.constexpr, KEYS: tl.constexpr, FREE: tl.constexpr, LIFT: tl.constexpr, PLAIN: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    head, b = tl.program_id(0) % heads, tl.program_id(0) // heads
    first = (tl.num_programs(1) - 1 - tl.program_id(1)) * ROWS
    length = tl.minimum(tl.load(lengths + b), tokens)
    row, d, place = first + tl.arange(0, ROWS), tl.arange(0, DIM), tl.arange(0, KEYS)
    base, column = b * tokens, head // group * DIM
    at = (base + row).to(tl.int64)[:, None] * (heads * DIM) + head * DIM + d[None, :]
    inside = (row < tokens)[:, None]
    if first < length:
        q = queries.load([base + first, head * DIM])
        result = tl.zeros([ROWS, DIM], tl.float32)
        total = tl.zeros([ROWS], tl.float32)
        largest = tl.full([ROWS], -float("inf"), tl.float32)
        whole = first // KEYS * KEYS  # keys before it are seen by each row
        k = keys.load([base, column])
        product = tl.dot(q, k.T)
        for start in tl.range(0, whole, KEYS, num_stages=STAGES):
            k = keys.load([base + start + KEYS, column])
            following = tl.dot(q, k.T)
            score = capped(product, inner, outer, PLAIN)
            weight, result, total, largest = weigh(score, result, total, largest, FREE, LIFT)
            v = values.load([base + start, column])
            result = tl.dot(weight.to(v.dtype), v, result)
            product = following
        TILES: tl.constexpr = (ROWS + KEYS - 1) // KEYS
        for tile in tl.static_range(TILES):
            start = whole + tile * KEYS
            score = capped(product, inner, outer, PLAIN)
            score = tl.where((start + place)[None, :] <= row[:, None], score, -float("inf"))
            weight, result, total, largest = weigh(score, result, total, largest, FREE, LIFT)
            v = values.load([base + start, column])
            result = tl.dot(weight.to(v.dtype), v, result)
            if tile + 1 < TILES:
                k = keys.load([base + start + KEYS, column])
                product = tl.dot(q, k.T)
        sink = tl.load(sinks + head) * 1.4426950408889634
        taken = 0.0 if FREE else largest - LIFT
        own = taken + tl.log2(total)
        top = tl.maximum(own, sink)
        shift = taken - top - tl.log2(tl.exp2(own - top) + tl.exp2(sink - top))
        half = tl.exp2(shift / 2)  # a sink may be so large that the factor alone is no number of float32
        result = tl.where((row < length)[:, None], result * half[:, None] * half[:, None], 0.0)
        tl.store(y + at, result.to(y.dtype.element_ty), mask=inside)
    else:
        tl.store(y + at, tl.zeros([ROWS, DIM], y.dtype.element_ty), mask=inside)


def run(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor, sinks: torch.Tensor,
    cap: float,
) -> torch.Tensor:  # fmt: skip
    batch, tokens, heads, dim = query.shape
    kv, short = keys.shape[2], query.dtype == torch.float16  # whose weights end at 2^-24: the largest are 2^14
    y = torch.empty_like(query)
    if not y.numel():
        return y
    tiles = [
        TensorDescriptor.from_tensor(each.view(batch * tokens, -1), [rows, dim])
        for each, rows in ((query, ROWS), (keys, KEYS), (values, KEYS))
    ]
    prefill_kernel[(heads * batch, triton.cdiv(tokens, ROWS))](
        *tiles, lengths, sinks, y, tokens, heads, heads // kv, SCALE / cap, cap * LOG2E,
        ROWS=ROWS, KEYS=KEYS, FREE=cap <= FREE_CAP and not short, LIFT=14 if short else 0,
        PLAIN=not query.is_cuda, STAGES=STAGES, num_warps=WARPS, maxnreg=REGISTERS,
    )  # fmt: skip
    return y
