"""Stamp of a Triton kernel: a function that kernels call. Import it where kernels are compiled only."""

import triton
import triton.language as tl

from warpsmith.languages.shared import stamp_table, stamps

ADDRESS = tl.constexpr(stamp_table.stamp_table().data_ptr())
ROWS, MOST_PHASES, COLUMNS = (tl.constexpr(n) for n in (stamps.ROWS, stamps.MOST_PHASES, stamps.COLUMNS))


@triton.jit  # type: ignore[untyped-decorator]
def store_triton_stamp(phase: tl.constexpr) -> None:
    """Store both clocks and the multiprocessor in the row of this block, where it has one."""
    width, height = tl.num_programs(0), tl.num_programs(1)
    stride = (width * height * tl.num_programs(2) + ROWS - 1) // ROWS
    block = (tl.program_id(2) * height + tl.program_id(1)) * width + tl.program_id(0)
    if block % stride == 0:
        stamp = tl.full([], ADDRESS, tl.int64).to(tl.pointer_type(tl.int64))
        stamp += (block // stride * MOST_PHASES + phase) * COLUMNS
        time = tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], tl.int64, False, 1)
        cycles = tl.inline_asm_elementwise("mov.u64 $0, %clock64;", "=l", [], tl.int64, False, 1)
        unit = tl.inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], tl.int32, False, 1)
        tl.store(stamp, time)
        tl.store(stamp + 1, cycles)
        tl.store(stamp + 2, unit.to(tl.int64))
