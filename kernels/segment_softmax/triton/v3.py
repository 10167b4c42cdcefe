"""Groups of segments where they are short, tiles of equal size where they are long; nothing is scanned.

Hypothesis: a segment that is no longer than a tile needs no other block. As rows of a two-dimensional block, as wide as
segments are on average, many of them share a block, and their sums are those of rows. Only longer ones have to be divided:
a tile meets at most two of these, its first and its last segment, so the parts of a tile are two. They come from the same
launch; a second one adds a segment's parts once for all tiles that a block takes of it, and writes.
Predicted, with the floor at 4.3 TB/s in brackets: 48 us at 16777216-in-4096-fp32-equal (31), whose loads are not aligned;
60 us at 16777216-in-65536-fp32-zipf (31) and 45 us in bfloat16 (16), of which six tenths of the elements are read twice;
200 us at 67108864-in-64-fp32-zipf (125); 11 us at 1048576-in-64-fp32-zipf (2), two launches; 28 us at
16777216-in-8-bf16-equal (16); 18 us at 4194304-in-65536-fp32-equal (8), where a block of 16 rows replaces 16 blocks.
Metric: dram_pct to 65 % at long segments; traffic_amplification 1.5 at most.
"""

import torch
import triton
import triton.language as tl

TILE = 4096
"""Elements of a tile, and of a block of rows, at most; a longer segment is divided."""
NARROWEST = 32
"""Least width of a block of rows."""
GROUP = 4
"""Part of a tile that a block of rows has: an element of a row takes more registers than one of a tile."""
BLOCKS = 4
"""Blocks of a multiprocessor that write long segments."""
PROBES = tl.constexpr(128)
NOTHING = tl.constexpr(float("-inf"))
PART = tl.constexpr(4)
"""Numbers of a tile: the largest and the sum of its first and of its last segment."""


@triton.jit
def finite(top):
    """What to subtract: nothing where all are minus infinity."""
    return tl.where(top == NOTHING, 0.0, top)


@triton.jit
def last_start(offsets, low, high, position):
    """The last index from `low` whose offset is at most `position`; offsets[high] is larger."""
    probes = tl.arange(0, PROBES)
    while high - low > 1:
        step = (high - low + PROBES - 1) // PROBES
        at = low + probes * step
        cuts = tl.load(offsets + at, mask=at < high, other=0)
        low += (tl.sum(((at < high) & (cuts <= position)).to(tl.int32), 0) - 1) * step
        high = tl.minimum(low + step, high)
    return low


@triton.jit
def elements(tile, at, size, TILE: tl.constexpr):
    """Elements of a tile in float32; only the last tile needs a mask, which no load of 16 bytes could have."""
    if size == TILE:
        x = tl.load(tile + at)
    else:
        x = tl.load(tile + at, mask=at < size, other=NOTHING)
    return x.to(tl.float32)


@triton.jit
def put_part(part, x, is_in):
    """Store the largest and the sum of a segment's elements in a tile."""
    top = tl.max(tl.where(is_in, x, NOTHING), 0)
    tl.store(part, top)
    tl.store(part + 1, tl.sum(tl.where(is_in, tl.exp(x - finite(top)), 0.0), 0))


@triton.jit
def put_parts(values, offsets, parts, spans, tile, total, segments, TILE: tl.constexpr):
    """Store the parts that a tile has of long segments; `spans` gets their numbers, or -1."""
    start = tile * TILE
    size = tl.minimum(total - start, TILE).to(tl.int32)
    first = last_start(offsets, tile * 0, tile * 0 + segments, start)
    last = last_start(offsets, first, tile * 0 + segments, start + size - 1)
    left = tl.load(offsets + last)
    right = tl.load(offsets + first + 1)
    first_is_long = right - tl.load(offsets + first) > TILE
    last_is_long = (last > first) & (tl.load(offsets + last + 1) - left > TILE)
    if first_is_long | last_is_long:
        at = tl.arange(0, TILE)
        x = elements(values + start, at, size, TILE)
        if first_is_long:
            put_part(parts + tile * PART, x, at < tl.minimum(right - start, size).to(tl.int32))
        if last_is_long:
            put_part(parts + tile * PART + 2, x, (at >= (left - start).to(tl.int32)) & (at < size))
    tl.store(spans + tile * 2, tl.where(first_is_long, first, -1))
    tl.store(spans + tile * 2 + 1, tl.where(last_is_long, last, -1))


@triton.jit
def write_rows(
    values, offsets, y, group, segments, TILE: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr
):  # fmt: skip
    """Write the segments of a group that are no longer than a tile, each as a row."""
    row = group * ROWS + tl.arange(0, ROWS)
    left = tl.load(offsets + row, mask=row < segments, other=0)
    size = tl.load(offsets + row + 1, mask=row < segments, other=0) - left
    size = tl.where(size > TILE, 0, size).to(tl.int32)
    longest = tl.max(size, 0)
    at = tl.arange(0, WIDTH)
    rows = values + left[:, None]
    results = y + left[:, None]
    if longest <= WIDTH:
        inside = at[None, :] < size[:, None]
        x = tl.load(rows + at[None, :], mask=inside, other=NOTHING).to(tl.float32)
        terms = tl.exp(x - finite(tl.max(x, 1))[:, None])
        tl.store(results + at[None, :], (terms / tl.sum(terms, 1)[:, None]).to(y.dtype.element_ty), mask=inside)
    else:
        top = tl.full([ROWS], NOTHING, tl.float32)
        whole = tl.zeros([ROWS], tl.float32)
        for begin in range(0, longest, WIDTH):
            place = begin + at[None, :]
            x = tl.load(rows + place, mask=place < size[:, None], other=NOTHING).to(tl.float32)
            more = tl.maximum(top, tl.max(x, 1))
            terms = tl.exp(x - finite(more)[:, None])
            whole = whole * tl.exp(top - finite(more)) + tl.sum(terms, 1)
            top = more
        for begin in range(0, longest, WIDTH):
            place = begin + at[None, :]
            x = tl.load(rows + place, mask=place < size[:, None], other=NOTHING).to(tl.float32)
            terms = tl.exp(x - finite(top)[:, None]) / whole[:, None]
            tl.store(results + place, terms.to(y.dtype.element_ty), mask=place < size[:, None])


@triton.jit(do_not_specialize=["segments"])  # one segment, as a constant, stops the compiler of Triton 3.6
def groups_kernel(
    values, offsets, y, parts, spans, total, tiles, segments, TILE: tl.constexpr, ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):  # fmt: skip
    """Take the parts of long segments from tiles, which come first, and write groups of short ones."""
    block = tl.program_id(0).to(tl.int64)
    if block < tiles:
        put_parts(values, offsets, parts, spans, block, total, segments, TILE)
    else:
        write_rows(values, offsets, y, block - tiles, segments, TILE, ROWS, WIDTH)


@triton.jit
def combined(parts, left, right, TILE: tl.constexpr, CHUNK: tl.constexpr):
    """What to subtract in a long segment, and its sum: it is the last one of its first tile, unless it begins there,
    and the first of the others."""
    begin = left // TILE
    end = (right - 1) // TILE
    top = NOTHING
    total = 0.0
    tile = begin
    while tile <= end:
        each = tile + tl.arange(0, CHUNK)
        own = parts + each * PART + tl.where((each == begin) & (left > begin * TILE), 2, 0)
        tops = tl.load(own, mask=each <= end, other=NOTHING)
        sums = tl.load(own + 1, mask=each <= end, other=0.0)
        more = tl.maximum(top, tl.max(tops, 0))
        total = total * tl.exp(top - finite(more)) + tl.sum(sums * tl.exp(tops - finite(more)), 0)
        top = more
        tile += CHUNK
    return finite(top), total


@triton.jit
def long_kernel(values, offsets, y, parts, spans, total, tiles, TILE: tl.constexpr, CHUNK: tl.constexpr):
    """Write the elements of long segments, the last tiles first, as L2 still has them."""
    tile = tiles - 1 - tl.program_id(0).to(tl.int64)
    of = tile * 0 - 1
    shift = 0.0
    whole = 1.0
    while tile >= 0:
        start = tile * TILE
        size = tl.minimum(total - start, TILE).to(tl.int32)
        for piece in tl.static_range(2):  # the first piece last, as the tile before ends with its segment
            segment = tl.load(spans + tile * 2 + 1 - piece)
            if segment >= 0:
                left = tl.load(offsets + segment)
                right = tl.load(offsets + segment + 1)
                if segment != of:
                    shift, whole = combined(parts, left, right, TILE, CHUNK)
                    of = segment
                at = tl.arange(0, TILE)
                x = elements(values + start, at, size, TILE)
                terms = (tl.exp(x - shift) / whole).to(y.dtype.element_ty)
                if (left <= start) & (right >= start + TILE):
                    tl.store(y + start + at, terms)
                else:
                    inside = (at >= (left - start).to(tl.int32)) & (at < tl.minimum(right - start, size).to(tl.int32))
                    tl.store(y + start + at, terms, mask=inside)
        tile -= tl.num_programs(0)


def run(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    total, segments, device = len(values), len(offsets) - 1, values.device
    y = torch.empty_like(values)
    if total == 0:
        return y
    many = torch.cuda.get_device_properties(device).multi_processor_count if values.is_cuda else 3
    tile = max(256, min(TILE, triton.next_power_of_2(triton.cdiv(total, BLOCKS * many))))
    width = max(NARROWEST, min(tile, triton.next_power_of_2(triton.cdiv(total, segments))))
    rows = max(1, tile // GROUP // width)
    tiles, groups = triton.cdiv(total, tile), triton.cdiv(segments, rows)
    parts = torch.empty(tiles * 4, dtype=torch.float32, device=device)
    spans = torch.empty(tiles * 2, dtype=torch.int64, device=device)
    warps = max(1, tile // 512)
    groups_kernel[(tiles + groups,)](
        values, offsets, y, parts, spans, total, tiles, segments, TILE=tile, ROWS=rows, WIDTH=width,
        num_warps=warps,
    )  # fmt: skip
    long_kernel[(min(tiles, BLOCKS * many),)](
        values, offsets, y, parts, spans, total, tiles, TILE=tile, CHUNK=256, num_warps=warps
    )
    return y
