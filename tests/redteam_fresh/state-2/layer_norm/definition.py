"""Layer norm with a gain and a shift that are weights; rows may lie anywhere."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative", eps: float = 1e-5) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, scalars={"eps": eps}, set=set)


definition = Definition(
    name="layer_norm",
    description="y = (x - mean(x)) / sqrt(var(x) + eps) * gain + shift, row by row",
    op_type="norm",
    axes={"rows": "tokens", "cols": "hidden size"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols"), layout="any"),
        "gain": TensorSpec(shape=("cols",), role="weight"),
        "shift": TensorSpec(shape=("cols",), role="weight"),
        "eps": ScalarSpec(value=1e-5),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="8 * rows * cols",
    workloads=(
        at(64, 2048),
        at(200, 1024),
        at(1, 1, "odd"),
        at(3, 17, "odd", eps=0.5),
        at(9, 127, "odd"),
        at(5, 1025, "odd"),
        at(67, 33, "odd"),
    ),
)


def reference(x: torch.Tensor, gain: torch.Tensor, shift: torch.Tensor, eps: float) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps) * gain + shift


def magnitude(x: torch.Tensor, gain: torch.Tensor, shift: torch.Tensor, eps: float) -> torch.Tensor:
    """The mean is subtracted, and the shift added: errors are relative to the parts."""
    mean = x.mean(-1, keepdim=True)
    centred = x - mean
    size = x.abs() + mean.abs()
    scale = torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)
    spread = size.amax(-1, keepdim=True) * scale
    return (size * scale + centred.abs() * scale * spread) * gain.abs() + shift.abs()
