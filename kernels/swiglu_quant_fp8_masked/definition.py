"""`swiglu_quant_fp8` for experts with room for `capacity` tokens each, of which the first `masked_m` are there.

    a = silu(gate) * up; scales and y_q as in `swiglu_quant_fp8`, for each token t < masked_m[e] of expert e

The layout is that of DeepGEMM's masked grouped product: x is (experts, capacity, gates and factors), y_q (experts,
capacity, width), scales (experts, groups, capacity padded to a multiple of 4). Results are given, and nothing of a
token that is not there may be written: the caller's memory stays as it was, which the reference shows as NaN, with
which the lab fills it. Such tokens' inputs are arbitrary; here they are numbers a hundred times as large as the
others, so that any `masked_m` fits any x. The width is a multiple of 128.
"""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload
from warpsmith.lab import peer_libraries
from warpsmith.lab.peers import Peer

AMAX_FLOOR = 1e-4
LARGEST = 448.0


def at(
    experts: int, capacity: int, width: int, routed: int, set: str = "representative", dtype: str = "bfloat16"
) -> Workload:
    short = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[dtype]
    return Workload(
        name=f"{experts}x{capacity}x{width}-{routed}-{short}",
        axes={"experts": experts, "capacity": capacity, "groups": width // 128, "routed": routed},
        dtype=dtype,
        set=set,
    )


definition = Definition(
    name="swiglu_quant_fp8_masked",
    description="a = silu(gate) * up; y_q, scales = e4m3 of a in groups of 128, for the tokens that experts have",
    op_type="activation",
    axes={
        "experts": "experts of this rank",
        "capacity": "tokens that an expert has room for",
        "groups": "width of the result over 128",
        "routed": "tokens of all experts",
    },
    inputs={
        "x": TensorSpec(shape=("experts", "capacity", "256 * groups"), description="gates, then factors"),
        "masked_m": TensorSpec(shape=("experts",), dtype="int32", description="tokens that each expert has"),
    },
    outputs={
        "y_q": TensorSpec(shape=("experts", "capacity", "128 * groups"), dtype="float8_e4m3fn"),
        "scales": TensorSpec(shape=("experts", "groups", "4 * ((capacity + 3) // 4)"), dtype="float32"),
    },
    outputs_are="given",
    deterministic=True,
    tolerance={"y_q": Tolerance(slack=1.0), "scales": Tolerance()},
    flops="8 * routed * 128 * groups",
    bytes_read="2 * 256 * groups * routed + 4 * experts",
    bytes_written="128 * groups * routed + 4 * groups * routed",
    workloads=(
        at(32, 1024, 2048, 8192),
        at(8, 4096, 7168, 8192),
        at(32, 128, 2048, 512),
        at(256, 128, 2048, 4096, "full"),
        at(16, 4096, 2048, 32768, "full"),
        at(3, 5, 256, 8, "odd"),
        at(1, 1, 128, 1, "odd"),
        at(5, 67, 384, 130, "odd"),
        at(16, 33, 640, 100, "odd"),
        at(9, 130, 128, 1000, "odd"),
        at(3, 6, 384, 11, "odd", "float16"),
        at(4, 9, 128, 17, "odd", "float32"),
    ),
)


def inputs(workload: Workload, generator: torch.Generator, device: str) -> dict[str, torch.Tensor]:
    """A few experts have most of the tokens, one of several has none; where no token is, x is large."""
    axes, where = workload.axes, {"generator": generator, "device": device}
    experts, capacity = axes["experts"], axes["capacity"]
    shares = torch.rand(experts, **where).pow(4) + 0.01
    room = torch.full((experts,), capacity, device=device)
    if experts > 1:
        empty = torch.randint(experts, (1,), **where)
        shares[empty] = 0.0
        room[empty] = 0
    counts = torch.minimum((shares / shares.sum() * axes["routed"]).long(), room)
    left = (room - counts).cumsum(0).clamp(max=axes["routed"] - counts.sum())
    counts += left.diff(prepend=left.new_zeros(1))
    x = torch.randn(experts, capacity, 256 * axes["groups"], **where)
    x[torch.arange(capacity, device=device) >= counts[:, None]] *= 100.0
    return {"x": x.to(getattr(torch, workload.dtype)), "masked_m": counts.to(torch.int32)}


def activation(x: torch.Tensor) -> torch.Tensor:
    gate, up = x.float().chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


def reference(x: torch.Tensor, masked_m: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    experts, capacity, width = x.shape[0], x.shape[1], x.shape[2] // 2
    grouped = activation(x).view(experts, capacity, width // 128, 128)
    scales = grouped.abs().amax(-1).clamp(min=AMAX_FLOOR) / LARGEST
    y_q = (grouped / scales[..., None]).clamp(-LARGEST, LARGEST)
    there = torch.arange(capacity, device=x.device) < masked_m[:, None]
    y_q = y_q.where(there[..., None, None], torch.nan).to(torch.float8_e4m3fn).view(experts, capacity, width)
    scales = scales.where(there[..., None], torch.nan).transpose(1, 2)
    return y_q, torch.nn.functional.pad(scales, (0, -capacity % 4), value=torch.nan)


def extra(x: torch.Tensor, masked_m: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """As in `swiglu_quant_fp8`: a negative gate's exponent is rounded; a group's largest value moves its scale."""
    experts, capacity, width = x.shape[0], x.shape[1], x.shape[2] // 2
    steps = 4 * (-x[..., :width].float()).clamp(min=0.0).nan_to_num()
    values = activation(x).abs().nan_to_num()
    moved = (values * steps).view(experts, capacity, width // 128, 128).amax(-1)
    of_scale = moved / values.view(experts, capacity, width // 128, 128).amax(-1).clamp(min=AMAX_FLOOR)
    of_value = steps + of_scale.repeat_interleave(128, -1)
    return of_value, torch.nn.functional.pad(of_scale.transpose(1, 2), (0, -capacity % 4))


def vllm(x: torch.Tensor, masked_m: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """vLLM's `persistent_masked_m_silu_mul_quant`, for capacities that are multiples of 4."""
    experts, capacity, width = x.shape[0], x.shape[1], x.shape[2] // 2
    ops = peer_libraries.vllm("_C")
    y_q = x.new_empty(experts, capacity, width, dtype=torch.float8_e4m3fn)
    scales = x.new_empty(experts, width // 128, capacity, dtype=torch.float32)
    ops.persistent_masked_m_silu_mul_quant(x, masked_m, y_q, scales.transpose(1, 2), False)
    return y_q, scales


def where_tokens_are(inputs: dict[str, torch.Tensor], outputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Tensors of a peer's own may hold anything where no token is: NaN there, as the reference has it."""
    y_q, scales, counts = outputs["y_q"], outputs["scales"], inputs["masked_m"][:, None]
    absent = torch.arange(scales.shape[2], device=scales.device) >= counts
    nan = 0x7F  # of e4m3, which PyTorch cannot fill as such
    return {
        "y_q": y_q.view(torch.uint8).masked_fill(absent[:, : y_q.shape[1], None], nan).view(y_q.dtype),
        "scales": scales.masked_fill(absent[:, None], torch.nan),
    }


peers = {"vllm": Peer(vllm, canonical=where_tokens_are, differs="allocates its results")}
