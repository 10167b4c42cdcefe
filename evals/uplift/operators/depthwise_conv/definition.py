"""Depthwise 3x3 convolution of images, NCHW, with bias and SiLU."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(
    images: int, channels: int, height: int, width: int, dtype: str = "bfloat16", set: str = "representative"
) -> Workload:
    short = {"bfloat16": "bf16", "float32": "fp32"}[dtype]
    axes = {"images": images, "channels": channels, "height": height, "width": width}
    return Workload(name=f"{images}x{channels}x{height}x{width}-{short}", axes=axes, dtype=dtype, set=set)


definition = Definition(
    name="depthwise_conv",
    description="y = z * sigmoid(z) with z[n, c] = the 3x3 cross-correlation of x[n, c], padded by 1 with zeros, "
    "with weight[c], plus bias[c]",
    op_type="convolution",
    axes={"images": "batch", "channels": "channels", "height": "rows of pixels", "width": "pixels in a row"},
    inputs={
        "x": TensorSpec(shape=("images", "channels", "height", "width")),
        "weight": TensorSpec(shape=("channels", "3", "3"), distribution="normal:0:0.3", role="weight"),
        "bias": TensorSpec(shape=("channels",), distribution="normal", role="weight"),
    },
    outputs={"y": TensorSpec(shape=("images", "channels", "height", "width"))},
    tolerance=Tolerance(reduction="9"),
    flops="22 * images * channels * height * width",
    workloads=(
        at(16, 384, 56, 56),
        at(8, 1024, 14, 14),
        at(1, 64, 512, 512),
        at(4, 192, 64, 64, "float32"),
        at(1, 1, 1, 1, set="odd"),
        at(2, 3, 5, 7, "float32", "odd"),
        at(1, 5, 33, 31, set="odd"),
        at(3, 17, 1, 65, set="odd"),
    ),
)


def convolve(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Convolve in float32: PyTorch's own kernel rounds z to bfloat16 before the sigmoid."""
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    kernels = weight.to(wide).unsqueeze(1)
    return torch.nn.functional.conv2d(x.to(wide), kernels, bias.to(wide), padding=1, groups=weight.shape[0])


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(convolve(x, weight, bias)).to(x.dtype)


def magnitude(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Products of both signs cancel; the slope of SiLU is at most 1.1, and the exponential rounds in proportion to z."""
    z = convolve(x, weight, bias)
    size = convolve(x.abs(), weight.abs(), bias.abs())
    return 1.1 * size + torch.nn.functional.silu(z).abs() * (1 + size)
