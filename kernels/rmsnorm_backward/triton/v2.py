"""RMSNorm backward, two launches: three blocks a multiprocessor take one row at a time, strided over the grid.

Hypothesis: the kernel waits for memory, so blocks that hide each other's waits are worth more than tiles of rows.
A row in registers (16 elements a thread, loads of 16 bytes) with the weight and the sum of dy * n takes 80
registers: three blocks of 256 threads at 4096 columns, 48 KiB of loads under way on a multiprocessor, where
bandwidth times latency asks for 25 KiB. The partial sums are added up by a second launch.
Predicted: 16384x4096 in 108 us, 4 % less than 01. Narrow rows (131072x128) take a warp each and stay slow.
Metric: long_scoreboard stalls down, dram__throughput.avg.pct_of_peak_sustained_elapsed up to 82.
"""

import torch
import triton
import triton.language as tl

ELEMENTS_A_THREAD = 16
THREADS = 768
"""Resident on a multiprocessor, at up to 85 registers each."""


@triton.jit
def rows_kernel(
    x_ptr, dy_ptr, weight_ptr, rstd_ptr, dresidual_ptr, dx_ptr, partial_ptr, rows, cols,
    RESIDUAL: tl.constexpr, RELOAD: tl.constexpr, BLOCK: tl.constexpr,
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


@triton.jit
def columns_kernel(partial_ptr, dw_ptr, count, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Adds up the partial sums of COLS columns, always in the same order."""
    columns = tl.program_id(0) * COLS + tl.arange(0, COLS)[None, :]
    mine = tl.arange(0, ROWS)[:, None]
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
    columns_kernel[grid](partial, dw, count, cols, ROWS=4096 // width, COLS=width, num_warps=4)


def run(
    x: torch.Tensor, dy: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor, dresidual: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    warps = max(1, min(32, block // (32 * ELEMENTS_A_THREAD)))
    blocks = multiprocessors(x.device) * max(1, THREADS // (32 * warps))
    blocks = min(blocks, triton.cdiv(rows, 2))  # partial sums never take more memory than dx and dw
    dx, dw = torch.empty_like(x), torch.empty_like(weight)
    partial = torch.empty((blocks, cols), dtype=torch.float32, device=x.device)
    rows_kernel[(blocks,)](
        x, dy, weight, rstd, dresidual, dx, partial, rows, cols,
        RESIDUAL=dresidual.shape[0] > 0, RELOAD=block > 8192, BLOCK=block, num_warps=warps,
    )
    add_up(partial, dw)
    return dx, dw
