"""Softmax: rows of up to 16384 elements in registers of one block. Longer rows of 16-bit elements stream through
one block twice, the second time from L2: every thread keeps a maximum and a sum of its own, so that no barrier
stands between two loads. Rows of float32, and batches that do not fill the device, are held in the registers
of several blocks and read once.

The blocks of one row exchange their maxima and sums through memory and wait for each other. They cannot
deadlock: work is taken in the order of a ticket, so that every block that somebody waits for has started
already. The last block to leave a row sets its counters back to zero, so the workspace needs no clearing.
"""

import torch
import triton
import triton.language as tl

IN_REGISTERS = 16384
ELEMENTS_A_THREAD = 16
PART = 16384
PART_WARPS = 16

_workspaces: dict[tuple[int, int], tuple[torch.Tensor, torch.Tensor]] = {}


@triton.jit
def row_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    x = tl.load(x_ptr + row * cols + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    y = e / tl.sum(e, 0)
    tl.store(y_ptr + row * cols + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def stream_kernel(x_ptr, y_ptr, cols, R: tl.constexpr, C: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * cols
    y_ptr += row * cols
    offsets = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    largest = tl.full([R], -float("inf"), tl.float32)
    total = tl.zeros([R], tl.float32)
    for start in range(0, cols, R * C):
        mask = start + offsets < cols
        x = tl.load(x_ptr + start + offsets, mask=mask, other=-float("inf"), eviction_policy="evict_last").to(tl.float32)
        new = tl.maximum(largest, tl.max(x, 1))
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - safe) + tl.sum(tl.exp(x - safe[:, None]), 1)
        largest = new
    top = tl.max(largest, 0)
    safe = tl.where(top == -float("inf"), 0.0, top)
    whole = tl.sum(total * tl.exp(largest - safe), 0)  # a thread without elements weighs exp(-inf) = 0
    scale = 1 / whole
    for start in range(0, cols, R * C):
        mask = start + offsets < cols
        x = tl.load(x_ptr + start + offsets, mask=mask, other=-float("inf"), eviction_policy="evict_first").to(tl.float32)
        y = tl.exp(x - top) * scale
        tl.store(y_ptr + start + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def split_kernel(x_ptr, y_ptr, partial_ptr, counter_ptr, cols, parts, blocks, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    ticket = tl.atomic_add(counter_ptr, 1, sem="relaxed")
    if ticket == blocks - 1:
        tl.store(counter_ptr, 0)
    row = ticket // parts
    part = ticket % parts
    arrived_ptr = counter_ptr + 1 + 2 * row
    left_ptr = arrived_ptr + 1
    offsets = part * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < cols
    start = row.to(tl.int64) * cols
    x = tl.load(x_ptr + start + offsets, mask=mask, other=-float("inf"))
    largest = tl.max(x, 0).to(tl.float32)
    safe = tl.where(largest == -float("inf"), 0.0, largest)  # a part that is masked throughout
    total = tl.sum(tl.exp(x.to(tl.float32) - safe), 0)

    mine = partial_ptr + (row * PARTS + part) * 2
    tl.store(mine, largest)
    tl.store(mine + 1, total)
    tl.debug_barrier()
    tl.atomic_add(arrived_ptr, 1, sem="release")
    while tl.atomic_add(arrived_ptr, 0, sem="acquire") < parts:
        pass

    others = tl.arange(0, PARTS)
    theirs = partial_ptr + (row * PARTS + others) * 2
    largests = tl.load(theirs, mask=others < parts, other=-float("inf"), volatile=True)
    totals = tl.load(theirs + 1, mask=others < parts, other=0.0, volatile=True)
    top = tl.max(largests, 0)
    whole = tl.sum(totals * tl.exp(largests - top), 0)
    y = tl.exp(x.to(tl.float32) - top) * (1 / whole)
    tl.store(y_ptr + start + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)

    tl.debug_barrier()
    if tl.atomic_add(left_ptr, 1, sem="relaxed") == parts - 1:
        tl.store(left_ptr, 0)
        tl.store(arrived_ptr, 0)


def warps(block: int) -> int:
    """Enough threads that each holds ELEMENTS_A_THREAD elements, from 1 to 32 warps."""
    return max(1, min(32, block // (32 * ELEMENTS_A_THREAD)))


def workspace(x: torch.Tensor, rows: int, parts: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Partial results and zeroed counters, one set a stream: kernels of one stream never overlap."""
    key = (x.device.index, torch.cuda.current_stream(x.device).cuda_stream)
    kept = _workspaces.get(key)
    if kept is None or kept[0].numel() < 2 * rows * parts or kept[1].numel() < 1 + 2 * rows:
        partial = torch.empty(max(2 * rows * parts, 1 << 16), dtype=torch.float32, device=x.device)
        counters = torch.zeros(max(1 + 2 * rows, 1 << 12), dtype=torch.int32, device=x.device)
        kept = _workspaces[key] = (partial, counters)
    return kept


def run(x: torch.Tensor) -> torch.Tensor:
    rows, cols = x.shape
    y = torch.empty_like(x)
    block = triton.next_power_of_2(cols)
    few = rows < torch.cuda.get_device_properties(x.device).multi_processor_count
    if block <= IN_REGISTERS:
        row_kernel[(rows,)](x, y, cols, BLOCK=block, num_warps=warps(block))
    elif block > 2 * IN_REGISTERS and (few or x.element_size() == 4):
        parts = triton.cdiv(cols, PART)
        partial, counters = workspace(x, rows, triton.next_power_of_2(parts))
        split_kernel[(rows * parts,)](
            x, y, partial, counters, cols, parts, rows * parts,
            PARTS=triton.next_power_of_2(parts), BLOCK=PART, num_warps=PART_WARPS,
        )
    else:
        chunk = 16 // x.element_size()
        threads = 4096 if block > 2 * IN_REGISTERS else 2048
        stream_kernel[(rows,)](x, y, cols, R=threads, C=chunk, num_warps=threads // 128)
    return y
