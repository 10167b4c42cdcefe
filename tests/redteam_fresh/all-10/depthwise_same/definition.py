"""Depthwise convolution with zeros around the image: each channel has a filter of its own."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(n: int, c: int, h: int, w: int, kh: int, kw: int, set: str = "representative") -> Workload:
    axes = {"n": n, "c": c, "h": h, "w": w, "kh": kh, "kw": kw}
    return Workload(name=f"{n}x{c}x{h}x{w}-by-{kh}x{kw}", axes=axes, set=set)


definition = Definition(
    name="depthwise_same",
    description="y[n, c] = correlation of x[n, c] with weight[c], around each place; zeros lie beyond the image",
    op_type="conv",
    axes={"n": "images", "c": "channels", "h": "height", "w": "width", "kh": "rows of a filter", "kw": "columns of a filter"},
    inputs={
        "x": TensorSpec(shape=("n", "c", "h", "w")),
        "weight": TensorSpec(shape=("c", "kh", "kw"), role="weight"),
    },
    outputs={"y": TensorSpec(shape=("n", "c", "h", "w"))},
    outputs_are="given",
    tolerance=Tolerance(reduction="kh * kw"),
    flops="2 * n * c * h * w * kh * kw",
    workloads=(at(4, 16, 56, 56, 3, 3), at(2, 32, 28, 28, 3, 3), at(2, 8, 60, 60, 5, 5), at(1, 3, 7, 10, 2, 3, "odd")),
)


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    kh, kw = weight.shape[1:]
    rows, cols = x.shape[2:]
    x = torch.nn.functional.pad(x, (kw // 2, kw - 1 - kw // 2, kh // 2, kh - 1 - kh // 2))
    y = x.new_zeros((*x.shape[:2], rows, cols))
    for i in range(kh):
        for j in range(kw):
            y = y + x[..., i : i + rows, j : j + cols] * weight[:, i, j, None, None]
    return y


def magnitude(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return reference(x.abs(), weight.abs())
