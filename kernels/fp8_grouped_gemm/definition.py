"""Products of each expert's tokens with its own e4m3 weights, in one call: the linear layers of a mixture of experts.

    y[i, j] = sum over k of (a[i, k] * a_scales[k // 128, i]) * (b[e, j, k] * b_scales[e, j // 128, k // 128])
    where offsets[e] <= i < offsets[e + 1]

This is the layout that DeepGEMM calls contiguous: tokens lie in the order of their experts, each expert's rows are
padded to a multiple of 128 with zeros, and all else is as in `fp8_block_gemm`, the bound's room for sums of 14 bits
included. Of `experts` only `used` have tokens, as for the few tokens of decode; the counts of the others fall by
Zipf's law, in random order. n is any number, k a multiple of 128.
"""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload
from warpsmith.lab import peer_libraries

BLOCK = 128
"""Columns of k and rows of b that share a scale, and rows of a that belong to one expert."""

ZIPF = 1.1
"""Exponent by which counts of tokens fall with their expert's rank."""

RANDOM_STEPS = 8
TRUNCATED_STEPS = 32
"""As in `fp8_block_gemm`."""

CHUNK = 1 << 26
"""Products of blocks that `extra` holds at once."""


def at(
    blocks: int, experts: int, used: int, n: int, k: int, law: str = "zipf", set: str = "representative"
) -> Workload:
    return Workload(
        name=f"{blocks}-of-{used}-in-{experts}x{n}x{k}-bf16-{law}",
        axes={"blocks": blocks, "experts": experts, "used": used, "n": n, "groups": k // BLOCK},
        dtype="bfloat16",
        distribution=law,
        set=set,
    )


definition = Definition(
    name="fp8_grouped_gemm",
    description="y = a b[e]^T of e4m3 tokens in the order of their experts, with scales of 1x128 and 128x128",
    op_type="moe",
    axes={
        "blocks": "rows of all experts over 128",
        "experts": "experts whose weights are here",
        "used": "experts that have tokens",
        "n": "features of the result",
        "groups": "features of the input over 128",
    },
    inputs={
        "a": TensorSpec(shape=("128 * blocks", "128 * groups"), dtype="float8_e4m3fn"),
        "a_scales": TensorSpec(
            shape=("groups", "128 * blocks"), dtype="float32", description="of 128 columns; tokens contiguous"
        ),
        "b": TensorSpec(shape=("experts", "n", "128 * groups"), dtype="float8_e4m3fn", role="weight"),
        "b_scales": TensorSpec(
            shape=("experts", "(n + 127) // 128", "groups"), dtype="float32", role="weight",
            description="of 128 rows and columns",
        ),
        "offsets": TensorSpec(
            shape=("experts + 1",), dtype="int32", description="first row of each expert, and the number of rows"
        ),
    },
    outputs={"y": TensorSpec(shape=("128 * blocks", "n"), dtype="bfloat16")},
    deterministic=True,
    tolerance=Tolerance(reduction="128 * groups", accumulate="float32"),
    flops="2 * 128 * blocks * n * 128 * groups",
    bytes_read="128 * blocks * (128 + 4) * groups + used * n * 128 * groups"
    " + 4 * used * ((n + 127) // 128) * groups + 4 * experts + 4",
    constraints=(
        "offsets ascend from 0 to 128 * blocks in multiples of 128; equal neighbours are an expert without tokens",
        "1 <= used <= experts, used <= blocks",
    ),
    workloads=(
        # DeepSeek-V3's 256 experts, a slice of eight: 16, 128, 1024 and 8192 tokens with eight experts each.
        at(75, 256, 75, 512, 7168),
        at(192, 256, 180, 512, 7168),
        at(310, 256, 240, 512, 7168),
        at(640, 256, 256, 512, 7168),
        at(640, 256, 256, 7168, 256),
        # DeepGEMM's table: four and eight experts with as many tokens.
        at(256, 4, 4, 4096, 7168, "equal"),
        at(256, 8, 8, 7168, 2048, "equal"),
        at(32, 32, 20, 768, 2048),
        at(75, 256, 75, 7168, 256, set="full"),
        at(512, 256, 1, 512, 7168, set="full"),
        at(64, 64, 48, 2048, 2048, set="full"),
        at(1, 1, 1, 1, 128, set="odd"),
        at(2, 3, 2, 70, 128, set="odd"),
        at(3, 5, 2, 67, 128, "equal", set="odd"),
        at(2, 2, 2, 130, 128, set="odd"),
        at(1, 2, 1, 40, 384, set="odd"),
        at(4, 300, 4, 40, 384, set="odd"),
        at(6, 3, 3, 250, 512, set="odd"),
        at(9, 12, 5, 384, 640, set="odd"),
    ),
)  # fmt: skip


def inputs(workload: Workload, generator: torch.Generator, device: str) -> dict[str, torch.Tensor]:
    """Values over the range of e4m3, scales as quantised layers have them, counts by the workload's law."""
    blocks, experts, used, n, groups = (
        workload.axes[name] for name in ("blocks", "experts", "used", "n", "groups")
    )
    where = {"generator": generator, "device": device}

    def values(rows: int) -> torch.Tensor:
        drawn = torch.empty(rows, BLOCK * groups, dtype=torch.float8_e4m3fn, device=device)
        for part in drawn.split(max(1, (1 << 26) // (BLOCK * groups))):
            part.copy_(torch.randn(part.shape, **where).mul_(64).clamp_(-448, 448))
        return drawn

    offsets = _offsets(blocks, experts, used, workload.distribution, generator)
    a = values(BLOCK * blocks)
    count = offsets.diff()
    tokens = count - (torch.rand(experts, **where) * BLOCK).long() * (count > 0)  # the last block is partly padding
    expert = torch.repeat_interleave(torch.arange(experts, device=device), count, output_size=BLOCK * blocks)
    inside = torch.arange(BLOCK * blocks, device=device) - offsets[expert] < tokens[expert]
    a.view(torch.uint8).masked_fill_(~inside[:, None], 0)
    return {
        "a": a,
        "a_scales": torch.rand(groups, BLOCK * blocks, **where) * 0.018 + 0.002,
        "b": values(experts * n).view(experts, n, -1),
        "b_scales": torch.rand(experts, -(-n // BLOCK), groups, **where) * 0.0009 + 0.0001,
        "offsets": offsets.int(),
    }


def _offsets(blocks: int, experts: int, used: int, law: str, generator: torch.Generator) -> torch.Tensor:
    """First rows, (experts + 1,): each used expert has a block, and the others fall to them by the law."""
    where = {"generator": generator, "device": generator.device}
    shares = (torch.arange(used, device=generator.device) + 1.0).double() ** -(ZIPF if law == "zipf" else 0.0)
    ends = (shares.cumsum(0) / shares.sum() * (blocks - used)).round().long()
    ends[-1] = blocks - used
    counts = torch.zeros(experts, dtype=torch.int64, device=generator.device)
    counts[torch.randperm(experts, **where)[:used]] = 1 + ends.diff(prepend=ends.new_zeros(1))
    return BLOCK * torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _parts(
    a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor, offsets: torch.Tensor
) -> list[tuple[slice, torch.Tensor, torch.Tensor]]:
    """The rows of each expert that has some, and its matrices times their scales, in float32."""
    cuts = offsets.tolist()
    found = []
    for e, (first, last) in enumerate(zip(cuts[:-1], cuts[1:], strict=True)):
        if first < last:
            left = a_scales[:, first:last].t().float().repeat_interleave(BLOCK, 1)
            right = b_scales[e].float().repeat_interleave(BLOCK, 0)[: b.shape[1]].repeat_interleave(BLOCK, 1)
            found.append((slice(first, last), a[first:last].float() * left, b[e].float() * right))
    return found


def reference(
    a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor, offsets: torch.Tensor
) -> torch.Tensor:
    y = torch.zeros(len(a), b.shape[1], dtype=torch.float32, device=a.device)
    for rows, left, right in _parts(a, a_scales, b, b_scales, offsets):
        y[rows] = left @ right.t()
    return y.bfloat16()


def magnitude(
    a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor, offsets: torch.Tensor
) -> torch.Tensor:
    """Products cancel: roundoffs of float32 are those of a sum of absolute values."""
    y = torch.zeros(len(a), b.shape[1], dtype=torch.float32, device=a.device)
    for rows, left, right in _parts(a, a_scales, b, b_scales, offsets):
        y[rows] = left.abs() @ right.abs().t()
    return y


def extra(
    a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor, offsets: torch.Tensor
) -> torch.Tensor:
    """What tensor cores lose when they add 128 products with 14 bits, in roundoffs of `magnitude`."""
    y = torch.zeros(len(a), b.shape[1], dtype=torch.float32, device=a.device)
    for rows, left, right in _parts(a, a_scales, b, b_scales, offsets):
        size, squares, total = (torch.zeros_like(y[rows], dtype=left.dtype) for _ in range(3))
        blocks = (each.unflatten(1, (-1, BLOCK)).movedim(1, 0) for each in (left, right))
        at_once = max(1, CHUNK // size.numel())
        for some, other in zip(*(each.split(at_once) for each in blocks), strict=True):
            part = some @ other.mT
            total += part.sum(0)
            size += (some.abs() @ other.abs().mT).sum(0)
            squares += (part.square() + some.square() @ other.square().mT).sum(0)
        lost = RANDOM_STEPS * squares.sqrt() + TRUNCATED_STEPS * total.abs()
        y[rows] = (lost * 2.0 ** (24 - 13) / size.clamp(min=torch.finfo(torch.float32).tiny)).to(y.dtype)
    return y


def deepgemm(
    a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor, offsets: torch.Tensor
) -> torch.Tensor:
    """DeepSeek's kernel. It is compiled by nvcc at the first call of a shape. It takes each row's expert."""
    library, y = peer_libraries.deep_gemm(), a.new_empty(len(a), b.shape[1], dtype=torch.bfloat16)
    experts = torch.arange(len(b), dtype=torch.int32, device=a.device)
    expert = torch.repeat_interleave(experts, offsets.diff(), output_size=len(a))
    # Without the flag scales would be rounded to powers of two.
    library.m_grouped_fp8_gemm_nt_contiguous((a, a_scales.t()), (b, b_scales), y, expert, disable_ue8m0_cast=True)
    return y


peers = {"deepgemm": deepgemm}
