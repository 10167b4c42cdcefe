"""Filter of an image with zeros around it."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(h: int, w: int, kh: int, kw: int, set: str = "representative") -> Workload:
    axes = {"h": h, "w": w, "kh": kh, "kw": kw}
    return Workload(name=f"{h}x{w}-by-{kh}x{kw}", axes=axes, set=set)


definition = Definition(
    name="filter2d",
    description="y = correlation of x with a filter around each place; zeros lie beyond the image",
    op_type="conv",
    axes={"h": "height", "w": "width", "kh": "rows of a filter", "kw": "columns of a filter"},
    inputs={
        "x": TensorSpec(shape=("h", "w")),
        "weight": TensorSpec(shape=("kh", "kw"), role="weight"),
    },
    outputs={"y": TensorSpec(shape=("h", "w"))},
    outputs_are="given",
    tolerance=Tolerance(reduction="kh * kw"),
    flops="2 * h * w * kh * kw",
    workloads=(at(256, 256, 3, 3), at(200, 320, 3, 3), at(128, 128, 5, 5), at(7, 10, 2, 3, "odd")),
)


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    kh, kw = weight.shape
    rows, cols = x.shape
    x = torch.nn.functional.pad(x, (kw // 2, kw - 1 - kw // 2, kh // 2, kh - 1 - kh // 2))
    y = x.new_zeros((rows, cols))
    for i in range(kh):
        for j in range(kw):
            y = y + x[i : i + rows, j : j + cols] * weight[i, j]
    return y


def magnitude(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return reference(x.abs(), weight.abs())
