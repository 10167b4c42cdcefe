"""Product of a few tokens with 4-bit weights in groups of 64, at sizes that no tile divides."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload

GROUP = 64


def at(tokens: int, outs: int, groups: int, set: str = "representative") -> Workload:
    axes = {"tokens": tokens, "outs": outs, "groups": groups}
    return Workload(name=f"{tokens}x{outs}x{groups * GROUP}-bf16", axes=axes, dtype="bfloat16", set=set)


definition = Definition(
    name="int4_linear",
    description="y = x @ weight.T with weight[o, i] = (nibble[o, i] - 8) * scale[o, i / 64]; byte j of a row holds "
    "the inputs 2j in its low and 2j + 1 in its high half",
    op_type="gemm",
    axes={"tokens": "rows of x, 1 to 16", "outs": "outputs, of any size", "groups": "groups of 64 inputs"},
    inputs={
        "x": TensorSpec(shape=("tokens", "64 * groups")),
        "packed": TensorSpec(
            shape=("outs", "32 * groups"), dtype="uint8", distribution="integers:0:256", role="weight"
        ),
        "scale": TensorSpec(shape=("outs", "groups"), distribution="uniform:0.005:0.02", role="weight"),
    },
    outputs={"y": TensorSpec(shape=("tokens", "outs"))},
    tolerance=Tolerance(reduction="64 * groups"),
    flops="2 * tokens * outs * 64 * groups",
    workloads=(
        at(1, 4097, 65),
        at(3, 11007, 64),
        at(8, 5003, 173),
        at(16, 4096, 63),
        at(1, 1, 1, "odd"),
        at(5, 129, 3, "odd"),
        at(16, 255, 17, "odd"),
        at(2, 1001, 9, "odd"),
    ),
    constraints=("1 <= tokens <= 16", "outs and groups may be odd"),
)


def weights(packed: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """The weights (outs, 64 * groups) in the type of the scales."""
    nibbles = torch.stack((packed & 15, packed >> 4), dim=-1).reshape(*scale.shape, GROUP)
    return ((nibbles.to(scale.dtype) - 8) * scale.unsqueeze(-1)).reshape(scale.shape[0], -1)


def reference(x: torch.Tensor, packed: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.linear(x, weights(packed, scale))


def magnitude(x: torch.Tensor, packed: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Products of both signs cancel."""
    return x.abs() @ weights(packed, scale).abs().T


def extra(x: torch.Tensor, packed: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """A kernel may round each weight to bfloat16, whose independent errors add up as the root of their squares."""
    exact = weights(packed, scale)
    spread = torch.sqrt(x.square() @ exact.square().T) / (x.abs() @ exact.abs().T).clamp_min(1e-30)
    return 2 * 2.0**-8 / 2.0**-24 * spread
