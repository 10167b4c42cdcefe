"""Two kernels without atomics: one adds up gradients of keys and values over rows, the other those of queries over keys.

Hypothesis: whoever adds up all three gradients in one kernel adds dquery by atomics, in any order, or waits for its
turn. Two kernels compute scores and their changes twice, seven products in place of five, and need neither: each
program adds up its own tile in order, so two calls have the same bits. Keys and values of a tile stay in shared memory
while the rows that see them pass, for all query heads of the group in turn, so that dkeys and dvalues are written once;
weights and changes are transposed, and enter the second product from registers. That is one loop over heads and rows, each
tile with a mask: a loop of its own for the diagonal spills. For dquery a tile of rows stays, and keys and values pass.
Tiles with most work go first.
Predicted: seven products at 480 TFLOP/s: 4.0 ms at 4x4096x8x4 (floor 1.74 for five at 790 TFLOP/s), 16 at 1x16384x8x4,
1.0 at 16x1024x8x4 and at 8x2048x16x1. FlashAttention 2 takes five at some 300, 4.6 ms at 4x4096x8x4, and twice as long
in order.
Metric: tensor_pct to 50 % at 4x4096x8x4.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

LONG = 128
"""Rows, or keys, of the tile that stays."""
SHORT = 64
"""Rows, or keys, of a tile that passes."""
STAGES = 2
WARPS = 8

DIM = tl.constexpr(128)
LOG2E = tl.constexpr(1.4426950408889634)
SCALE = tl.constexpr(128**-0.5)


@triton.jit
def delta_kernel(y, dy, delta, tokens, heads, ROWS: tl.constexpr):
    """dy . y of each row."""
    head, b = tl.program_id(0) % heads, tl.program_id(0) // heads
    row, d = tl.program_id(1) * ROWS + tl.arange(0, ROWS), tl.arange(0, DIM)
    inside = row < tokens
    at = (b * tokens + row).to(tl.int64)[:, None] * (heads * DIM) + head * DIM + d[None, :]
    result = tl.load(y + at, mask=inside[:, None], other=0.0).to(tl.float32)
    gradient = tl.load(dy + at, mask=inside[:, None], other=0.0).to(tl.float32)
    tl.store(delta + tl.program_id(0).to(tl.int64) * tokens + row, tl.sum(result * gradient, 1), mask=inside)


@triton.jit
def add_rows(
    dk, dv, k, v, queries, dys, lse, delta, base, column, first, start, length, KEYS: tl.constexpr, ROWS: tl.constexpr
):
    """Add what the rows from `start` on give to the gradients of a tile of keys and values."""
    q = queries.load([base + start, column])
    gradient = dys.load([base + start, column])
    row = start + tl.arange(0, ROWS)
    inside = row < length
    seen = (first + tl.arange(0, KEYS)[:, None] <= row[None, :]) & inside[None, :]
    sums = tl.load(lse + row, mask=inside, other=0.0) * LOG2E
    weight = tl.where(seen, tl.exp2(tl.dot(k, q.T) * (SCALE * LOG2E) - sums[None, :]), 0.0)
    weight = weight.to(gradient.dtype)  # half as many registers until the change needs it
    dv = tl.dot(weight, gradient, dv)
    along = tl.load(delta + row, mask=inside, other=0.0)
    change = tl.where(seen, weight.to(tl.float32) * (tl.dot(v, gradient.T) - along[None, :]), 0.0)
    dk = tl.dot(change.to(q.dtype), q, dk)
    return dk, dv


@triton.jit
def shared_kernel(
    queries, keys, values, dys, lse, delta, lengths, dkeys, dvalues, tokens, kv, group,
    KEYS: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Gradients of a tile of keys and values."""
    head, b = tl.program_id(0) % kv, tl.program_id(0) // kv
    first = tl.program_id(1) * KEYS
    length = tl.minimum(tl.load(lengths + b), tokens)
    base = b * tokens
    dk, dv = tl.zeros([KEYS, DIM], tl.float32), tl.zeros([KEYS, DIM], tl.float32)
    if first < length:
        k, v = keys.load([base + first, head * DIM]), values.load([base + first, head * DIM])
        rows = tl.cdiv(length - first, ROWS)
        for turn in tl.range(0, group * rows, num_stages=STAGES):
            asking = head * group + turn // rows
            start = first + turn % rows * ROWS
            of_head = (b * kv * group + asking).to(tl.int64) * tokens
            dk, dv = add_rows(
                dk, dv, k, v, queries, dys, lse + of_head, delta + of_head, base, asking * DIM, first, start, length,
                KEYS, ROWS,
            )  # fmt: skip
    place = first + tl.arange(0, KEYS)
    at = (base + place).to(tl.int64)[:, None] * (kv * DIM) + head * DIM + tl.arange(0, DIM)[None, :]
    kept = (place < length)[:, None]
    inside = (place < tokens)[:, None]
    tl.store(dkeys + at, tl.where(kept, dk * SCALE, 0.0).to(dkeys.dtype.element_ty), mask=inside)
    tl.store(dvalues + at, tl.where(kept, dv, 0.0).to(dvalues.dtype.element_ty), mask=inside)


@triton.jit
def add_keys(
    dq, q, gradient, keys, values, sums, along, row, base, column, start, KEYS: tl.constexpr, MASKED: tl.constexpr
):
    """Add what the keys from `start` on give to the gradients of a tile of queries."""
    k, v = keys.load([base + start, column]), values.load([base + start, column])
    weight = tl.exp2(tl.dot(q, k.T) * (SCALE * LOG2E) - sums[:, None])
    change = weight * (tl.dot(gradient, v.T) - along[:, None])
    if MASKED:
        change = tl.where((start + tl.arange(0, KEYS))[None, :] <= row[:, None], change, 0.0)
    return tl.dot(change.to(k.dtype), k, dq)


@triton.jit
def query_kernel(
    queries, keys, values, dys, lse, delta, lengths, dquery, tokens, heads, group,
    ROWS: tl.constexpr, KEYS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Gradients of a tile of queries."""
    head, b = tl.program_id(0) % heads, tl.program_id(0) // heads
    first = (tl.num_programs(1) - 1 - tl.program_id(1)) * ROWS
    length = tl.minimum(tl.load(lengths + b), tokens)
    base, column = b * tokens, head // group * DIM
    row = first + tl.arange(0, ROWS)
    dq = tl.zeros([ROWS, DIM], tl.float32)
    if first < length:
        q, gradient = queries.load([base + first, head * DIM]), dys.load([base + first, head * DIM])
        of_head = tl.program_id(0).to(tl.int64) * tokens
        sums = tl.load(lse + of_head + row, mask=row < length, other=0.0) * LOG2E
        along = tl.load(delta + of_head + row, mask=row < length, other=0.0)
        for start in tl.range(0, first, KEYS, num_stages=STAGES):
            dq = add_keys(dq, q, gradient, keys, values, sums, along, row, base, column, start, KEYS, False)
        for start in range(first, tl.minimum(first + ROWS, length), KEYS):
            dq = add_keys(dq, q, gradient, keys, values, sums, along, row, base, column, start, KEYS, True)
    at = (base + row).to(tl.int64)[:, None] * (heads * DIM) + head * DIM + tl.arange(0, DIM)[None, :]
    result = tl.where((row < length)[:, None], dq * SCALE, 0.0)
    tl.store(dquery + at, result.to(dquery.dtype.element_ty), mask=(row < tokens)[:, None])


def run(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, y: torch.Tensor, dy: torch.Tensor,
    lse: torch.Tensor, lengths: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    batch, tokens, heads, dim = query.shape
    kv = keys.shape[2]
    dquery, dkeys, dvalues = torch.empty_like(query), torch.empty_like(keys), torch.empty_like(values)
    if not query.numel():
        return dquery, dkeys, dvalues
    delta = torch.empty_like(lse)
    delta_kernel[(heads * batch, triton.cdiv(tokens, 32))](y, dy, delta, tokens, heads, ROWS=32, num_warps=4)

    def tiles(rows: int, *tensors: torch.Tensor) -> list[TensorDescriptor]:
        return [TensorDescriptor.from_tensor(each.view(batch * tokens, -1), [rows, dim]) for each in tensors]

    stays, passes = (tiles(rows, query, keys, values, dy) for rows in (LONG, SHORT))
    shared_kernel[(kv * batch, triton.cdiv(tokens, LONG))](
        passes[0], stays[1], stays[2], passes[3], lse, delta, lengths, dkeys, dvalues, tokens, kv, heads // kv,
        KEYS=LONG, ROWS=SHORT, STAGES=STAGES, num_warps=WARPS,
    )  # fmt: skip
    query_kernel[(heads * batch, triton.cdiv(tokens, LONG))](
        stays[0], passes[1], passes[2], stays[3], lse, delta, lengths, dquery, tokens, heads, heads // kv,
        ROWS=LONG, KEYS=SHORT, STAGES=STAGES, num_warps=WARPS,
    )  # fmt: skip
    return dquery, dkeys, dvalues
