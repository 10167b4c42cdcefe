"""Histogram of brightness: how many pixels of each image have each of 256 levels."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(images: int, pixels: int, set: str = "representative") -> Workload:
    return Workload(name=f"{images}x{pixels}", axes={"images": images, "pixels": pixels}, set=set)


definition = Definition(
    name="brightness",
    description="counts[image, level] = number of pixels with floor(256 * x) == level; 1.0 counts as level 255",
    op_type="histogram",
    axes={"images": "images", "pixels": "pixels of an image", "levels": 256},
    inputs={"x": TensorSpec(shape=("images", "pixels"), distribution="uniform:0:1", description="from 0 to 1")},
    outputs={"counts": TensorSpec(shape=("images", "levels"), dtype="int64")},
    flops="images * pixels",
    workloads=(at(16, 40000), at(64, 9000)),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    levels = (x * 256).long().clamp(0, 255)
    counts = torch.zeros((x.shape[0], 256), dtype=torch.int64, device=x.device)
    return counts.scatter_add_(1, levels, torch.ones_like(levels))
