"""SwiGLU and e4m3 in groups of 128: a block takes sixteen groups of one row.

Gates and factors are two rows of one array, so that both tiles are loaded flat in vectors of 16 bytes and reshaped to
(groups, 128) for the scales. Neighbouring blocks take neighbouring rows, whose scales share a line. The sigmoid is an
exponential of base 2 with its denormals as zero and an approximate division: cuTile's own exponential and division take
some ten instructions each, and issue slots are what this operator runs out of next after memory.
"""

import cuda.tile as ct
import torch

GROUP = 128
LARGEST = 448.0
AMAX_FLOOR = 1e-4
LOG2_E = 1.4426950408889634
APPROX = ct.RoundingMode.APPROX
PART = 16
FEW_PART = 8
FEW = 16384


@ct.kernel
def part_kernel(x, q, scales, GROUPS: ct.Constant[int]):
    row, part, zero = ct.bid(0), ct.bid(1), ct.PaddingMode.ZERO
    size = GROUPS * GROUP
    if row < x.shape[0]:
        gate = ct.load(x, index=(row, 0, part), shape=(1, 1, size), padding_mode=zero, allow_tma=False)
        up = ct.load(x, index=(row, 1, part), shape=(1, 1, size), padding_mode=zero, allow_tma=False)
        gate = gate.astype(ct.float32)
        below = 1.0 + ct.exp2(gate * -LOG2_E, flush_to_zero=True)
        a = ct.truediv(gate, below, rounding_mode=APPROX, flush_to_zero=True) * up.astype(ct.float32)
        a = ct.reshape(a, (GROUPS, GROUP))
        amax = ct.maximum(ct.max(ct.abs(a), 1, keepdims=True), AMAX_FLOOR)
        a = a * ct.truediv(LARGEST, amax, rounding_mode=APPROX, flush_to_zero=True)
        ct.store(q, index=(row, part), tile=ct.reshape(a.astype(q.dtype), (1, size)), allow_tma=False)
        ct.store(scales, index=(part, row), tile=amax * (1 / LARGEST), allow_tma=False)
    else:  # tokens are padded to a multiple of four, and their scales are zero
        ct.store(scales, index=(part, row), tile=ct.full((GROUPS, 1), 0.0, ct.float32), allow_tma=False)


def run(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    tokens, width = x.shape[0], x.shape[1] // 2
    groups, padded = width // GROUP, tokens + -tokens % 4
    q = x.new_empty(tokens, width, dtype=torch.float8_e4m3fn)
    scales = x.new_empty(groups, padded, dtype=torch.float32)
    if q.numel() == 0:  # a grid of no blocks is no launch
        return q, scales
    part = PART if padded * groups > FEW else FEW_PART  # few groups: more and smaller blocks
    halves = x.unflatten(1, (2, width))
    ct.launch(torch.cuda.current_stream(), (padded, ct.cdiv(groups, part)), part_kernel, (halves, q, scales, part))
    return q, scales
