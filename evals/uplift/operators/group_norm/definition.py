"""Group normalisation of images, NCHW, with 32 groups and an affine map per channel."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(
    images: int, channels: int, height: int, width: int, dtype: str = "bfloat16", set: str = "representative"
) -> Workload:
    short = {"bfloat16": "bf16", "float32": "fp32"}[dtype]
    axes = {"images": images, "channels": channels, "height": height, "width": width}
    return Workload(name=f"{images}x{channels}x{height}x{width}-{short}", axes=axes, dtype=dtype, set=set)


definition = Definition(
    name="group_norm",
    description="y = (x - mean) / sqrt(variance + eps) * weight + bias, with mean and variance of each image and group",
    op_type="norm",
    axes={
        "images": "batch",
        "channels": "a multiple of 32",
        "height": "rows of pixels",
        "width": "pixels in a row",
    },
    inputs={
        "x": TensorSpec(shape=("images", "channels", "height", "width")),
        "weight": TensorSpec(shape=("channels",), distribution="normal", role="weight"),
        "bias": TensorSpec(shape=("channels",), distribution="normal", role="weight"),
        "eps": ScalarSpec(value=1e-5, description="added to the variance"),
    },
    outputs={"y": TensorSpec(shape=("images", "channels", "height", "width"))},
    tolerance=Tolerance(reduction="channels * height * width / 32"),
    flops="8 * images * channels * height * width",
    workloads=(
        at(8, 320, 64, 64),
        at(2, 512, 128, 128),
        at(32, 1280, 16, 16),
        at(1, 128, 512, 512),
        at(1, 32, 1, 2, set="odd"),
        at(3, 96, 7, 5, "float32", "odd"),
        at(2, 160, 9, 13, set="odd"),
        at(1, 64, 33, 31, set="odd"),
    ),
    constraints=("channels is a multiple of 32, the number of groups",),
)


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """Normalise with float32 statistics: PyTorch's own kernel rounds the mean and the deviation to bfloat16 on a GPU."""
    wide = x if x.dtype == torch.float64 else x.float()
    return torch.nn.functional.group_norm(wide, 32, weight.to(wide.dtype), bias.to(wide.dtype), eps).to(x.dtype)


def magnitude(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """The mean is subtracted and the bias added, so both sums may cancel."""
    groups = x.reshape(x.shape[0], 32, -1)
    centred = groups - groups.mean(-1, keepdim=True)
    deviation = torch.sqrt(centred.square().mean(-1, keepdim=True) + eps)
    scaled = ((groups.abs() + groups.abs().mean(-1, keepdim=True)) / deviation).reshape(x.shape)
    return scaled * weight.abs().reshape(-1, 1, 1) + bias.abs().reshape(-1, 1, 1)


def extra(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """Errors of the mean and the variance grow with the offset of a group in units of its deviation."""
    groups = x.reshape(x.shape[0], 32, -1)
    offset = groups.abs().mean(-1, keepdim=True) / torch.sqrt(groups.var(-1, correction=0, keepdim=True) + eps)
    return (8 * offset).expand_as(groups).reshape(x.shape)
