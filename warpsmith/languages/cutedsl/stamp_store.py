"""Stamp of a CuTe DSL kernel: a function that kernels call. Import it where kernels are compiled only."""

from cutlass._mlir.dialects import llvm

from warpsmith.languages.shared import stamp_table, stamps

# Registers are local to the braces. `a` holds the coordinates of the thread, later of the block.
_PTX = """\
{{
.reg .pred p;
.reg .u32 a, b, blocks, stride, block;
.reg .u64 at, time, cycles, unit;
mov.u32 a, %tid.x; mov.u32 b, %tid.y; or.b32 a, a, b; mov.u32 b, %tid.z; or.b32 a, a, b;
setp.eq.u32 p, a, 0;
mov.u32 blocks, %nctaid.x; mov.u32 a, %nctaid.y; mul.lo.u32 blocks, blocks, a;
mov.u32 a, %nctaid.z; mul.lo.u32 blocks, blocks, a;
add.u32 stride, blocks, {rows} - 1; div.u32 stride, stride, {rows};
mov.u32 block, %ctaid.z; mov.u32 a, %nctaid.y; mov.u32 b, %ctaid.y; mad.lo.u32 block, block, a, b;
mov.u32 a, %nctaid.x; mov.u32 b, %ctaid.x; mad.lo.u32 block, block, a, b;
rem.u32 a, block, stride;
setp.eq.and.u32 p, a, 0, p;
div.u32 block, block, stride;
mul.wide.u32 at, block, {row_bytes};
add.u64 at, at, {address};
mov.u64 time, %globaltimer; mov.u64 cycles, %clock64; mov.u32 a, %smid; cvt.u64.u32 unit, a;
@p st.global.u64 [at], time;
@p st.global.u64 [at + 8], cycles;
@p st.global.u64 [at + 16], unit;
}}"""


def store_cutedsl_stamp(phase: int) -> None:
    """Store both clocks and the multiprocessor in the row of this block, where it has one."""
    stamp_bytes = 8 * stamps.COLUMNS
    text = _PTX.format(
        rows=stamps.ROWS,
        row_bytes=stamps.MOST_PHASES * stamp_bytes,
        address=stamp_table.stamp_table().data_ptr() + phase * stamp_bytes,
    )
    llvm.inline_asm(None, [], text, "~{memory}", has_side_effects=True)
