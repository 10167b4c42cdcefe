"""RMSNorm: a block for each row, which stays in registers while its squares are summed.

A row is a buffer of its own length: the hardware returns 0 for what lies behind its end and drops stores there, so no
element needs a mask. Rows that the registers cannot hold are read twice.
"""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

WAVE = 64
MOST_ELEMENTS = 64  # of a row in one thread's registers


@flyc.kernel
def rmsnorm_rows(
    x: fx.Tensor,
    weight: fx.Tensor,
    y: fx.Tensor,
    cols: fx.Int32,
    eps: fx.Float32,
    VECTOR: fx.Constexpr[int],
    TILES: fx.Constexpr[int],
    WAVES: fx.Constexpr[int],
):
    """TILES is the number of a thread's vectors; 0: as many as the row needs, read twice."""
    thread, threads = fx.thread_idx.x, WAVES * WAVE
    kind = x.element_type
    bytes_each = kind.width // 8
    atoms = {
        16: fx.rocdl.BufferCopy16b,
        32: fx.rocdl.BufferCopy32b,
        64: fx.rocdl.BufferCopy64b,
        128: fx.rocdl.BufferCopy128b,
    }
    atom = fx.make_copy_atom(atoms[VECTOR * kind.width](), kind)

    def vectors(row):
        """Return a row as vectors; the buffer ends where the row does."""
        buffer = fx.rocdl.make_buffer_tensor(row, num_records_bytes=fx.Int64(cols * bytes_each))
        return fx.logical_divide(buffer, fx.make_layout(VECTOR, 1))

    row = fx.block_idx.x
    x_row, y_row = vectors(fx.slice(x, (row, None))), vectors(fx.slice(y, (row, None)))
    weights = vectors(weight)

    def load(source, index):
        fragment = fx.make_rmem_tensor(VECTOR, kind)
        fx.copy(atom, fx.slice(source, (None, index)), fragment)
        return fragment.load().to(fx.Float32)

    def store(index, values):
        fragment = fx.make_rmem_tensor(VECTOR, kind)
        fragment.store((values * load(weights, index)).to(kind))
        fx.copy(atom, fragment, fx.slice(y_row, (None, index)))

    parts = []
    total = fx.Float32(0.0)
    vectors_in_row = (cols + VECTOR - 1) // VECTOR
    if fx.const_expr(TILES > 0):
        for tile in fx.range_constexpr(TILES):
            part = load(x_row, thread + tile * threads)
            parts.append(part)
            total = total + (part * part).reduce(fx.ReductionOp.ADD)
    else:
        for index in range(thread, vectors_in_row, threads):
            part = load(x_row, index)
            total = total + (part * part).reduce(fx.ReductionOp.ADD)

    for step in fx.range_constexpr(6):  # 64 lanes
        total = total + total.shuffle_xor(WAVE >> (step + 1), WAVE)
    if fx.const_expr(WAVES > 1):
        shared = fx.SharedAllocator().allocate(fx.Array[fx.Float32, WAVES, 16]).peek()
        sums = shared.view(fx.make_layout(WAVES, 1))
        if thread % WAVE == 0:
            sums[thread // WAVE] = total
        fx.gpu.barrier()
        total = sums[0]
        for wave in fx.range_constexpr(1, WAVES):
            total = total + sums[wave]

    scale = fx.rsqrt(total / cols.to(fx.Float32) + eps)
    if fx.const_expr(TILES > 0):
        for tile in fx.range_constexpr(TILES):
            store(thread + tile * threads, parts[tile] * scale)
    else:
        for index in range(thread, vectors_in_row, threads):
            store(index, load(x_row, index) * scale)


@flyc.jit
def launch(
    x: fx.Tensor,
    weight: fx.Tensor,
    y: fx.Tensor,
    rows: fx.Int32,
    cols: fx.Int32,
    eps: fx.Float32,
    VECTOR: fx.Constexpr[int],
    TILES: fx.Constexpr[int],
    WAVES: fx.Constexpr[int],
    stream: fx.Stream = fx.Stream(None),
):
    kernel = rmsnorm_rows(x, weight, y, cols, eps, VECTOR, TILES, WAVES)
    kernel.launch(grid=(rows,), block=(WAVES * WAVE,), stream=stream)


def run(x, weight, eps):
    x, weight = x.contiguous(), weight.contiguous()
    y = torch.empty_like(x)
    rows, cols = x.shape
    if not y.numel():
        return y
    wide = 16 // x.element_size()
    aligned = all(tensor.data_ptr() % 16 == 0 for tensor in (x, weight, y))
    vector = wide if aligned and cols % wide == 0 else 1
    vectors = -(-cols // vector)
    waves = min(16, max(1, -(-vectors // (4 * WAVE))))
    tiles = -(-vectors // (waves * WAVE))
    if tiles * vector > MOST_ELEMENTS:
        tiles = 0
    stream = fx.Stream(torch.cuda.current_stream().cuda_stream)
    launch(x, weight, y, rows, cols, eps, vector, tiles, waves, stream)
    return y
