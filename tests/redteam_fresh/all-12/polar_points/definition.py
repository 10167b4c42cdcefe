"""Spherical coordinates of points of a scan, such as range images are made of."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(points: int, set: str = "representative") -> Workload:
    return Workload(name=f"{points}", axes={"points": points}, set=set)


definition = Definition(
    name="polar_points",
    description="azimuth = atan2(y, x), elevation = atan2(z, hypot(x, y)) and radius of each point",
    op_type="geometry",
    axes={"points": "points", "coordinates": 3},
    inputs={
        "xyz": TensorSpec(
            shape=("points", "coordinates"), distribution="uniform:-1:1", description="points in a unit cube"
        ),
    },
    outputs={
        "azimuth": TensorSpec(shape=("points",)),
        "elevation": TensorSpec(shape=("points",)),
        "radius": TensorSpec(shape=("points",)),
    },
    flops="60 * points",
    workloads=(at(100000), at(262144)),
)


def reference(xyz: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    x, y, z = xyz.unbind(1)
    flat = torch.sqrt(x * x + y * y)
    return torch.atan2(y, x), torch.atan2(z, flat), torch.sqrt(x * x + y * y + z * z)
