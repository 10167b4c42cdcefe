"""Blocks hold parts of a row, publish their totals before they scan, and add the totals of all parts before theirs.

Hypothesis: a row of a million elements is a chain of 256 tiles for one block. As 128 parts it is everybody's: each part
needs one number of each part before it, and these are a single load of at most some KB from L2. A word of 64 bits holds a flag and a
sum, so that whoever sees the flag has the sum. Parts are taken in the order of a ticket: whoever is waited for has started.
The last block to leave a row clears its words.
Predicted: 36 us at 4096x4096 in float32, where a row is one part; 145 us at 64x1048576, where 125 is the floor at 4.3 TB/s.
Metric: dram_pct to 85 %; traffic_amplification 1.0.
"""

import torch
import triton
import triton.language as tl

PART = 8192
"""Elements of a part; shorter rows are one part."""
ELEMENTS = 16
"""Elements that a thread holds."""
SET = tl.constexpr(1 << 32)

_workspaces: dict[tuple[int | None, int], tuple[torch.Tensor, torch.Tensor]] = {}


@triton.jit
def totals_kernel(x, y, words, counters, cols, parts, blocks, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    ticket = tl.program_id(0)
    if PARTS > 1:
        ticket = tl.atomic_add(counters, 1, sem="relaxed")
        if ticket == blocks - 1:
            tl.store(counters, 0)
    row = ticket // parts
    part = ticket % parts
    at = part * BLOCK + tl.arange(0, BLOCK)
    inside = at < cols
    start = row.to(tl.int64) * cols
    terms = tl.load(x + start + at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    if PARTS > 1:
        own = words + row.to(tl.int64) * PARTS
        bits = tl.sum(terms, 0).to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
        tl.atomic_xchg(own + part, bits | SET, sem="relaxed")
        sums = tl.cumsum(terms, 0)
        others = tl.arange(0, PARTS)
        before = others < part
        seen = tl.load(own + others, mask=before, other=SET, volatile=True)
        while tl.min(seen, 0) < SET:
            seen = tl.load(own + others, mask=before, other=SET, volatile=True)
        totals = (seen & 0xFFFFFFFF).to(tl.int32).to(tl.float32, bitcast=True)
        sums += tl.sum(tl.where(before, totals, 0.0), 0)
        tl.store(y + start + at, sums.to(y.dtype.element_ty), mask=inside, cache_modifier=".cs")
        if tl.atomic_add(counters + 1 + row, 1, sem="acq_rel") == parts - 1:
            tl.store(own + others, tl.zeros([PARTS], tl.int64), mask=others < parts)
            tl.store(counters + 1 + row, 0)
    else:
        tl.store(y + start + at, tl.cumsum(terms, 0).to(y.dtype.element_ty), mask=inside, cache_modifier=".cs")


def workspace(device: torch.device, rows: int, parts: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Words of parts and counters, all at zero, one set a stream: kernels of a stream never overlap."""
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
    key = (device.index, stream)
    both = _workspaces.get(key)
    if both is None or both[0].numel() < rows * parts or both[1].numel() < 1 + rows:
        words = torch.zeros(max(rows * parts, 1 << 16), dtype=torch.int64, device=device)
        counters = torch.zeros(max(1 + rows, 1 << 12), dtype=torch.int32, device=device)
        both = _workspaces[key] = (words, counters)
    return both


def run(x: torch.Tensor) -> torch.Tensor:
    rows, cols = x.shape
    y = torch.empty_like(x)
    block = max(16, min(PART, triton.next_power_of_2(cols)))
    parts = triton.cdiv(cols, block)
    most = triton.next_power_of_2(parts)
    words, counters = workspace(x.device, rows, most) if parts > 1 else (y, y)
    totals_kernel[(rows * parts,)](
        x, y, words, counters, cols, parts, rows * parts, PARTS=most, BLOCK=block,
        num_warps=max(1, min(32, block // (32 * ELEMENTS))),
    )  # fmt: skip
    return y
