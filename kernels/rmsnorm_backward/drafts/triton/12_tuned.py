"""RMSNorm backward as version 4, its constants in a table by the length of a row that the search fills.

Hypothesis: warps a block, blocks a multiprocessor and rows a tile were chosen by arithmetic of registers: 768 threads
resident at up to 85 registers. Occupancy there is 25 to 50 %, and one step up or down may hide more of the waits.
Predicted: 2 % in the mean, most at 8192 columns where one block of 32 warps is all that fits.
Metric: time_us at 16384x4096 from 103 to 101.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

NARROW = 1024
"""Longest row that shares a block's threads with others."""

# tune: warps in 2, 4, 8, 16, 32
# tune: resident in 1, 2, 3, 4, 5, 6, 8, 10 (at launch)
# tune: tall in 1, 2, 4
# tune: where 32 * warps * resident <= max_threads_per_sm
# tune: where tall * cols <= 1024 * warps
# tuned: begin, from v7 on NVIDIA H200, 2026-11-22
CONFIGS = (
    (1024, {"warps": 4, "resident": 8, "tall": 1}),  # for cols <= 1024
    (4096, {"warps": 8, "resident": 3, "tall": 1}),  # for cols <= 4096
    (8192, {"warps": 32, "resident": 1, "tall": 2}),  # for cols <= 8192
    (None, {"warps": 32, "resident": 1, "tall": 1}),  # for any
)
# tuned: end


def config(cols: int) -> dict[str, int]:
    """Warps a block, blocks a multiprocessor, and rows that a thread has a part of at once."""
    return next(found for most, found in CONFIGS if most is None or cols <= most)


@triton.jit
def rows_kernel(
    x_ptr,
    dy_ptr,
    weight_ptr,
    rstd_ptr,
    dresidual_ptr,
    dx_ptr,
    partial_ptr,
    rows,
    cols,
    RESIDUAL: tl.constexpr,
    RELOAD: tl.constexpr,
    BLOCK: tl.constexpr,
    EARLY: tl.constexpr,
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
    if EARLY:
        gdc_launch_dependents()
    tl.store(partial_ptr + program * cols + offsets, dw, mask=mask)


@triton.jit
def blocks_kernel(
    x_ptr,
    dy_ptr,
    weight_ptr,
    rstd_ptr,
    dresidual_ptr,
    dx_ptr,
    partial_ptr,
    rows,
    cols,
    stretch,
    RESIDUAL: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    EARLY: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    columns = offsets[None, :]
    dw = tl.zeros([BLOCK], tl.float32)
    last = tl.minimum((program + 1) * stretch, rows)
    for start in range(program * stretch, last, ROWS):
        row = start + tl.arange(0, ROWS)[:, None]
        mask = (row < last) & (columns < cols)
        at = row * cols + columns
        x = tl.load(x_ptr + at, mask=mask, other=0.0)
        dy = tl.load(dy_ptr + at, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row, mask=row < last, other=0.0)
        weight = tl.load(weight_ptr + columns, mask=columns < cols, other=0.0)  # from L1, not held
        n = x.to(tl.float32) * rstd
        g = dy * weight.to(tl.float32)
        mean = tl.sum(g * n, 1, keep_dims=True) / cols
        dw += tl.sum(dy * n, 0)
        dx = rstd * (g - n * mean)
        if RESIDUAL:
            dx += tl.load(dresidual_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=mask)
    if EARLY:
        gdc_launch_dependents()
    tl.store(partial_ptr + program * cols + offsets, dw, mask=offsets < cols)


@triton.jit
def tiles_kernel(
    x_ptr,
    dy_ptr,
    weight_ptr,
    rstd_ptr,
    dresidual_ptr,
    dx_ptr,
    partial_ptr,
    rows,
    cols,
    RESIDUAL: tl.constexpr,
    DEPTH: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    EARLY: tl.constexpr,
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
    if EARLY:
        gdc_launch_dependents()
    total = tl.sum(dw, 0)
    offsets = tl.arange(0, BLOCK)
    tl.store(partial_ptr + program * cols + offsets, total, mask=offsets < cols)


@triton.jit
def columns_kernel(partial_ptr, dw_ptr, count, cols, ROWS: tl.constexpr, COLS: tl.constexpr, EARLY: tl.constexpr):
    """Adds up the partial sums of COLS columns, always in the same order."""
    columns = tl.program_id(0) * COLS + tl.arange(0, COLS)[None, :]
    mine = tl.arange(0, ROWS)[:, None]
    if EARLY:
        gdc_wait()  # until the launch before has ended and its results are seen
    total = tl.zeros([ROWS, COLS], tl.float32)
    for start in range(0, count, ROWS):
        mask = (start + mine < count) & (columns < cols)
        total += tl.load(partial_ptr + (start + mine) * cols + columns, mask=mask, other=0.0)
    dw = tl.sum(total, 0)[None, :]
    tl.store(dw_ptr + columns, dw.to(dw_ptr.dtype.element_ty), mask=columns < cols)


def multiprocessors(device: torch.device) -> int:
    """Few where kernels are interpreted, so that a program has several rows."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2


def add_up(partial: torch.Tensor, dw: torch.Tensor) -> None:
    count, cols = partial.shape
    width = 16 if cols > 1024 else 4  # enough programs where columns are few
    grid = (triton.cdiv(cols, width),)
    early = {"EARLY": True, "launch_pdl": True} if dw.is_cuda else {"EARLY": False}  # not interpreted
    columns_kernel[grid](partial, dw, count, cols, ROWS=4096 // width, COLS=width, num_warps=4, **early)


def run(
    x: torch.Tensor, dy: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor, dresidual: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    narrow = block <= NARROW
    found = config(cols)
    warps, tall = found["warps"], found["tall"]
    # partial sums never take more memory than dx and dw
    blocks = min(multiprocessors(x.device) * found["resident"], triton.cdiv(rows, 2))
    dx, dw = torch.empty_like(x), torch.empty_like(weight)
    partial = torch.empty((blocks, cols), dtype=torch.float32, device=x.device)
    if narrow:
        across = max(1, 32 * warps * 8 // block)  # rows of 16-byte pieces that the threads reach at once
        tiles_kernel[(blocks,)](
            x,
            dy,
            weight,
            rstd,
            dresidual,
            dx,
            partial,
            rows,
            cols,
            RESIDUAL=dresidual.shape[0] > 0,
            DEPTH=tall,
            ROWS=across,
            BLOCK=block,
            num_warps=warps,
            EARLY=x.is_cuda,
        )
    elif tall > 1:
        blocks_kernel[(blocks,)](
            x,
            dy,
            weight,
            rstd,
            dresidual,
            dx,
            partial,
            rows,
            cols,
            triton.cdiv(rows, blocks),
            RESIDUAL=dresidual.shape[0] > 0,
            ROWS=tall,
            BLOCK=block,
            num_warps=warps,
            EARLY=x.is_cuda,
        )
    else:
        rows_kernel[(blocks,)](
            x,
            dy,
            weight,
            rstd,
            dresidual,
            dx,
            partial,
            rows,
            cols,
            RESIDUAL=dresidual.shape[0] > 0,
            RELOAD=block > 8192,
            BLOCK=block,
            num_warps=warps,
            EARLY=x.is_cuda,
        )
    add_up(partial, dw)
    return dx, dw
