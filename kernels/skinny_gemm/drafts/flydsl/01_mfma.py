"""Few tokens on matrix cores: a block takes 16 rows of w, and each of its waves a share of k.

An MFMA of 16 x 16 x 16 has rows of w as its first operand and tokens as its second. Each lane holds 8 neighbours in k
of both, a load of 16 bytes, and uses them in two MFMAs: the order in k is another than the instruction's, but the same
for both operands. Nothing goes through LDS but the sums of the waves, which are added in a fixed order.

Behind the ends of w and x the hardware reads 0, so only the last step in k has masks. An array may have 2 GiB at most.
"""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

WAVE, ROWS, STEP = 64, 16, 32
MOST_TILES = 4  # of 16 tokens, in one block
AHEAD = 4  # steps whose loads are in flight together


@flyc.kernel
def mfma_rows(
    x: fx.Tensor,
    w: fx.Tensor,
    y: fx.Tensor,
    m: fx.Int32,
    n: fx.Int32,
    k: fx.Int32,
    TILES: fx.Constexpr[int],
    WAVES: fx.Constexpr[int],
    WIDE: fx.Constexpr[bool],
    WHOLE: fx.Constexpr[bool],
):
    """WIDE: loads of 16 bytes are aligned and end where rows do. WHOLE: k is a multiple of STEP."""
    thread = fx.thread_idx.x
    lane, wave = thread % WAVE, thread // WAVE
    kind = x.element_type
    tokens, steps = TILES * 16, k // STEP

    product = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, kind)),
        fx.make_layout((1, 1, 1), (0, 0, 0)),
        fx.make_tile(None, None, fx.make_layout((4, 4, 2), (1, 8, 4))),
    )
    atom = fx.make_copy_atom(fx.rocdl.BufferCopy128b() if WIDE else fx.rocdl.BufferCopy16b(), kind)
    copy_w = fx.make_tiled_copy_A(atom, product).get_slice(lane)
    copy_x = fx.make_tiled_copy_B(atom, product).get_slice(lane)

    def tiles_of(tensor, rows, block):
        """Return a block's rows, and their coordinates, as tiles: (rows, STEP, steps)."""
        coordinates = fx.make_view((0, 0), fx.make_identity_layout(tensor.shape))
        buffer = fx.rocdl.make_buffer_tensor(tensor, max_size=False)
        tile = (rows, STEP)
        return [fx.flat_divide(each, tile)[None, None, block, None] for each in (buffer, coordinates)]

    tiles_w, places_w = tiles_of(w, ROWS, fx.block_idx.x)
    tiles_x, places_x = tiles_of(x, tokens, fx.block_idx.y)
    from_w, from_x = copy_w.partition_S(tiles_w), copy_x.partition_S(tiles_x)
    mine = product.thr_slice(lane)
    sums = fx.make_rmem_tensor(fx.make_layout((4, 1, TILES), (1, 0, 4)), fx.Float32)
    sums.fill(0)

    def load(step, masked):
        """Return the operands of a step; `masked`: 0 where k has ended."""
        pair = mine.make_fragment_A(tiles_w[None, None, 0]), mine.make_fragment_B(tiles_x[None, None, 0])
        sources = (copy_w, from_w, places_w, (n, k)), (copy_x, from_x, places_x, (m, k))
        for operand, (copier, source, places, ends) in zip(pair, sources, strict=True):
            mask = None
            if fx.const_expr(masked):
                operand.fill(0)
                firsts = copier.partition_S(places)[(0, None), None, None, step]
                mask = fx.make_rmem_tensor(fx.make_ordered_layout(firsts.shape, (0, 1, 2)), fx.Boolean)
                for each in fx.range_constexpr(fx.size(mask.shape).unpack()):
                    mask[each] = fx.elem_less(firsts[each], ends)
            fx.copy(atom, source[None, None, None, step], copier.retile(operand), pred=mask)
        return pair

    def add(pair):
        fx.gemm(product, sums, pair[0], pair[1], sums)

    count = (steps - wave + WAVES - 1) // WAVES
    rounds = count // AHEAD
    for turn in range(rounds):
        pairs = [load(wave + (turn * AHEAD + each) * WAVES, False) for each in fx.range_constexpr(AHEAD)]
        for pair in pairs:
            add(pair)
    for step in range(rounds * AHEAD, count):
        add(load(wave + step * WAVES, False))
    if fx.const_expr(not WHOLE):  # one wave has the rest; the steps of the others lie behind the end
        add(load(steps + (wave + WAVES - steps % WAVES) % WAVES, True))

    shared = fx.SharedAllocator().allocate(fx.Array[fx.Float32, WAVES * TILES * 256, 16]).peek()
    partial = shared.view(fx.make_layout(WAVES * TILES * 256, 1))
    values = sums.load()
    for tile in fx.range_constexpr(TILES):
        for part in fx.range_constexpr(4):
            partial[(wave * TILES + tile) * 256 + lane * 4 + part] = values[tile * 4 + part]
    fx.gpu.barrier()
    for first in fx.range_constexpr(0, TILES * 256, WAVES * WAVE):
        place = thread + first
        total = partial[place]
        for other in fx.range_constexpr(1, WAVES):
            total = total + partial[place + other * TILES * 256]
        inner = place % 256
        row = fx.block_idx.x * ROWS + (inner // 64) * 4 + inner % 4
        token = fx.block_idx.y * tokens + (place // 256) * 16 + (inner // 4) % 16
        if (row < n) & (token < m):
            y[token, row] = total.to(kind)


@flyc.jit
def launch(
    x: fx.Tensor,
    w: fx.Tensor,
    y: fx.Tensor,
    m: fx.Int32,
    n: fx.Int32,
    k: fx.Int32,
    TILES: fx.Constexpr[int],
    WAVES: fx.Constexpr[int],
    WIDE: fx.Constexpr[bool],
    WHOLE: fx.Constexpr[bool],
    stream: fx.Stream = fx.Stream(None),
):
    grid = ((n + ROWS - 1) // ROWS, (m + TILES * 16 - 1) // (TILES * 16))
    mfma_rows(x, w, y, m, n, k, TILES, WAVES, WIDE, WHOLE).launch(
        grid=grid, block=(WAVES * WAVE,), stream=stream
    )


def run(x, w):
    x, w = x.contiguous(), w.contiguous()
    (m, k), n = x.shape, w.shape[0]
    y = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if not y.numel():
        return y
    wide = k % 8 == 0 and x.data_ptr() % 16 == 0 and w.data_ptr() % 16 == 0
    tiles = min(MOST_TILES, -(-m // 16))
    stream = fx.Stream(torch.cuda.current_stream().cuda_stream)
    launch(x, w, y, m, n, k, tiles, 4, wide, k % STEP == 0, stream)
    return y
