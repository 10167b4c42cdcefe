"""Capped scores need no running maximum: weights are exponentials as they are, and sums are never rescaled.

Hypothesis: a score of at most 30 has an exponential between 2^-44 and 2^44, which float32 and bfloat16 hold, times any
value that they hold without care. So the loop has no maximum, no exchange between lanes and no factor on 64
registers of sums: a tangent, a multiply-add, an exponential and an addition a score. The product with values does not
wait for its own sum. Above FREE_CAP, and in float16, the maximum runs as usual. A sink joins at the end, by its logarithm.
Tiles of 128 rows of one head go from the last ones on, which have most keys; heads of a group run side by side, so that L2
serves their keys. Tiles below the diagonal have no mask. TMA brings all tiles, two pairs of keys and values ahead.
Nothing depends on the batch: each program adds up its own row of tiles in order.
Predicted: a tile of 128x128 takes 2048 cycles on tensor cores, then as many for two special functions a score: 8.4 MFLOP
in 4300 cycles, 450 TFLOP/s at 1.75 GHz, less the diagonal and the tail. 110 us at 1x2048x8x4 (floor 43 at 790
TFLOP/s), 1270 at 4x4096x8x4 (696), 4950 at 1x16384x8x4 (2784), 1800 at 4x8192x8x4 ragged (989), 2700 at 4x4096x8x8
with a cap of 50 (1392), whose maximum runs. Two blocks of 64x64 take turns by themselves: 520 TFLOP/s, if shared memory
keeps up. FlexAttention computes tangents with some twenty instructions: 1.5 to 2 times as long.
Metric: tensor_pct to 50 % at 1x16384x8x4; xu_pct beside it.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

ROWS = 128
KEYS = 128
"""Keys and values of a tile."""
STAGES = 2
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
def add_tiles(
    result, total, largest, q, keys, values, base, column, row, first, last, inner, outer,
    KEYS: tl.constexpr, MASKED: tl.constexpr, FREE: tl.constexpr, LIFT: tl.constexpr, PLAIN: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Adds tiles from `first` to `last` to the sums of values and of weights."""
    place = tl.arange(0, KEYS)
    for start in tl.range(first, last, KEYS, num_stages=STAGES):
        k = keys.load([base + start, column])
        score = capped(tl.dot(q, k.T), inner, outer, PLAIN)
        if MASKED:
            score = tl.where((start + place)[None, :] <= row[:, None], score, -float("inf"))
        if FREE:
            weight = tl.exp2(score)
        else:
            new = tl.maximum(largest, tl.max(score, 1))  # finite: each row sees the first key
            old = tl.exp2(largest - new)
            weight = tl.exp2(score - (new - LIFT)[:, None])
            total, result = total * old, result * old[:, None]
            largest = new
        total += tl.sum(weight, 1)
        v = values.load([base + start, column])
        result = tl.dot(weight.to(v.dtype), v, result)
    return result, total, largest


@triton.jit
def prefill_kernel(
    queries, keys, values, lengths, sinks, y, tokens, heads, group, inner, outer,
    ROWS: tl.constexpr, KEYS: tl.constexpr, FREE: tl.constexpr, LIFT: tl.constexpr, PLAIN: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    head, b = tl.program_id(0), tl.program_id(1)
    first = (tl.num_programs(2) - 1 - tl.program_id(2)) * ROWS
    length = tl.minimum(tl.load(lengths + b), tokens)
    row, d = first + tl.arange(0, ROWS), tl.arange(0, DIM)
    base, column = b * tokens, head // group * DIM
    q = queries.load([base + first, head * DIM])
    result = tl.zeros([ROWS, DIM], tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    largest = tl.full([ROWS], -float("inf"), tl.float32)
    # Keys before `whole` are seen by each row; none is beyond the prompt where a row is not.
    last = tl.where(first < length, tl.minimum(first + ROWS, length), 0)
    whole = tl.minimum(first // KEYS * KEYS, last)
    result, total, largest = add_tiles(
        result, total, largest, q, keys, values, base, column, row, 0, whole, inner, outer,
        KEYS, False, FREE, LIFT, PLAIN, STAGES,
    )  # fmt: skip
    result, total, largest = add_tiles(
        result, total, largest, q, keys, values, base, column, row, whole, last, inner, outer,
        KEYS, True, FREE, LIFT, PLAIN, STAGES,
    )  # fmt: skip
    sink = tl.load(sinks + head) * 1.4426950408889634
    taken = 0.0 if FREE else largest - LIFT
    own = taken + tl.log2(total)
    top = tl.maximum(own, sink)
    whole_log = top + tl.log2(tl.exp2(own - top) + tl.exp2(sink - top))
    shift = taken - whole_log
    half = tl.exp2(shift / 2)  # a sink may be so large that the factor alone is no number of float32
    result = tl.where((row < length)[:, None], result * half[:, None] * half[:, None], 0.0)
    at = (base + row).to(tl.int64)[:, None] * (heads * DIM) + head * DIM + d[None, :]
    tl.store(y + at, result.to(y.dtype.element_ty), mask=(row < tokens)[:, None])


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
    prefill_kernel[(heads, batch, triton.cdiv(tokens, ROWS))](
        *tiles, lengths, sinks, y, tokens, heads, heads // kv, SCALE / cap, cap * LOG2E,
        ROWS=ROWS, KEYS=KEYS, FREE=cap <= FREE_CAP and not short, LIFT=14 if short else 0,
        PLAIN=not query.is_cuda, STAGES=STAGES, num_warps=WARPS, maxnreg=REGISTERS,
    )  # fmt: skip
    return y
