"""RMSNorm backward in one launch: the last block of each group adds up its partial sums, the last group's all of
them.

Hypothesis: a second launch costs its start and a pass of few blocks over the partial sums. Counters in memory say
which block of a group of GROUP is the last to come; it adds up the group's sums, and the last of those blocks adds
up what the groups have. The order of additions is by number, whoever comes last: every bit is the same at each
call. Nobody waits for anybody, and counters are left at zero, so that no launch clears them.
Predicted: 131072x128 in 29 us, 2 us less than 03; at 4096 columns and more no gain, since one block then adds up 2
x 512 KiB alone.
Metric: one kernel in the trace; the tail after the first block has ended below 2 us at 128 columns.
"""

import torch
import triton
import triton.language as tl

ELEMENTS_A_THREAD = 16
THREADS = 512
"""Resident on a multiprocessor, at up to 128 registers each."""

NARROW = 1024
"""Longest row that shares a block's threads with others."""
DEPTH = 2
"""Rows of a tile in one thread: 16 elements of x and of dy."""
TILE_THREADS = 640
GROUP = 32

_counters: dict[tuple[int, int], torch.Tensor] = {}


@triton.jit
def add_rows(partial_ptr, first, count, step, cols, offsets, mask, AT_ONCE: tl.constexpr, BLOCK: tl.constexpr):
    """The sum of `count` rows, `step` apart, in their order."""
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, count, AT_ONCE):
        index = start + tl.arange(0, AT_ONCE)[:, None]
        at = (first + index * step) * cols + offsets[None, :]
        some = tl.load(partial_ptr + at, mask=(index < count) & mask[None, :], other=0.0, cache_modifier=".cg")
        total += tl.sum(some, 0)
    return total


@triton.jit
def finish(
    partial_ptr, counter_ptr, dw_ptr, program, cols,
    GROUP: tl.constexpr, AT_ONCE: tl.constexpr, BLOCK: tl.constexpr,
):
    """The last block of a group adds up the group's partial sums, the last of those what the groups have."""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    blocks = tl.num_programs(0)
    groups = tl.cdiv(blocks, GROUP)
    group = program // GROUP
    first = group * GROUP
    size = tl.minimum(blocks - first, GROUP)
    tl.debug_barrier()
    if tl.atomic_add(counter_ptr + 1 + group, 1, sem="acq_rel") == size - 1:
        tl.store(counter_ptr + 1 + group, 0)  # for the next launch
        total = add_rows(partial_ptr, first, size, 1, cols, offsets, mask, AT_ONCE, BLOCK)
        tl.store(partial_ptr + first * cols + offsets, total, mask=mask)
        tl.debug_barrier()
        if tl.atomic_add(counter_ptr, 1, sem="acq_rel") == groups - 1:
            tl.store(counter_ptr, 0)
            dw = add_rows(partial_ptr, 0, groups, GROUP, cols, offsets, mask, AT_ONCE, BLOCK)
            tl.store(dw_ptr + offsets, dw.to(dw_ptr.dtype.element_ty), mask=mask)


@triton.jit
def rows_kernel(
    x_ptr, dy_ptr, weight_ptr, rstd_ptr, dresidual_ptr, dx_ptr, partial_ptr, counter_ptr, dw_ptr, rows, cols,
    RESIDUAL: tl.constexpr, RELOAD: tl.constexpr, BLOCK: tl.constexpr,
    GROUP: tl.constexpr, AT_ONCE: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0)
    dw = tl.zeros([BLOCK], tl.float32)
    for row in range(program, rows, tl.num_programs(0)):
        at = row * cols + offsets
        x = tl.load(x_ptr + at, mask=mask, other=0.0)
        dy = tl.load(dy_ptr + at, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        n = x.to(tl.float32) * rstd
        g = dy * weight.to(tl.float32)
        mean = tl.sum(g * n, 0) / cols
        dw += dy * n
        if RELOAD:  # from L1: held until here, the row would be spilled
            tl.debug_barrier()
            n = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32) * rstd
            g = tl.load(dy_ptr + at, mask=mask, other=0.0).to(tl.float32) * weight.to(tl.float32)
        dx = rstd * (g - n * mean)
        if RESIDUAL:
            dx += tl.load(dresidual_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=mask)
    tl.store(partial_ptr + program * cols + offsets, dw, mask=mask)
    finish(partial_ptr, counter_ptr, dw_ptr, program, cols, GROUP, AT_ONCE, BLOCK)


@triton.jit
def tiles_kernel(
    x_ptr, dy_ptr, weight_ptr, rstd_ptr, dresidual_ptr, dx_ptr, partial_ptr, counter_ptr, dw_ptr, rows, cols,
    RESIDUAL: tl.constexpr, DEPTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    GROUP: tl.constexpr, AT_ONCE: tl.constexpr,
):
    """DEPTH x ROWS rows at a time: those along DEPTH lie in one thread, so that it adds them up alone."""
    program = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)[None, None, :]
    tile = tl.arange(0, DEPTH)[:, None, None] * ROWS + tl.arange(0, ROWS)[None, :, None]
    weight = tl.load(weight_ptr + columns, mask=columns < cols, other=0.0).to(tl.float32)
    dw = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in range(program * DEPTH * ROWS, rows, tl.num_programs(0) * DEPTH * ROWS):
        row = start + tile
        mask = (row < rows) & (columns < cols)
        at = row * cols + columns
        x = tl.load(x_ptr + at, mask=mask, other=0.0)
        dy = tl.load(dy_ptr + at, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row, mask=row < rows, other=0.0)
        n = x.to(tl.float32) * rstd
        g = dy * weight
        dx = rstd * (g - n * (tl.sum(g * n, 2, keep_dims=True) / cols))
        dw += tl.sum(dy * n, 0)
        if RESIDUAL:
            dx += tl.load(dresidual_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=mask)
    total = tl.sum(dw, 0)
    offsets = tl.arange(0, BLOCK)
    tl.store(partial_ptr + program * cols + offsets, total, mask=offsets < cols)
    finish(partial_ptr, counter_ptr, dw_ptr, program, cols, GROUP, AT_ONCE, BLOCK)


def multiprocessors(device: torch.device) -> int:
    """Few where kernels are interpreted, so that a program has several rows."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2


def zeroed(device: torch.device, count: int) -> torch.Tensor:
    """Counters that every launch leaves at zero, one set a stream: kernels of one stream never overlap."""
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
    kept = _counters.get((device.index or 0, stream))
    if kept is None or kept.numel() < count:
        kept = torch.zeros(max(count, 1 << 10), dtype=torch.int32, device=device)
        _counters[device.index or 0, stream] = kept
    return kept


def run(
    x: torch.Tensor, dy: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor, dresidual: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    narrow = block <= NARROW
    warps = 4 if narrow else max(1, min(32, block // (32 * ELEMENTS_A_THREAD)))
    blocks = multiprocessors(x.device) * max(1, (TILE_THREADS if narrow else THREADS) // (32 * warps))
    blocks = min(blocks, triton.cdiv(rows, 2))  # partial sums never take more memory than dx and dw
    dx, dw = torch.empty_like(x), torch.empty_like(weight)
    partial = torch.empty((blocks, cols), dtype=torch.float32, device=x.device)
    counters = zeroed(x.device, 1 + triton.cdiv(blocks, GROUP))
    if narrow:
        across = max(1, 128 * 8 // block)  # rows of 16-byte pieces that the threads reach at once
        tiles_kernel[(blocks,)](
            x, dy, weight, rstd, dresidual, dx, partial, counters, dw, rows, cols,
            RESIDUAL=dresidual.shape[0] > 0, DEPTH=DEPTH, ROWS=across, BLOCK=block, num_warps=warps,
            GROUP=GROUP, AT_ONCE=GROUP,
        )
    else:
        rows_kernel[(blocks,)](
            x, dy, weight, rstd, dresidual, dx, partial, counters, dw, rows, cols,
            RESIDUAL=dresidual.shape[0] > 0, RELOAD=block > 8192, BLOCK=block, num_warps=warps,
            GROUP=GROUP, AT_ONCE=4 if block <= 8192 else 2,
        )
    return dx, dw
