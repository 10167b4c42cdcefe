"""Softmax: a row is read once, by one warp, one block or a cluster of blocks, and waits in registers for its sum.

Rows of up to 1024 elements share a block. Their array is seen as (pieces, rows, columns), so that a warp has a whole row and
reduces it without a barrier. Rows of up to 16384 elements are one block's; up to 131072 a cluster's, whose blocks exchange
maxima and sums. What cannot be cut into equal parts of whole vectors, and what is longer, one block reads twice.

The exponential is of base 2 with its denormals as zero, a multiplication and one instruction: cuTile's own takes five.
"""

import cuda.tile as ct
import torch

LOG2_E = 1.4426950408889634
SHORT = 1024
ROWS = 4
MANY = 2048
ONE_BLOCK = 16384
CLUSTER = 8
CHUNK = 4096


@ct.kernel
def short_kernel(x, y, PIECES: ct.Constant[int], ROWS: ct.Constant[int], TILE: ct.Constant[int]):
    first = ct.bid(0)
    tile = ct.load(
        x, index=(0, first, 0), shape=(PIECES, ROWS, TILE), padding_mode=ct.PaddingMode.NEG_INF, allow_tma=False
    ).astype(ct.float32)
    most = ct.max(ct.max(tile, 0, keepdims=True), 2, keepdims=True)  # a thread's own elements first
    tile = ct.exp2((tile - most) * LOG2_E, flush_to_zero=True)
    inverse = 1.0 / ct.sum(ct.sum(tile, 0, keepdims=True), 2, keepdims=True)
    ct.store(y, index=(0, first, 0), tile=(tile * inverse).astype(y.dtype), allow_tma=False)


@ct.kernel
def row_kernel(x, y, PARTS: ct.Constant[int], TILE: ct.Constant[int]):
    row = ct.bid(0)
    tile = ct.load(
        x, index=(row, 0), shape=(PARTS, TILE), padding_mode=ct.PaddingMode.NEG_INF, allow_tma=False
    ).astype(ct.float32)
    most = ct.max(ct.max(tile, 1, keepdims=True), 0, keepdims=True)
    tile = ct.exp2((tile - most) * LOG2_E, flush_to_zero=True)
    inverse = 1.0 / ct.sum(ct.sum(tile, 1, keepdims=True), 0, keepdims=True)
    ct.store(y, index=(row, 0), tile=(tile * inverse).astype(y.dtype), allow_tma=False)


@ct.kernel(num_worker_warps=8)
def chunked_kernel(x, y, TILE: ct.Constant[int]):
    row, chunks = ct.bid(0), ct.cdiv(x.shape[1], TILE)
    most = ct.full((1, 1), -float("inf"), ct.float32)
    total = ct.full((1, 1), 0.0, ct.float32)
    for j in range(chunks):
        part = ct.load(x, index=(row, j), shape=(1, TILE), padding_mode=ct.PaddingMode.NEG_INF, allow_tma=False)
        part = part.astype(ct.float32)
        more = ct.maximum(most, ct.max(part, 1, keepdims=True))
        safe = ct.where(more == -float("inf"), 0.0, more)  # nothing but minus infinity so far
        part = ct.exp2((part - safe) * LOG2_E, flush_to_zero=True)
        total = total * ct.exp2((most - safe) * LOG2_E, flush_to_zero=True) + ct.sum(part, 1, keepdims=True)
        most = more
    inverse = 1.0 / total
    for j in range(chunks):
        part = ct.load(x, index=(row, j), shape=(1, TILE), padding_mode=ct.PaddingMode.NEG_INF, allow_tma=False)
        part = ct.exp2((part.astype(ct.float32) - most) * LOG2_E, flush_to_zero=True) * inverse
        ct.store(y, index=(row, j), tile=part.astype(y.dtype), allow_tma=False)


# As many blocks on a multiprocessor as its registers hold without spills.
hinted = {
    1: row_kernel,
    2: row_kernel,
    4: row_kernel.replace_hints(num_worker_warps=8, occupancy=6),
    8: row_kernel.replace_hints(num_worker_warps=8, occupancy=5),
    16: row_kernel.replace_hints(num_worker_warps=8, occupancy=3),
}
clusters = {
    (size, parts): row_kernel.replace_hints(num_worker_warps=8, num_ctas=parts, occupancy=3 if size == 2 else 2)
    for size in (2, 4)
    for parts in (2, 4, CLUSTER)
}


def run(x: torch.Tensor) -> torch.Tensor:
    rows, cols = x.shape
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    if y.numel() == 0:  # a grid of no blocks is no launch
        return y
    stream, size = torch.cuda.current_stream(), x.element_size()
    side = max(SHORT, 1 << (cols - 1).bit_length())  # a tile's sides are powers of two
    pieces = SHORT * size // 512  # a warp loads 16 bytes a thread
    parts = side // ONE_BLOCK
    if side == SHORT and rows >= MANY and is_divisible(x, pieces):
        views = (array.view(rows, pieces, cols // pieces).transpose(0, 1) for array in (x, y))
        ct.launch(stream, (ct.cdiv(rows, ROWS),), short_kernel, (*views, pieces, ROWS, SHORT // pieces))
    elif side <= ONE_BLOCK:
        ct.launch(stream, (rows,), hinted[side // SHORT], (x, y, 1, side))
    elif parts <= CLUSTER and is_divisible(x, parts):
        views = (array.view(rows * parts, cols // parts) for array in (x, y))
        ct.launch(stream, (rows,), clusters[min(size, 4), parts], (*views, parts, ONE_BLOCK))
    else:
        ct.launch(stream, (rows,), chunked_kernel, (x, y, CHUNK))
    return y


def is_divisible(x: torch.Tensor, parts: int) -> bool:
    """Return True if a row is `parts` equal parts of whole vectors of 16 bytes, one after the other."""
    return x.is_contiguous() and x.shape[1] * x.element_size() % (16 * parts) == 0
