"""Add, RMSNorm and e4m3 in groups of 128: a row is one tile of one block, read once.

Hidden sizes of up to 16384 are one tile, a power of two of groups. It is loaded flat, for vectors of 16 bytes, and reshaped
to (groups, 128) for the scales. Squares are summed over the groups first, which are registers of one thread, and over the
columns afterwards. The factor 448 / amax is an approximate division, as Triton's is. Longer rows are read twice.
"""

import cuda.tile as ct
import torch

GROUP = 128
LARGEST = 448.0
AMAX_FLOOR = 1e-4
APPROX = ct.RoundingMode.APPROX
ONE_TILE = 128
CHUNK = 32


@ct.function
def quantise(y, q, scales, row, chunk, GROUPS: ct.Constant[int]):
    """Store y of shape (GROUPS, 128) in e4m3, and its scales."""
    amax = ct.maximum(ct.max(ct.abs(y), 1, keepdims=True), AMAX_FLOOR)
    y = y * ct.truediv(LARGEST, amax, rounding_mode=APPROX, flush_to_zero=True)
    flat = ct.reshape(y.astype(q.dtype), (1, GROUPS * GROUP))
    ct.store(q, index=(row, chunk), tile=flat, allow_tma=False)
    ct.store(scales, index=(chunk, row), tile=amax * (1 / LARGEST), allow_tma=False)


@ct.kernel
def row_kernel(x, residual, weight, q, scales, out, eps, GROUPS: ct.Constant[int]):
    row, zero = ct.bid(0), ct.PaddingMode.ZERO
    if row < x.shape[0]:
        size = GROUPS * GROUP
        h = ct.load(x, index=(row, 0), shape=(1, size), padding_mode=zero, allow_tma=False).astype(ct.float32)
        more = ct.load(residual, index=(row, 0), shape=(1, size), padding_mode=zero, allow_tma=False)
        factor = ct.load(weight, index=(0,), shape=(size,), padding_mode=zero, allow_tma=False)
        h = h + more.astype(ct.float32)
        ct.store(out, index=(row, 0), tile=h.astype(out.dtype), allow_tma=False)
        h = ct.reshape(h, (GROUPS, GROUP))
        squares = ct.sum(ct.sum(h * h, 0, keepdims=True), 1, keepdims=True)
        y = h * ct.rsqrt(squares / x.shape[1] + eps) * ct.reshape(factor, (GROUPS, GROUP)).astype(ct.float32)
        quantise(y, q, scales, row, 0, GROUPS)
    else:  # tokens are padded to a multiple of four, and their scales are zero
        ct.store(scales, index=(0, row), tile=ct.full((GROUPS, 1), 0.0, ct.float32), allow_tma=False)


@ct.kernel(num_worker_warps=8)
def chunked_kernel(x, residual, weight, q, scales, out, eps, GROUPS: ct.Constant[int]):
    row, zero = ct.bid(0), ct.PaddingMode.ZERO
    size = GROUPS * GROUP
    chunks = ct.cdiv(x.shape[1], size)
    if row < x.shape[0]:
        squares = ct.full((1, size), 0.0, ct.float32)
        for j in range(chunks):
            h = ct.load(x, index=(row, j), shape=(1, size), padding_mode=zero, allow_tma=False).astype(ct.float32)
            more = ct.load(residual, index=(row, j), shape=(1, size), padding_mode=zero, allow_tma=False)
            h = h + more.astype(ct.float32)
            ct.store(out, index=(row, j), tile=h.astype(out.dtype), allow_tma=False)
            squares = squares + h * h
        scale = ct.rsqrt(ct.sum(squares, 1, keepdims=True) / x.shape[1] + eps)
        for j in range(chunks):
            h = ct.load(x, index=(row, j), shape=(1, size), padding_mode=zero, allow_tma=False).astype(ct.float32)
            more = ct.load(residual, index=(row, j), shape=(1, size), padding_mode=zero, allow_tma=False)
            factor = ct.load(weight, index=(j,), shape=(size,), padding_mode=zero, allow_tma=False)
            h = (h + more.astype(ct.float32)) * scale * ct.reshape(factor, (1, size)).astype(ct.float32)
            quantise(ct.reshape(h, (GROUPS, GROUP)), q, scales, row, j, GROUPS)
    else:
        for j in range(chunks):
            ct.store(scales, index=(j, row), tile=ct.full((GROUPS, 1), 0.0, ct.float32), allow_tma=False)


# As many blocks on a multiprocessor as its registers hold without spills.
hinted = {
    8: row_kernel,
    16: row_kernel,
    32: row_kernel.replace_hints(num_worker_warps=4, occupancy=6),
    64: row_kernel.replace_hints(num_worker_warps=8, occupancy=3),
    128: row_kernel.replace_hints(num_worker_warps=8),
}


def run(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    tokens, hidden = x.shape
    groups, padded = hidden // GROUP, tokens + -tokens % 4
    q = x.new_empty(tokens, hidden, dtype=torch.float8_e4m3fn)
    scales = x.new_empty(groups, padded, dtype=torch.float32)
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    if q.numel() == 0:  # a grid of no blocks is no launch
        return q, scales, out
    side = max(8, 1 << (groups - 1).bit_length())  # a tile's sides are powers of two
    kernel, side = (hinted[side], side) if side <= ONE_TILE else (chunked_kernel, CHUNK)
    args = (x, residual, weight, q, scales, out, eps, side)
    ct.launch(torch.cuda.current_stream(), (padded,), kernel, args)
    return q, scales, out
