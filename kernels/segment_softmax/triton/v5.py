"""A block a segment where a call is small, groups of segments where they are short on average, tiles of equal size elsewhere.

Hypothesis: two launches and their scratch memory cost more than they save where a call has few elements, so there a block writes
each segment in one launch. In larger calls tiles, whose segments are scanned, lose most where all segments are short, and groups,
whose loads are not aligned, where segments are as long as a tile: the mean length, known without a look at the offsets, chooses.
Predicted: about 12 times the speed of a block a segment in the geometric mean of the timed workloads, and its speed at drawn ones
that are small.
Metric: time_us.
"""

import torch
import triton
import triton.language as tl

TILE = 4096
"""Elements of a tile at most."""
SCANNED = 1024
"""Elements that a block scans at a time."""
BLOCKS = 4
"""Blocks of a multiprocessor for what is left."""
SMALL = 524288
"""Elements of a call up to which a block writes a segment."""
BLOCK = 4096
"""Elements of such a block at most; a longer segment is read twice."""
ELEMENTS = 16
"""Elements that a thread of it holds."""
FEW = 128
"""Elements of a segment on average below which segments are written in groups."""
NARROWEST = 32
"""Least width of a block of rows."""
GROUP = 4
"""Part of a tile that a block of rows has: an element of a row takes more registers than one of a tile."""
PROBES = tl.constexpr(128)
RANGE = tl.constexpr(10.0)
"""Difference of elements up to which one shift is exact enough for all: its error is as many roundoffs."""
NOTHING = tl.constexpr(float("-inf"))
PART = tl.constexpr(8)
"""Numbers of a tile: the largest and the sum of its first and of its last segment, its least and its largest."""
ENDS = tl.constexpr(4)
"""Numbers of a tile beside groups: the largest and the sum of its first and of its last segment, if they are long."""

_marks: dict[tuple[int | None, int], torch.Tensor] = {}


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
def add(starts, sums, more_starts, more):
    return starts + more_starts, tl.where(more_starts > 0, more, sums + more)


@triton.jit
def larger(starts, tops, more_starts, more):
    return starts + more_starts, tl.where(more_starts > 0, more, tl.maximum(tops, more))


@triton.jit
def finite(top):
    """What to subtract: nothing where all are minus infinity."""
    return tl.where(top == NOTHING, 0.0, top)


@triton.jit
def elements(tile, at, size, TILE: tl.constexpr):
    """Elements of a tile in float32; only the last tile needs a mask, which no load of 16 bytes could have."""
    if size == TILE:
        x = tl.load(tile + at)
    else:
        x = tl.load(tile + at, mask=at < size, other=NOTHING)
    return x.to(tl.float32)


@triton.jit
def write(tile, at, size, result, TILE: tl.constexpr):
    if size == TILE:
        tl.store(tile + at, result.to(tile.dtype.element_ty))
    else:
        tl.store(tile + at, result.to(tile.dtype.element_ty), mask=at < size)


@triton.jit
def put_part(part, x, is_in):
    """Store the largest and the sum of a segment's elements in a tile."""
    top = tl.max(tl.where(is_in, x, NOTHING), 0)
    tl.store(part, top)
    tl.store(part + 1, tl.sum(tl.where(is_in, tl.exp(x - finite(top)), 0.0), 0))


@triton.jit(do_not_specialize=["segments"])  # one segment, as a constant, stops the compiler of Triton 3.6
def tiles_kernel(values, offsets, y, parts, spans, total, segments, TILE: tl.constexpr):
    """Write each tile that is a segment. Of others `spans` gets the first and the last segment, else -1."""
    tile = tl.program_id(0).to(tl.int64)
    start = tile * TILE
    at = tl.arange(0, TILE)
    size = tl.minimum(total - start, TILE).to(tl.int32)
    x = elements(values + start, at, size, TILE)
    first = last_start(offsets, tile * 0, tile * 0 + segments, start)
    left = tl.load(offsets + first)
    right = tl.load(offsets + first + 1)
    last = first
    part = parts + tile * PART
    if right >= start + size:
        top = tl.max(x, 0)
        terms = tl.exp(x - finite(top))
        whole = tl.sum(terms, 0)
        if (left == start) & (right == start + size):
            write(y + start, at, size, terms / whole, TILE)
            first = tile * 0 - 1
        else:
            for piece in tl.static_range(2):
                tl.store(part + 2 * piece, top)
                tl.store(part + 2 * piece + 1, whole)
    else:
        last = last_start(offsets, first + 1, tile * 0 + segments, start + size - 1)
        put_part(part, x, at < (right - start).to(tl.int32))
        put_part(part + 2, x, (at >= (tl.load(offsets + last) - start).to(tl.int32)) & (at < size))
        tl.store(part + 4, tl.min(tl.where(at < size, x, float("inf")), 0))
        tl.store(part + 5, tl.max(x, 0))
    tl.store(spans + tile * 2, first)
    tl.store(spans + tile * 2 + 1, last)


@triton.jit
def combined(parts, left, right, STRIDE: tl.constexpr, TILE: tl.constexpr, CHUNK: tl.constexpr):
    """What to subtract in a segment that crosses tiles, and its sum: it is the last one of its first tile, unless it begins there,
    and the first of the others. A tile has `STRIDE` numbers."""
    begin = left // TILE
    end = (right - 1) // TILE
    top = NOTHING
    total = 0.0
    tile = begin
    while tile <= end:
        each = tile + tl.arange(0, CHUNK)
        own = parts + each * STRIDE + tl.where((each == begin) & (left > begin * TILE), 2, 0)
        tops = tl.load(own, mask=each <= end, other=NOTHING)
        sums = tl.load(own + 1, mask=each <= end, other=0.0)
        more = tl.maximum(top, tl.max(tops, 0))
        total = total * tl.exp(top - finite(more)) + tl.sum(sums * tl.exp(tops - finite(more)), 0)
        top = more
        tile += CHUNK
    return finite(top), total


@triton.jit
def mark_starts(offsets, marks, first, last, start, CHUNK: tl.constexpr):
    """Put 1 where segments `first` to `last` start in a tile; a run of empty ones is jumped over."""
    segment = first
    while segment <= last:
        each = segment + tl.arange(0, CHUNK)
        cuts = tl.load(offsets + each, mask=each <= last, other=0)
        tl.store(marks + (cuts - start), tl.full([CHUNK], 1, tl.int8), mask=each <= last)
        following = segment + CHUNK
        if following <= last:
            cut = tl.load(offsets + segment)
            if tl.load(offsets + following) == cut:
                following = last_start(offsets, following, last + 1, cut) + 1
        segment = following


@triton.jit
def is_end(marks, at, size):
    """Where an element is the last one of its segment in the tile."""
    follows = tl.load(marks + at + 1, mask=at + 1 < size, other=0) != 0
    return (follows | (at + 1 == size)) & (at < size)


@triton.jit
def scan_tops(tile, marks, all_tops, size, TILE: tl.constexpr, SCANNED: tl.constexpr):
    """Store what to subtract in each segment of a tile, by its number in the tile."""
    rank = 0
    top = NOTHING
    for begin in range(0, size, SCANNED):
        at = begin + tl.arange(0, SCANNED)
        x = elements(tile, at, size, TILE)
        ranks, tops = tl.associative_scan((tl.load(marks + at).to(tl.int32), x), 0, larger)
        tops = tl.where(ranks == 0, tl.maximum(tops, top), tops)
        tl.store(all_tops + rank + ranks, finite(tops), mask=is_end(marks, at, size))
        top = tl.max(tl.where(at == begin + SCANNED - 1, tops, NOTHING), 0)
        rank += tl.max(ranks, 0)


@triton.jit
def scan_sums(
    tile, marks, all_tops, all_sums, shift, is_near, size, TILE: tl.constexpr, SCANNED: tl.constexpr
):  # fmt: skip
    """Store the sum of each segment's exponentials in a tile; return the number of the last."""
    rank = 0
    total = 0.0
    for begin in range(0, size, SCANNED):
        at = begin + tl.arange(0, SCANNED)
        starts = tl.load(marks + at).to(tl.int32)
        x = elements(tile, at, size, TILE)
        if is_near:
            terms = tl.exp(x - shift)
        else:
            terms = tl.exp(x - tl.load(all_tops + rank + tl.cumsum(starts, 0)))
        ranks, sums = tl.associative_scan((starts, terms), 0, add)
        sums += tl.where(ranks == 0, total, 0.0)
        tl.store(all_sums + rank + ranks, sums, mask=is_end(marks, at, size))
        total = tl.sum(tl.where(at == begin + SCANNED - 1, sums, 0.0), 0)
        rank += tl.max(ranks, 0)
    return rank


@triton.jit
def put_crossing(top, sums, parts, left, right, shift, is_near, TILE: tl.constexpr, CHUNK: tl.constexpr):
    """Replace what a tile knows of a segment by what all its tiles know."""
    own_shift, total = combined(parts, left, right, PART, TILE, CHUNK)
    if is_near:
        tl.store(sums, total * tl.exp(own_shift - shift))
    else:
        tl.store(top, own_shift)
        tl.store(sums, total)


@triton.jit
def rest_kernel(
    values, offsets, y, marks, scratch, parts, spans, total, tiles, TILE: tl.constexpr, SCANNED: tl.constexpr,
    CHUNK: tl.constexpr,
):  # fmt: skip
    """Write the tiles that are no segment, the last first, as L2 still has them."""
    slot = tl.program_id(0).to(tl.int64)
    marks += slot * TILE
    all_sums = scratch + slot * (2 * TILE)
    all_tops = all_sums + TILE
    tile = tiles - 1 - slot
    of = slot * 0 - 1
    of_shift = 0.0
    of_sum = 1.0
    while tile >= 0:
        start = tile * TILE
        size = tl.minimum(total - start, TILE).to(tl.int32)
        first = tl.load(spans + tile * 2)
        last = tl.load(spans + tile * 2 + 1)
        if first >= 0:
            left = tl.load(offsets + first)
            right = tl.load(offsets + first + 1)
            if first == last:
                at = tl.arange(0, TILE)
                x = elements(values + start, at, size, TILE)
                if first != of:
                    of_shift, of_sum = combined(parts, left, right, PART, TILE, CHUNK)
                    of = first
                write(y + start, at, size, tl.exp(x - of_shift) / of_sum, TILE)
            else:
                last_left = tl.load(offsets + last)
                last_right = tl.load(offsets + last + 1)
                low = tl.load(parts + tile * PART + 4)
                high = tl.load(parts + tile * PART + 5)
                is_near = high - low <= RANGE
                mark_starts(offsets, marks, first + 1, last, start, CHUNK)
                tl.debug_barrier()
                if is_near == 0:
                    scan_tops(values + start, marks, all_tops, size, TILE, SCANNED)
                    tl.debug_barrier()
                rank = scan_sums(values + start, marks, all_tops, all_sums, high, is_near, size, TILE, SCANNED)
                tl.debug_barrier()
                if left < start:
                    put_crossing(all_tops, all_sums, parts, left, right, high, is_near, TILE, CHUNK)
                if last_right > start + size:
                    put_crossing(
                        all_tops + rank, all_sums + rank, parts, last_left, last_right, high, is_near, TILE, CHUNK
                    )
                tl.debug_barrier()
                rank = 0
                for begin in range(0, size, SCANNED):
                    at = begin + tl.arange(0, SCANNED)
                    x = elements(values + start, at, size, TILE)
                    ranks = rank + tl.cumsum(tl.load(marks + at).to(tl.int32), 0)
                    if is_near:
                        terms = tl.exp(x - high)
                    else:
                        terms = tl.exp(x - tl.load(all_tops + ranks))
                    write(y + start, at, size, terms / tl.load(all_sums + ranks), TILE)
                    rank = tl.max(ranks, 0)
                tl.debug_barrier()
                tl.store(marks + tl.arange(0, TILE), tl.zeros([TILE], tl.int8))
                tl.debug_barrier()
        tile -= tl.num_programs(0)


@triton.jit
def put_ends(values, offsets, parts, spans, tile, total, segments, TILE: tl.constexpr):
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
            put_part(parts + tile * ENDS, x, at < tl.minimum(right - start, size).to(tl.int32))
        if last_is_long:
            put_part(parts + tile * ENDS + 2, x, (at >= (left - start).to(tl.int32)) & (at < size))
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
        put_ends(values, offsets, parts, spans, block, total, segments, TILE)
    else:
        write_rows(values, offsets, y, block - tiles, segments, TILE, ROWS, WIDTH)


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
                    shift, whole = combined(parts, left, right, ENDS, TILE, CHUNK)
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


@triton.jit
def segments_kernel(values, offsets, y, BLOCK: tl.constexpr):
    segment = tl.program_id(0).to(tl.int64)
    start = tl.load(offsets + segment)
    size = tl.load(offsets + segment + 1) - start
    at = tl.arange(0, BLOCK)
    if size <= BLOCK:
        inside = at < size
        x = tl.load(values + start + at, mask=inside, other=float("-inf")).to(tl.float32)
        terms = tl.exp(x - tl.max(x, 0))
        tl.store(y + start + at, (terms / tl.sum(terms, 0)).to(y.dtype.element_ty), mask=inside)
    else:
        top = -float("inf")
        total = 0.0
        for first in range(0, size, BLOCK):
            x = tl.load(values + start + first + at, mask=first + at < size, other=float("-inf")).to(tl.float32)
            larger = tl.maximum(top, tl.max(x, 0))
            shift = tl.where(larger == -float("inf"), 0.0, larger)  # nothing but minus infinity so far
            total = total * tl.exp(top - shift) + tl.sum(tl.exp(x - shift), 0)
            top = larger
        for first in range(0, size, BLOCK):
            inside = first + at < size
            x = tl.load(values + start + first + at, mask=inside, other=float("-inf")).to(tl.float32)
            tl.store(y + start + first + at, (tl.exp(x - top) / total).to(y.dtype.element_ty), mask=inside)


def zero_marks(device: torch.device, count: int) -> torch.Tensor:
    """Bytes at zero, a set for each stream: kernels of a stream never overlap, and leave them at zero."""
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
    key = (device.index, stream)
    if key not in _marks:
        _marks[key] = torch.zeros(count, dtype=torch.int8, device=device)
    return _marks[key]


def run_tiles(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    total, device = len(values), values.device
    y = torch.empty_like(values)
    many = torch.cuda.get_device_properties(device).multi_processor_count if values.is_cuda else 3
    tile = max(256, min(TILE, triton.next_power_of_2(triton.cdiv(total, BLOCKS * many))))
    tiles = triton.cdiv(total, tile)
    slots = min(tiles, BLOCKS * many)
    scanned = min(SCANNED, tile)
    marks = zero_marks(device, BLOCKS * many * TILE)
    scratch = torch.empty(slots * 2 * tile, dtype=torch.float32, device=device)
    parts = torch.empty(tiles * 8, dtype=torch.float32, device=device)
    spans = torch.empty(tiles * 2, dtype=torch.int64, device=device)
    tiles_kernel[(tiles,)](
        values, offsets, y, parts, spans, total, len(offsets) - 1, TILE=tile, num_warps=max(1, tile // 512),
        maxnreg=64 if tile == TILE and total % 16 == 0 else 80,  # four blocks; masked stores need more
    )  # fmt: skip
    rest_kernel[(slots,)](
        values, offsets, y, marks, scratch, parts, spans, total, tiles, TILE=tile, SCANNED=scanned, CHUNK=256,
        num_warps=max(1, scanned // 256), maxnreg=128,
    )  # fmt: skip
    return y


def run_groups(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    total, segments, device = len(values), len(offsets) - 1, values.device
    y = torch.empty_like(values)
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


def run_segments(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    segments = len(offsets) - 1
    y = torch.empty_like(values)
    block = max(64, min(BLOCK, triton.next_power_of_2(2 * triton.cdiv(len(values), segments))))
    segments_kernel[(segments,)](
        values, offsets, y, BLOCK=block, num_warps=max(1, min(8, block // (32 * ELEMENTS)))
    )  # fmt: skip
    return y


def run(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    if len(values) == 0:
        return torch.empty_like(values)
    if len(values) <= SMALL:
        return run_segments(values, offsets)
    if len(values) < FEW * (len(offsets) - 1):
        return run_groups(values, offsets)
    return run_tiles(values, offsets)
