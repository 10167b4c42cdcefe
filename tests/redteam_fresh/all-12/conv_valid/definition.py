"""Convolution of images where the filter lies within them, with a bias."""

import torch
from torch.nn import functional

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(batch: int, cin: int, cout: int, height: int, width: int, kh: int, kw: int) -> Workload:
    axes = {"batch": batch, "cin": cin, "cout": cout, "height": height, "width": width, "kh": kh, "kw": kw}
    return Workload(name=f"{batch}x{cin}x{height}x{width}-to-{cout}-by-{kh}x{kw}", axes=axes)


definition = Definition(
    name="conv_valid",
    description="y[b, o] = bias[o] + sum over channels of x[b, c] filtered by w[o, c], without padding",
    op_type="conv",
    axes={
        "batch": "images",
        "cin": "channels",
        "cout": "filters",
        "height": "rows of an image",
        "width": "columns of an image",
        "kh": "rows of a filter",
        "kw": "columns of a filter",
    },
    inputs={
        "x": TensorSpec(shape=("batch", "cin", "height", "width")),
        "w": TensorSpec(shape=("cout", "cin", "kh", "kw"), role="weight"),
        "bias": TensorSpec(shape=("cout",), role="weight"),
    },
    outputs={"y": TensorSpec(shape=("batch", "cout", "height - kh + 1", "width - kw + 1"))},
    tolerance=Tolerance(reduction="cin * kh * kw"),
    flops="2 * batch * cout * (height - kh + 1) * (width - kw + 1) * cin * kh * kw",
    workloads=(at(2, 16, 24, 40, 40, 5, 5), at(1, 20, 16, 33, 47, 7, 7)),
)


def reference(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return functional.conv2d(x, w, bias)


def magnitude(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Terms cancel: rounding errors are relative to the sum of their absolute values."""
    return functional.conv2d(x.abs(), w.abs(), bias.abs())
