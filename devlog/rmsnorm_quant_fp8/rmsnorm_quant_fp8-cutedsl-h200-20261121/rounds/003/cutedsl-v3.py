"""A block a row, with as many warps as the row needs: no lane works on what is not there.

Hypothesis: Triton's tiles and blocks are powers of two, so that 7168 columns are a tile of 8192 with an eighth of
the lanes, loads and registers idle. Here 7168 columns are 7 warps of 32 lanes with four times 8 elements each,
4096 are 4 warps, 5120 are 5, and where a row divides evenly no load has a predicate. A thread asks for its parts
of x and residual at once, eight 16-byte loads, and for the weight's four before the sum is known; 70 registers, so
that four blocks of 7 warps have 112 KiB under way. The row stays in registers until it is quantised.
Where tokens are fewer than two a multiprocessor, a thread has 8 elements only: 28 warps a row.
Predicted: 8192x7168 in 107 us, 16384x4096 in 122 us (floors 96 and 110), 128x7168 under 5 us in a graph; 1 to 3 %
less than Triton's 02 at 7168. Metric: dram__throughput.avg.pct_of_peak_sustained_elapsed above 87.
"""

import functools

import cutlass
import cutlass.cute as cute
import torch
from cutlass import BFloat16, Constexpr, Float8E4M3FN, Float16, Float32, Int64, const_expr, range_constexpr
from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

ELEMENT = {torch.float32: Float32, torch.bfloat16: BFloat16, torch.float16: Float16}
VEC = 8
"""Elements of a row side by side in a thread, a pack: 16 packs are a group."""


@cute.jit
def larger(a: Float32, b: Float32):
    return cute.arch.fmax(a, b, nan=True)


@cute.jit
def block_sum(value: Float32, shared: cute.Tensor, warps: Constexpr):
    value = cute.arch.warp_reduction(value, lambda a, b: a + b)
    if const_expr(warps > 1):
        mine = cute.arch.warp_idx()  # a shuffle of the whole warp: one lane alone would wait for ever
        if cute.arch.lane_idx() == 0:
            shared[mine] = value
        cute.arch.sync_threads()
        value = Float32(0)
        for warp in range_constexpr(warps):
            value += shared[warp]
    return value


@cute.jit
def take(row: cute.Tensor, part: cute.Tensor, threads: Constexpr):
    """A row's packs `thread`, `thread + threads` and so on; zeros beyond its end."""
    thread, _, _ = cute.arch.thread_idx()
    source, packs = cute.zipped_divide(row, (VEC,)), row.shape[0] // VEC
    for p in range_constexpr(part.shape[1]):
        if const_expr((p + 1) * threads <= packs):
            cute.autovec_copy(source[None, p * threads + thread], part[None, p])
        else:
            part[None, p].fill(0)
            if p * threads + thread < packs:
                cute.autovec_copy(source[None, p * threads + thread], part[None, p])


@cute.jit
def give(part: cute.Tensor, row: cute.Tensor, p: Constexpr, threads: Constexpr):
    """One of the packs into a row, where it is one of the row's."""
    thread, _, _ = cute.arch.thread_idx()
    pack = p * threads + thread
    target = cute.zipped_divide(row, (VEC,))
    if const_expr((p + 1) * threads <= row.shape[0] // VEC):
        cute.autovec_copy(part, target[None, pack])
    elif pack < row.shape[0] // VEC:
        cute.autovec_copy(part, target[None, pack])


@cute.jit
def quantise(
    h: cute.Tensor,
    weight: cute.Tensor,
    rstd: Float32,
    q: cute.Tensor,
    scales: cute.Tensor,
    row,
    threads: Constexpr,
):
    """Normalises a thread's packs of a row in place, and stores them quantised, with their groups' scales."""
    thread, _, _ = cute.arch.thread_idx()
    tokens, groups, packs = q.shape[0], scales.shape[0], h.shape[1]
    tops = cute.make_rmem_tensor((packs,), Float32)
    for p in range_constexpr(packs):
        h[None, p].store(h[None, p].load() * rstd * weight[None, p].load().to(Float32))
        tops[p] = Float32(1e-4)
        for k in range_constexpr(VEC):
            tops[p] = larger(tops[p], abs(h[k, p]))
    values = cute.make_rmem_tensor((VEC, packs), q.element_type)
    for p in range_constexpr(packs):
        tops[p] = cute.arch.warp_reduction(tops[p], larger, threads_in_group=16)
        values[None, p].store((h[None, p].load() * (448.0 * cute.arch.rcp_approx(tops[p]))).to(q.element_type))
    for p in range_constexpr(packs):
        give(values[None, p], q[Int64(row), None], p, threads)
    if thread % 16 == 0:
        for p in range_constexpr(packs):
            group = (p * threads + thread) // 16
            if group < groups:
                scales[group, row] = tops[p] * (1 / 448.0)
                if row == tokens - 1:
                    for ahead in range_constexpr(1, 4):
                        if row + ahead < scales.shape[1]:
                            scales[group, row + ahead] = Float32(0)  # the padding


@cute.kernel
def row_kernel(
    x: cute.Tensor, residual: cute.Tensor, weight: cute.Tensor, q: cute.Tensor, scales: cute.Tensor,
    out: cute.Tensor, eps: Float32, packs: Constexpr, warps: Constexpr,
):  # fmt: skip
    row, _, _ = cute.arch.block_idx()
    threads = 32 * warps
    xs, rs, ws = (cute.make_rmem_tensor((VEC, packs), x.element_type) for _ in "xrw")
    take(x[Int64(row), None], xs, threads)
    take(residual[Int64(row), None], rs, threads)
    take(weight, ws, threads)

    h = cute.make_rmem_tensor((VEC, packs), Float32)
    h.store(xs.load().to(Float32) + rs.load().to(Float32))
    rs.store(h.load().to(x.element_type))
    for p in range_constexpr(packs):
        give(rs[None, p], out[Int64(row), None], p, threads)
    shared = cutlass.memory.SmemAllocator().allocate_tensor(Float32, cute.make_layout(warps), byte_alignment=16)
    squares = (h.load() * h.load()).reduce(cute.ReductionOp.ADD, Float32(0), 0)
    total = block_sum(squares, shared, warps)
    rstd = cute.math.rsqrt(total * (1.0 / x.shape[1]) + eps, fastmath=True)
    quantise(h, ws, rstd, q, scales, row, threads)


@cute.jit
def launch(
    x: cute.Tensor, residual: cute.Tensor, weight: cute.Tensor, q: cute.Tensor, scales: cute.Tensor,
    out: cute.Tensor, eps: Float32, stream, packs: Constexpr, warps: Constexpr,
):  # fmt: skip
    kernel = row_kernel(x, residual, weight, q, scales, out, eps, packs, warps)
    kernel.launch(grid=(x.shape[0], 1, 1), block=(32 * warps, 1, 1), stream=stream)


@functools.cache
def compiled(dtype: torch.dtype, groups: int, packs: int):
    tokens, padded, cols = cute.sym_int(), cute.sym_int(divisibility=4), 128 * groups
    x, residual, weight, q, scales, out = (
        make_fake_compact_tensor(element, shape, stride_order=order, assumed_align=16)
        for element, shape, order in (
            (ELEMENT[dtype], (tokens, cols), (1, 0)),
            (ELEMENT[dtype], (tokens, cols), (1, 0)),
            (ELEMENT[dtype], (cols,), (0,)),
            (Float8E4M3FN, (tokens, cols), (1, 0)),
            (Float32, (groups, padded), (1, 0)),
            (ELEMENT[dtype], (tokens, cols), (1, 0)),
        )
    )
    stream = make_fake_stream(use_tvm_ffi_env_stream=True)
    warps = -(-groups // (2 * packs))
    return cute.compile(
        launch, x, residual, weight, q, scales, out, Float32(0), stream, packs, warps, options="--enable-tvm-ffi"
    )


def run(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    tokens, groups = x.shape[0], x.shape[1] // 128
    q = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    scales = x.new_empty(groups, -(-tokens // 4) * 4, dtype=torch.float32)
    out = torch.empty_like(x)
    few = tokens < 2 * torch.cuda.get_device_properties(x.device).multi_processor_count
    packs = max(1 if few else 4, -(-groups // 64))  # of at most 32 warps
    compiled(x.dtype, groups, packs)(x, residual, weight, q, scales, out, eps)
    return q, scales, out
